//! The names of the shipped tools, which no other plugin may claim, regardless of the loading
//! order. They also stay reserved if a project file has switched the tools off.

use super::rejected::RegistrationError;
use super::sources::Shipped;
use crate::registry::{DuplicateTool, Registered, Registry};
use crate::tool::Definition;
use std::sync::Arc;

/// The shipped plugins with their tools.
const PLUGINS: [(&str, &[&str]); 5] = [
    ("calculate", &["calculate"]),
    ("code", &["run_js", "search_tools"]),
    ("files", &["delete_file", "list_dir", "patch_file", "read_file", "write_file"]),
    ("search", &["find_files", "search_files"]),
    ("web", &["http_request", "web_fetch"]),
];

/// The native tool of the crate `palisade-shell`, which ships with the program. Its name is
/// reserved in every host with the shipped plugins, so that rules for it mean no plugin's tool.
const SHELL: &str = "shell";

/// Refuses a plugin file that claims a reserved name, loaded or not: the user's rules for that name
/// were written for the shipped tool.
pub(super) fn check(
    shipped: Shipped,
    tools: &[Arc<Registered>],
    registry: &Registry,
) -> Result<(), RegistrationError> {
    let mut names = tools.iter().map(|tool| tool.definition().name().as_str());
    match (shipped, names.find(|name| is_reserved(name))) {
        (Shipped::LeftOut, _) | (_, None) => Ok(()),
        (Shipped::Included, Some(SHELL)) if !registry.has(SHELL) => {
            Err(RegistrationError::name_taken(format_args!(
                "the name `{SHELL}` is reserved for the native tool of `palisade-shell`; use another \
                 name, such as `{SHELL}_2`"
            )))
        }
        (Shipped::Included, Some(name)) => Err(RegistrationError::name_taken(registry.taken(name))),
        (Shipped::Reserved, Some(name)) => Err(RegistrationError::name_taken(format_args!(
            "the name `{name}` stays with the shipped tool, which the project's `plugins.builtin = false` has switched off; use another name, such \
             as `{name}_2`, or leave the shipped plugins out yourself"
        ))),
    }
}

/// Returns true if a tool of this name ships with the program, so that the name alone means no
/// plugin's tool.
pub(crate) fn is_reserved(tool: &str) -> bool {
    tool == SHELL || owner(tool).is_some()
}

/// Refuses a native tool whose name belongs to a shipped plugin.
pub(super) fn check_native(
    shipped: Shipped,
    tool: &Definition,
    registry: &Registry,
) -> Result<(), DuplicateTool> {
    let name = tool.name().as_str();
    if shipped == Shipped::Included && owner(name).is_some() {
        Err(registry.taken(name))
    } else {
        Ok(())
    }
}

/// Returns the tools of a shipped plugin, sorted by name.
pub fn tools_of(plugin: &str) -> Option<&'static [&'static str]> {
    PLUGINS.into_iter().find(|(name, _)| *name == plugin).map(|(_, tools)| tools)
}

/// Returns the shipped plugin that has this tool.
pub fn owner(tool: &str) -> Option<&'static str> {
    PLUGINS.into_iter().find(|(_, tools)| tools.contains(&tool)).map(|(plugin, _)| plugin)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot build its host has failed")]
    use super::*;
    use crate::host::{CacheMode, Host};

    #[test]
    fn every_shipped_tool_is_reserved_with_its_plugin() {
        let host = Host::builder().cache(CacheMode::Off).build().unwrap();
        for tool in host.registry().tools() {
            let name = tool.definition().name().as_str();
            assert_eq!(owner(name), tool.origin().plugin(), "{name}");
        }
        let is_loaded = |name: &str| {
            palisade_plugins::all().iter().any(|it| it.name == name && it.requires.is_none())
        };
        let named = PLUGINS.iter().filter(|(plugin, _)| is_loaded(plugin));
        let named = named.flat_map(|(_, tools)| *tools);
        assert!(named.clone().all(|name| host.registry().has(name)));
        assert_eq!(named.count(), host.registry().len());
    }
}
