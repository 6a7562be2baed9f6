//! The keys of plugins' authors: `[[plugins.keys]]`.

use super::file::expand;
use palisade_store::Source;
use palisade_trust::{Signer, TrustedKey};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKey {
    key: String,
    source: Option<String>,
}

impl RawKey {
    /// Checks an entry.
    ///
    /// # Errors
    ///
    /// The key and the reason.
    pub(super) fn checked(&self) -> Result<TrustedKey, String> {
        let signer =
            Signer::parse(&self.key).map_err(|error| format!("`plugins.keys.key`: {error}"))?;
        let source = self.source.as_deref().map(|text| {
            if ["https://", "http://", "oci://"].iter().any(|scheme| text.starts_with(scheme)) {
                return Source::parse_beginning(text)
                    .map_err(|error| format!("`plugins.keys.source`: {error}"));
            }
            let path = expand(text);
            // A relative path would depend on the current directory.
            match path.is_absolute() {
                true => Ok(path.to_string_lossy().trim_end_matches('/').to_owned()),
                false => Err(format!(
                    "`plugins.keys.source` is `{text}`; write the whole path of a plugin directory, \
                     from `/` or `~/` on, or the beginning of a URL, such as `oci://ghcr.io/me/`"
                )),
            }
        });
        Ok(TrustedKey::new(signer, source.transpose()?))
    }
}
