//! Advice for the operator about a refused file operation.

use super::is_temporary;
use crate::tool::Advice;

/// Returns the setting by which an operator can allow changes to files with several hard links.
pub(crate) fn on_hard_links() -> Advice {
    Advice::setting("set `workspace.hard_links` to \"allow\"", "workspace.hard_links")
        .in_code("build the host with `HardLinks::Allow`")
}

/// Returns advice for an operator whose files are hidden by mistake.
pub(crate) fn on_hidden() -> Advice {
    Advice::new(
        "a path that is hidden by mistake has a record in `palisade/paths` of your state directory: remove that",
    )
}

/// Returns the settings that leave a path out.
pub(crate) fn on_path_rules(path: &str) -> Advice {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let advice = match is_temporary(name) {
        // The tool writes a file beside the named one, and renames it.
        true => {
            let between = if folder.is_empty() { "" } else { "/" };
            format!("add \"{folder}{between}.palisade-*.tmp\" to `paths.allow`")
        }
        false => "change `paths.deny` or `paths.allow`".to_owned(),
    };
    Advice::setting(advice, "paths").in_code("build the host with other `PathRules`")
}
