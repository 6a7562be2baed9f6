//! `palisade new`: makes the project of a plugin.

use super::args::New;
use super::exit::{Exit, Failure};
use super::output;
use palisade::internal::shipped_owner;
use palisade_author::Language;
use palisade_author::project::{self, NewError, Project};
use palisade_author::sdk::Sdk;
use serde_json::json;

pub(super) fn run(args: &New) -> Result<Exit, Failure> {
    // A bad name is the first fault to tell, also where there is no SDK.
    project::name_of(&args.name, args.lang).map_err(Failure::usage)?;
    let program = std::env::current_exe().ok();
    let sdk = Sdk::find(args.lang, args.sdk.as_deref(), program.as_deref());
    let made =
        sdk.map_err(NewError::from).and_then(|sdk| project::create(&args.name, args.lang, &sdk));
    let project = made.map_err(failure)?;
    if args.json {
        output::json(&json!({
            "name": project.name.as_str(),
            "directory": project.directory,
            "language": project.language,
            "files": project.files,
        }))?;
    } else {
        output::text(&output::prose(&told(&project)))?;
    }
    let tool = project.name.identifier();
    if shipped_owner(&tool).is_some() {
        output::note(&format!(
            "`{tool}` is a tool of this program, which a call of the name runs; give yours another name"
        ));
    }
    Ok(Exit::Ok)
}

fn told(project: &Project) -> String {
    let directory = project.directory.display();
    let name = project.name.identifier();
    let packages = packages(project.language);
    format!(
        "Made `{directory}`: the plugin `{name}` with one tool, `{name}`.\n\
         Next: `cd {directory}`, {packages}`palisade build`, `palisade check`; README.md says more.\n"
    )
}

/// Returns the step that fetches the packages of a project, if its build does not.
fn packages(language: Language) -> &'static str {
    match language {
        Language::Rust | Language::C => "",
        Language::Python => "`pip install -r requirements.txt` in a virtual environment, ",
        Language::Js => "`npm install`, ",
    }
}

fn failure(error: NewError) -> Failure {
    match error {
        NewError::Io { .. } => Failure::new(Exit::Internal, error),
        other => Failure::usage(other),
    }
}
