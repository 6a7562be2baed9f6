//! Makes the component of a core module that a compiler made for WASI preview 1.

use palisade::internal::CONTRACT;
use std::fmt::Display;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as ADAPTED,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SourceMap, WorldId};

/// The world of a plugin.
const WORLD: &str = "plugin";

/// Returns the component.
///
/// # Errors
///
/// The reason, if the module does not fit the contract.
pub(super) fn component(mut module: Vec<u8>) -> Result<Vec<u8>, String> {
    let (contract, world) = contract()?;
    embed_component_metadata(&mut module, &contract, world, StringEncoding::UTF8)
        .map_err(reason)?;
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true).module(&module).map_err(reason)?;
    encoder.adapter(ADAPTED, ADAPTER).map_err(reason)?;
    encoder.encode().map_err(reason)
}

fn contract() -> Result<(Resolve, WorldId), String> {
    let mut sources = SourceMap::default();
    for (name, text) in CONTRACT {
        sources.push_str(name, text);
    }
    let package = sources.parse().map_err(|(_, error)| reason(error))?;
    let mut contract = Resolve::default();
    let package = contract.push_group(package).map_err(reason)?;
    let world = contract.select_world(&[package], Some(WORLD)).map_err(reason)?;
    Ok((contract, world))
}

/// Returns an error with its causes.
fn reason(error: impl Display) -> String {
    format!("{error:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contract_is_understood() {
        assert!(contract().is_ok());
    }

    #[test]
    fn module_that_is_no_plugin_is_refused_with_the_missing_export() {
        let refused = component(b"\0asm\x01\0\0\0".to_vec()).expect_err("it exports nothing");
        assert!(refused.contains("palisade:tool/tool"), "{refused}");
        assert!(component(b"nothing".to_vec()).is_err());
    }
}
