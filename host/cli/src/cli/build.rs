//! `palisade build`: builds the project of a plugin, and reports what came of it.

use super::args::{Build, Common};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::{author, setup};
use palisade_author::build::{self, Built, Cost, Homes, Report, Request, VARIABLE};
use palisade_author::trial::TrialError;
use std::path::PathBuf;

pub(super) fn run(common: &Common, args: &Build) -> Result<Exit, Failure> {
    let report = built(common, args)?;
    if args.json {
        output::json(&report)?;
    } else {
        output::text(&output::table(&rows(&report)))?;
    }
    Ok(Exit::Ok)
}

fn built(common: &Common, args: &Build) -> Result<Report, Failure> {
    let settings = setup::settings(common)?;
    let built = project(args)?;
    let cases = args.directory.join("tests");
    Ok(Report::of(&built, &author::engine(&settings), &cases)?)
}

/// Builds a project.
pub(super) fn project(args: &Build) -> Result<Built, Failure> {
    let program = std::env::current_exe().ok();
    let named = std::env::var_os(VARIABLE).filter(|it| !it.is_empty());
    let homes = Homes::of_this_machine(named.map(PathBuf::from), program.as_deref());
    Ok(build::build(&mut Request {
        directory: &args.directory,
        language: args.lang,
        homes: &homes,
        note: &mut |line| output::note(line),
    })?)
}

fn rows(report: &Report) -> Vec<Vec<Cell>> {
    let size = |bytes: usize| bytesize::ByteSize(bytes as u64).display().iec().to_string();
    let built = format!(
        "{}, {} in {:.1} s, {}",
        report.file,
        size(report.bytes),
        report.build_seconds,
        report.digest.get(..19).unwrap_or_default()
    );
    let mut rows = vec![vec!["built".into(), built.into()]];
    for tool in &report.tools {
        let first = tool.description.split("\n\n").next().unwrap_or_default();
        let said = format!("{}, class {}: {first}", tool.name, tool.side_effects);
        rows.push(vec!["tool".into(), said.into()]);
    }
    for import in &report.imports {
        let class = match import.needs {
            "none" => "any class".to_owned(),
            "network" => "class network".to_owned(),
            class => format!("class {class} or more"),
        };
        let said = format!("{}, {class}: {}", import.name, import.gets);
        rows.push(vec!["import".into(), said.into()]);
    }
    rows.push(vec!["load".into(), format!("{:.2} s, once", report.load_seconds).into()]);
    rows.push(vec!["call".into(), call(report.call.as_ref()).into()]);
    rows
}

fn call(cost: Option<&Cost>) -> String {
    let Some(cost) = cost else {
        return "not measured: no case in tests/*.json succeeds; `palisade check` says how the cases fail, and with `--record` it makes one"
            .to_owned();
    };
    format!(
        "{:.3} ms, the median of {} calls of {} (case {}); {} of memory",
        cost.median_ms,
        cost.calls,
        cost.tool,
        cost.case,
        bytesize::ByteSize(cost.peak_memory_bytes).display().iec()
    )
}

impl From<build::BuildError> for Failure {
    fn from(error: build::BuildError) -> Self {
        use build::BuildError;
        match error {
            BuildError::Trial(error) => error.into(),
            BuildError::Failed { .. }
            | BuildError::Component { .. }
            | BuildError::Refused { .. } => Self::new(Exit::Invalid, error),
            BuildError::Io { .. } => Self::new(Exit::Internal, error),
            other => Self::usage(other),
        }
    }
}

impl From<TrialError> for Failure {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Host(error) => error.into(),
            TrialError::Refused { .. } => Self::new(Exit::Invalid, error),
            TrialError::NoFile { .. } => Self::new(Exit::NotFound, error),
            TrialError::Unreadable { .. } => Self::usage(error),
            other => Self::new(Exit::Internal, other),
        }
    }
}
