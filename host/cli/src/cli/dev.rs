//! `palisade dev`: builds a project at each save, and replays its recorded cases.

use super::args::{Build, Common, Dev};
use super::exit::{Exit, Failure};
use super::output::{self, Cell, Reader};
use super::{author, build, setup};
use palisade::sandbox::World;
use palisade::tool::text::{elided, visible};
use palisade_author::check::{self, Replayed};
use palisade_author::dev::{Change, Watch};
use palisade_author::trial::Trial;
use std::path::PathBuf;
use std::thread::sleep;

/// The displayed length of what a call returns, in characters.
const SAID: usize = 400;

pub(super) fn run(common: &Common, args: &Dev) -> Result<Exit, Failure> {
    let mut watch = Watch::begin(&args.directory).map_err(|error| unreadable(args, &error))?;
    output::note("building");
    let mut built = match build_once(common, args) {
        // There is nothing to wait for without a project or its toolchain.
        Err(failure) if failure.exit() == Exit::Usage => return Err(failure),
        built => told(built),
    };
    loop {
        if let Some(trial) = &built
            && replay(trial, args)? == Reader::Gone
        {
            return Ok(Exit::Ok);
        }
        output::note("waiting for a change; Ctrl-C ends this");
        let change = watch.wait(sleep).map_err(|error| unreadable(args, &error))?;
        match change {
            Change::Source(path) => {
                let path = visible(&path.display().to_string());
                output::note(&format!("`{path}` has changed; building"));
            }
            Change::Cases if built.is_none() => output::note("building"),
            Change::Cases => continue,
        }
        built = told(build_once(common, args));
    }
}

/// Returns the plugin. If there is none, says why.
fn told(built: Result<Trial, Failure>) -> Option<Trial> {
    built.map_err(|failure| output::problem("error:", &failure.to_string())).ok()
}

/// Builds the project and loads the plugin.
fn build_once(common: &Common, args: &Dev) -> Result<Trial, Failure> {
    let build = Build { directory: args.directory.clone(), lang: args.lang, json: false };
    let built = build::project(&build)?;
    output::note(&format!(
        "built {} in {:.1} s; loading it, which takes longer after a change",
        built.file.display(),
        built.took.as_secs_f64()
    ));
    let engine = author::engine(&setup::settings(common)?);
    Ok(Trial::open(&engine, &built.file, &World::Tool)?)
}

fn replay(trial: &Trial, args: &Dev) -> Result<Reader, Failure> {
    let cases: PathBuf = args.directory.join("tests");
    let replayed = check::replay(trial, &cases, &args.case, args.timeout)?;
    if replayed.is_empty() {
        let wanted = match args.case.as_slice() {
            [] => {
                "there is no recorded case yet; `palisade check --record NAME` makes one".to_owned()
            }
            names => {
                format!("there is no case `{}` in `{}`", names.join("` or `"), cases.display())
            }
        };
        output::note(&wanted);
        return Ok(Reader::There);
    }
    let rows: Vec<Vec<Cell>> = replayed.iter().map(row).collect();
    let reader = output::text(&output::table(&rows))?;
    let differ = replayed.iter().filter(|it| it.difference.is_some()).count();
    let cases = if replayed.len() == 1 { "case" } else { "cases" };
    output::note(&format!("{} {cases} replayed, {differ} differ", replayed.len()));
    Ok(reader)
}

/// Returns the row of a case: how it differs, or what the call returned.
fn row(replayed: &Replayed) -> Vec<Cell> {
    let word = if replayed.difference.is_some() { "DIFFERS" } else { "ok" };
    let took = replayed.result.as_ref().map(|result| format!("{:.1} ms", millis(result)));
    let said = match (&replayed.difference, &replayed.result) {
        (Some(difference), _) => difference.clone(),
        (None, Some(result)) => match result.error() {
            Some(error) => error.to_string(),
            None => result.output().as_deref().unwrap_or_default().to_owned(),
        },
        (None, None) => String::new(),
    };
    vec![
        word.into(),
        replayed.name.as_str().into(),
        took.unwrap_or_default().into(),
        elided(&said, SAID).into(),
    ]
}

fn millis(result: &palisade::ToolResult) -> f64 {
    result.duration().as_secs_f64() * 1e3
}

fn unreadable(args: &Dev, error: &std::io::Error) -> Failure {
    let directory = args.directory.display();
    Failure::usage(format!("cannot watch the project `{directory}`: {error}"))
}
