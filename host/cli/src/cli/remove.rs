//! `palisade remove`: removes an installed plugin and its approval.

use super::args::{Common, Remove as Args};
use super::exit::{Exit, Failure};
use super::installing::{Installing, shown};
use super::output;
use palisade::tool::text::visible;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let installing = Installing::open(common)?;
    let lock = installing.lock()?;
    let name = shown(&args.plugin);
    let entry = lock.installed_as(&args.plugin);
    // The revocation stays when the file is gone. A file with other bytes is removed as well.
    let entry = entry.filter(|entry| entry.revoked.is_none() || installing.has_any_file(entry));
    let Some(entry) = entry else {
        let lies = lock.entries().iter().find(|it| it.name == args.plugin && !it.is_installed());
        let advice = lies.map(|entry| {
            format!(
                "; it lies in `{}`: delete the file there, or `palisade revoke {name}`",
                visible(&entry.source)
            )
        });
        return Err(Failure::new(
            Exit::NotFound,
            format!("no plugin `{name}` was added{}", advice.unwrap_or_default()),
        ));
    };
    installing.remove(entry)?;
    let stays = if entry.revoked.is_some() { " Its bytes stay revoked." } else { "" };
    output::text(&output::prose(&format!("`{name}` is removed.{stays}")))?;
    installing.tell_lasting_grants(entry)?;
    Ok(Exit::Ok)
}
