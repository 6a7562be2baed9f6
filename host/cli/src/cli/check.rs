//! `palisade check`: examines a plugin before a person trusts it.

use super::args::{Check, Common};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::{author, hint, input, setup};
use palisade::sandbox::{Adaptation, World};
use palisade::tool::json::JsonBounds;
use palisade::tool::text::visible;
use palisade_author::build::OUTPUT;
use palisade_author::check::{
    self, Options, RecordError, Recorded, Recording, Report, Severity, Subject, Topic, Written,
};
use palisade_author::{Engine, files};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Check) -> Result<Exit, Failure> {
    let engine = author::engine(&setup::settings(common)?);
    let (file, subject) = subject(&args.subject)?;
    let world =
        args.class.map_or(World::Tool, |class| World::Functions(Arc::new(Adaptation::new(class))));
    let cases = args.cases.clone().unwrap_or_else(|| usual_cases(&file));
    if let Some(name) = &args.record {
        note_if_stale(&file, &subject);
        return record(&engine, args, &world, name, &file, &cases);
    }
    if let Some(named) = args.cases.as_ref().filter(|named| !named.is_dir()) {
        return Err(Failure::usage(format!(
            "--cases: `{}` is no directory",
            visible(&named.display().to_string())
        )));
    }
    let options = Options {
        seed: args.seed,
        inputs: usize::from(args.inputs),
        timeout: args.timeout,
        cases,
        world,
        subject,
    };
    let report = check::check(&engine, &file, &options)?;
    if args.json {
        let mut shown = serde_json::to_value(&report).unwrap_or_default();
        shown["passed"] = json!(report.is_passed());
        output::json(&shown)?;
    } else {
        output::text(&to_text(&report))?;
    }
    Ok(if report.is_passed() { Exit::Ok } else { Exit::Invalid })
}

/// Returns the plugin, and what it is looked at as: the file itself, or the one that a project has
/// built.
fn subject(path: &Path) -> Result<(PathBuf, Subject), Failure> {
    if !path.is_dir() {
        return Ok((path.to_owned(), Subject::File));
    }
    let directory = path.join(OUTPUT);
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let plugins = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    let shown = |path: &Path| visible(&path.display().to_string());
    match plugins.collect::<Vec<_>>().as_slice() {
        [only] => Ok((only.clone(), Subject::Project(path.to_owned()))),
        [] => Err(Failure::usage(format!(
            "there is no `.wasm` file in `{}`; `palisade build` makes it in a project, and `palisade new` makes a project",
            shown(&directory)
        ))),
        several => {
            let files: Vec<String> =
                several.iter().map(|file| format!("`{}`", shown(file))).collect();
            Err(Failure::usage(format!(
                "there are several plugins in `{}`; name one, and remove those of earlier names: {}",
                shown(&directory),
                files.join(", ")
            )))
        }
    }
}

/// Says that a case is recorded of a plugin that is older than its sources.
fn note_if_stale(plugin: &Path, subject: &Subject) {
    let Subject::Project(project) = subject else { return };
    if let Ok(Some(source)) = files::source_newer_than(plugin, project) {
        output::note(&format!(
            "`{}` was changed after `{}` was built; `palisade build` builds it again",
            visible(&source.display().to_string()),
            visible(&plugin.display().to_string())
        ));
    }
}

/// Returns the directory `tests` of the plugin's project.
fn usual_cases(file: &Path) -> PathBuf {
    let directory = file.parent().unwrap_or(Path::new(""));
    let is_output = directory.file_name().is_some_and(|name| name == OUTPUT);
    let project = if is_output { directory.parent().unwrap_or(directory) } else { directory };
    project.join("tests")
}

fn record(
    engine: &Engine,
    args: &Check,
    world: &World,
    name: &str,
    file: &Path,
    cases: &Path,
) -> Result<Exit, Failure> {
    let text = input::text_or_file(&args.input, JsonBounds::CALL_INPUT.bytes as u64)?;
    let input = serde_json::from_str(&text).map_err(|error| {
        let reason = format!("not JSON: {error}");
        let hint = hint::on_syntax(&text, &reason).map(|hint| format!("; {hint}"));
        let hint = hint.unwrap_or_default();
        Failure::new(Exit::Invalid, format!("the input is {reason}{hint}"))
    })?;
    let recording = Recording {
        name,
        tool: args.tool.as_deref(),
        input,
        files: args.files.as_deref(),
        cases,
        world,
    };
    let Recorded { file, case, written } =
        check::record(engine, file, &recording).map_err(failure)?;
    if args.json {
        output::json(&json!({"file": file, "case": case}))?;
    } else {
        let word = match written {
            Written::New => "Recorded",
            Written::Replaced => "Replaced",
        };
        let result = case.result.to_string();
        output::text(&output::prose(&format!("{word} `{}`: {result}\n", file.display())))?;
    }
    if case.result["success"] != true {
        output::note("the call failed, and the case expects that it fails in this way");
    }
    Ok(Exit::Ok)
}

