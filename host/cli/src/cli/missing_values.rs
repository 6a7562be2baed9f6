//! Lists the values of a missing required argument, if it takes one of a fixed set.

use super::args::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};

/// Adds the values to an error for missing arguments. Returns any other error as it is.
pub(super) fn listed(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return error;
    }
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let mut program = Args::command();
    program.build();
    let with_values = |arg: &String| match values_in(&program, arg) {
        Some(values) => format!("{arg} ({values})"),
        None => arg.clone(),
    };
    let missing = missing.iter().map(with_values).collect();
    error.insert(ContextKind::InvalidArg, ContextValue::Strings(missing));
    error
}

/// Returns the values of the argument that usage errors show as `shown`, of a command or one of its
/// subcommands.
fn values_in(command: &Command, shown: &str) -> Option<String> {
    let own = command.get_arguments().filter(|arg| arg.to_string() == shown).find_map(values_of);
    own.or_else(|| command.get_subcommands().find_map(|command| values_in(command, shown)))
}

fn values_of(arg: &Arg) -> Option<String> {
    let values = arg.get_possible_values();
    let names: Vec<&str> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(clap::builder::PossibleValue::get_name)
        .collect();
    match &names[..] {
        [] => None,
        [only] => Some((*only).to_owned()),
        [first @ .., last] => Some(format!("{} or {last}", first.join(", "))),
    }
}
