//! Claims of documents and prompts, each of which only one plugin can have.

use crate::plugins::plugin::Plugin;
use crate::plugins::rejected::RegistrationError;

/// Returns an error if another plugin already has one of the plugin's documents or prompts.
pub(super) fn check_offer<'a>(
    plugin: &Plugin,
    mut others: impl Iterator<Item = &'a Plugin>,
) -> Result<(), RegistrationError> {
    let clash = |other: &Plugin| {
        Some((
            plugin.offer().clash(other.offer())?,
            other.name().to_owned(),
            other.file().to_owned(),
        ))
    };
    match others.find_map(clash) {
        Some((claim, owner, file)) => Err(RegistrationError::name_taken(format_args!(
            "it offers {claim}, which the plugin `{owner}` does already, in {file}"
        ))),
        None => Ok(()),
    }
}
