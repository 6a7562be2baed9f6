//! A component: its exports, and what it can do without.

use std::mem;
use wasm_encoder::{ComponentSectionId, Encode as _, RawSection, Section as _};
use wasmparser::{BinaryReaderError, Encoding, Parser, Payload};

/// The beginning of the name of the export that makes a component a plugin.
pub(crate) const CONTRACT: &str = "palisade:tool/tool@";

/// Returns the names of a component's exports.
///
/// # Errors
///
/// If the bytes are not a component.
pub(crate) fn exports(bytes: &[u8]) -> Result<Vec<String>, String> {
    if !Parser::is_component(bytes) {
        let what = match Parser::is_core_wasm(bytes) {
            true => "a core module, not a component; `palisade build` makes components",
            false => "not WebAssembly",
        };
        return Err(format!("it is {what}"));
    }
    let (mut names, mut depth) = (Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| error.to_string())? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentExportSection(exports) if depth == 0 => {
                for export in exports {
                    names.push(export.map_err(|error| error.to_string())?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Removes the custom sections that no host reads, at every level: names, debug information and
/// records of the producers.
///
/// # Errors
///
/// If the bytes are not WebAssembly.
pub(crate) fn stripped(bytes: &[u8]) -> Result<Vec<u8>, BinaryReaderError> {
    let mut outer: Vec<Vec<u8>> = Vec::new();
    let mut output = Vec::with_capacity(bytes.len());
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::Version { encoding, .. } => output.extend_from_slice(match encoding {
                Encoding::Component => &wasm_encoder::Component::HEADER,
                Encoding::Module => &wasm_encoder::Module::HEADER,
            }),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                outer.push(mem::take(&mut output));
            }
            Payload::End(_) => {
                let Some(mut parent) = outer.pop() else { break };
                let is_component = output.starts_with(&wasm_encoder::Component::HEADER);
                parent.push(match is_component {
                    true => ComponentSectionId::Component.into(),
                    false => ComponentSectionId::CoreModule.into(),
                });
                output.encode(&mut parent);
                output = parent;
            }
            Payload::CustomSection(section) if is_spare(section.name()) => {}
            other => {
                if let Some((id, range)) = other.as_section() {
                    let data = bytes.get(range).unwrap_or_default();
                    RawSection { id, data }.append_to(&mut output);
                }
            }
        }
    }
    Ok(output)
}

fn is_spare(name: &str) -> bool {
    matches!(name, "name" | "component-name" | "producers" | "target_features" | "linking")
        || name.starts_with(".debug_")
        || name.starts_with("reloc.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a component with a module of one function, and custom sections at both levels.
    fn component() -> Vec<u8> {
        use wasm_encoder::{Component, CustomSection, Module, ModuleSection};
        let custom =
            |name: &'static str| CustomSection { name: name.into(), data: (&[7; 9]).into() };
        let mut module = Module::new();
        module.section(&custom("producers")).section(&custom("kept")).section(&custom("name"));
        let mut component = Component::new();
        component.section(&ModuleSection(&module)).section(&custom(".debug_info"));
        component.finish()
    }

    fn sections(bytes: &[u8]) -> Vec<String> {
        let named = |payload| match payload {
            Ok(Payload::CustomSection(section)) => Some(section.name().to_owned()),
            _ => None,
        };
        Parser::new(0).parse_all(bytes).filter_map(named).collect()
    }

    #[test]
    fn spare_sections_are_removed_at_every_level() {
        let before = component();
        assert_eq!(sections(&before), ["producers", "kept", "name", ".debug_info"]);
        let after = stripped(&before).expect("it is WebAssembly");
        assert_eq!(sections(&after), ["kept"]);
        assert_eq!(stripped(&after).expect("it is WebAssembly"), after);
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(stripped(b"nothing").is_err());
    }
}
