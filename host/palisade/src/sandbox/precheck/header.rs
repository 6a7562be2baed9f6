//! Recognition of the file type: a component, or another format that users put into a plugin
//! directory.

use super::error::PrecheckError;
use super::foreign::Foreign;
use crate::sandbox::limits;
use wasmparser::Parser;

/// The magic bytes of WebAssembly, common to all kinds and versions.
const MAGIC: &[u8] = b"\0asm";
/// The magic bytes of formats in which users pack or compile plugins.
const OTHERS: &[(&[u8], Foreign)] = &[
    (b"\x7fELF", Foreign::NativeCode),
    (b"\xcf\xfa\xed\xfe", Foreign::NativeCode),
    (b"MZ", Foreign::NativeCode),
    (b"\x1f\x8b", Foreign::Packed("gzip")),
    (b"\x28\xb5\x2f\xfd", Foreign::Packed("zstd")),
    (b"\xfd7zXZ\0", Foreign::Packed("xz")),
    (b"PK\x03\x04", Foreign::Packed("zip")),
];

pub(super) fn check(bytes: &[u8]) -> Result<(), PrecheckError> {
    let size = bytes.len() as u64;
    if size > limits::COMPONENT {
        return Err(PrecheckError::TooLarge { size, max: limits::COMPONENT });
    }
    foreign(bytes).map_or(Ok(()), |what| Err(what.into()))
}

fn foreign(bytes: &[u8]) -> Option<Foreign> {
    let text = bytes.trim_ascii_start();
    match bytes {
        [] => Some(Foreign::Empty),
        _ if Parser::is_component(bytes) => None,
        _ if Parser::is_core_wasm(bytes) => Some(Foreign::Module),
        _ if bytes.starts_with(MAGIC) && bytes.len() >= 8 => Some(Foreign::Version),
        _ if text.starts_with(b"(") || text.starts_with(b";;") => Some(Foreign::Text),
        _ if bytes.iter().all(|byte| *byte == 0) => Some(Foreign::Zeros),
        _ => Some(
            OTHERS
                .iter()
                .find(|(start, _)| bytes.starts_with(start))
                .map_or(Foreign::Other, |(_, what)| *what),
        ),
    }
}
