//! `palisade revoke`: takes the approval of a plugin back.

use super::args::{Common, Revoke as Args};
use super::exit::{Exit, Failure};
use super::{output, trust};
use palisade::tool::text::elided;
use palisade_trust::Lock;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let name = elided(&args.plugin, 128);
    let missing = || {
        Failure::new(
            Exit::NotFound,
            format!("no plugin `{name}` is approved; palisade.lock has the names"),
        )
    };
    let path = trust::lock_path(common).filter(|path| path.exists()).ok_or_else(missing)?;
    let source = args.source.as_deref().map(std::path::absolute).transpose()?;
    let source = source.as_ref().map(|source| source.to_string_lossy());
    let revoked = Lock::update(&path, |lock| lock.revoke(&args.plugin, source.as_deref()))?;
    if revoked == 0 {
        return Err(missing());
    }
    let text = format!("`{name}` is revoked: from now on none of its tools can be called.");
    output::text(&output::prose(&text))?;
    Ok(Exit::Ok)
}
