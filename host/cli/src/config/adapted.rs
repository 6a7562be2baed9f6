//! Components of other worlds whose functions become tools: `[[adapt]]` and `--adapt`.

use super::file::expand;
use palisade::SideEffects;
use palisade::sandbox::{Adaptation, Docs};
use serde::Deserialize;
use std::path::PathBuf;
use std::str::FromStr;

/// A component of another world whose functions become tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// The component.
    pub file: PathBuf,
    /// The class of its tools.
    pub class: SideEffects,
    /// The directory of its WIT, which describes the functions.
    pub wit: Option<PathBuf>,
    /// The descriptions, once they have been read.
    pub docs: Docs,
}

impl Adapted {
    /// Returns a component without WIT.
    pub(crate) fn new(file: PathBuf, class: SideEffects) -> Self {
        Self { file, class, wit: None, docs: Docs::default() }
    }

    /// Returns how the functions become tools.
    pub(crate) fn adaptation(&self) -> Adaptation {
        Adaptation::new(self.class).with_docs(self.docs.clone())
    }
}

/// Parses `FILE=CLASS`.
impl FromStr for Adapted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The name of a file may have the character, and that of a class has none.
        match text.rsplit_once('=') {
            Some((file, class)) if !file.is_empty() => {
                let class = class.parse().map_err(|error| format!("{error}"))?;
                Ok(Self::new(file.into(), class))
            }
            _ => Err("want FILE=CLASS, such as depot.wasm=none".to_owned()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAdapted {
    file: String,
    class: String,
    wit: Option<String>,
}

impl RawAdapted {
    /// Checks an entry.
    ///
    /// # Errors
    ///
    /// The key and the reason.
    pub(super) fn checked(&self) -> Result<Adapted, String> {
        let class = self.class.parse().map_err(|error| format!("`adapt.class`: {error}"))?;
        let absolute = |key: &str, text: &str| {
            let path = expand(text);
            // A relative path would depend on the current directory.
            match path.is_absolute() {
                true => Ok(path),
                false => Err(format!(
                    "`adapt.{key}` is `{text}`; write the whole path, from `/` or `~/` on"
                )),
            }
        };
        let wit = self.wit.as_deref().map(|wit| absolute("wit", wit)).transpose()?;
        Ok(Adapted { wit, ..Adapted::new(absolute("file", &self.file)?, class) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_the_option_may_have_any_name() {
        let parse = |text: &str| text.parse::<Adapted>();
        assert_eq!(parse("a.wasm=none"), Ok(Adapted::new("a.wasm".into(), SideEffects::None)));
        assert_eq!(parse("a=b.wasm=read"), Ok(Adapted::new("a=b.wasm".into(), SideEffects::Read)));
        for wrong in ["a.wasm", "=none", "a.wasm=", "a.wasm=all"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
