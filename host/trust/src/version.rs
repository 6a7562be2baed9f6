//! The version that a component names in its custom section `version`.

use palisade::tool::text::first_deceptive;
use wasmparser::{Parser, Payload};

/// The longest version, in bytes.
const LONGEST: usize = 64;

/// Returns the version of a component, if it names one of printable characters.
pub(crate) fn version_of(component: &[u8]) -> Option<String> {
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        match payload.ok()? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            // A part has a version of its own.
            Payload::CustomSection(section) if depth == 0 && section.name() == "version" => {
                let text = str::from_utf8(section.data()).ok()?.trim();
                let is_plain = !text.is_empty()
                    && text.len() <= LONGEST
                    && first_deceptive(text).is_none()
                    && !text.contains(char::is_whitespace);
                return is_plain.then(|| text.to_owned());
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an empty component with this custom section.
    fn component(name: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        let mut content = vec![u8::try_from(name.len()).unwrap_or_default()];
        content.extend_from_slice(name.as_bytes());
        content.extend_from_slice(data);
        bytes.extend([0, u8::try_from(content.len()).unwrap_or_default()]);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn version_is_read_from_the_components_own_section() {
        assert_eq!(version_of(&component("version", b"1.2.3")).as_deref(), Some("1.2.3"));
        assert_eq!(version_of(&component("versions", b"1.2.3")), None);
        assert_eq!(version_of(&component("version", "1.2\u{202e}".as_bytes())), None);
        assert_eq!(version_of(&component("version", b"1.2 or so")), None);
        assert_eq!(version_of(b"no component"), None);
        let mut outer = b"\0asm\x0d\0\x01\0".to_vec();
        let inner = component("version", b"9.9.9");
        outer.extend([4, u8::try_from(inner.len()).unwrap_or_default()]);
        outer.extend(inner);
        assert_eq!(version_of(&outer), None, "the version of a part is not that of the whole");
    }
}