fn failure(error: RecordError) -> Failure {
    match error {
        RecordError::Trial(error) => error.into(),
        RecordError::Io { .. } => Failure::new(Exit::Internal, error),
        other => Failure::usage(other),
    }
}

fn to_text(report: &Report) -> String {
    let rows: Vec<Vec<Cell>> = report.findings.iter().map(finding).collect();
    let topics: Vec<Vec<Cell>> = Topic::ALL.iter().map(|topic| summary(*topic, report)).collect();
    let between = if rows.is_empty() { "" } else { "\n" };
    format!(
        "{}{between}{}\n{}",
        output::table(&topics),
        output::table(&rows),
        output::prose(&last_line(report))
    )
}

fn summary(topic: Topic, report: &Report) -> Vec<Cell> {
    let worst = report.findings.iter().filter(|it| it.topic == topic).map(|it| it.severity).min();
    let is_reached = topic == Topic::Load || !report.tools.is_empty();
    let word = match worst {
        Some(Severity::Fault) => "FAULT",
        Some(Severity::Warning) => "warning",
        None if is_reached => "ok",
        None => "-",
    };
    vec![topic.as_str().into(), word.into(), Cell::sentence(looked_at(topic, report))]
}

/// Says what was looked at.
fn looked_at(topic: Topic, report: &Report) -> String {
    match topic {
        Topic::Load => report.world.clone().unwrap_or_default(),
        Topic::Imports => {
            let needed = report.imports.iter().filter(|it| it.needs != "none");
            let packages: BTreeSet<&str> =
                needed.filter_map(|it| it.name.split('/').next()).collect();
            let names: Vec<&str> = packages.into_iter().collect();
            let all = report.imports.len();
            if names.is_empty() {
                format!("{all}, none that needs a class")
            } else {
                format!("{all}, with {}", names.join(", "))
            }
        }
        Topic::Definitions => {
            let tools = report.tools.iter().map(|it| format!("{} ({})", it.name, it.side_effects));
            tools.collect::<Vec<_>>().join(", ")
        }
        Topic::Providers => "openai, openai-responses, anthropic, gemini, mcp".to_owned(),
        Topic::Inputs => format!("{} drawn with the seed {}", report.inputs, report.seed),
        Topic::Cases => format!("{} replayed", report.cases),
        Topic::Deadline => "every call within its time".to_owned(),
        Topic::Cancellation => "slow calls, cancelled".to_owned(),
        Topic::Output => "sizes, and the words of errors".to_owned(),
        Topic::Memory => "of each call".to_owned(),
        Topic::Files => "changed against declared".to_owned(),
        Topic::Repeat => "the same call again".to_owned(),
    }
}

fn finding(finding: &check::Finding) -> Vec<Cell> {
    let word = match finding.severity {
        Severity::Fault => "FAULT",
        Severity::Warning => "warning",
    };
    let tool = finding.tool.as_deref().map_or_else(String::new, |tool| format!("{tool}: "));
    vec![word.into(), finding.code.into(), format!("{tool}{}", finding.message).into()]
}

/// Returns the line that is worth showing to others.
fn last_line(report: &Report) -> String {
    let many =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let name = Path::new(&report.file).file_name().unwrap_or_default().to_string_lossy();
    format!(
        "{} {name} ({}, {}): {}, {}, {}, {}, {}\n",
        if report.is_passed() { "PASSED" } else { "FAILED" },
        bytesize::ByteSize(report.bytes as u64).display().iec(),
        report.digest.get(..19).unwrap_or_default(),
        many(report.tools.len(), "tool"),
        many(report.inputs, "input"),
        many(report.cases, "case"),
        many(report.count(Severity::Fault), "fault"),
        many(report.count(Severity::Warning), "warning"),
    )
}
