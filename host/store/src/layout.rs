//! The layout of a component in a registry: that of the WebAssembly ecosystem (`wasm-oci-artifact`
//! of the CNCF's TAG Runtime), which `wkg` reads and writes.

use crate::limits;
use crate::reference::parse_digest;
use crate::transfer_error::TransferError;
use palisade::tool::Digest;
use palisade::tool::text::elided;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wasmparser::{Encoding, Parser, Payload};

/// The type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The type of a config.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The type of a component.
const COMPONENT: &str = "application/wasm";
/// The annotation of a manifest with a signature of minisign over the layer. Others ignore it.
const SIGNATURE: &str = "palisade.minisign";
/// The annotation with the name of a file.
const TITLE: &str = "org.opencontainers.image.title";
/// The version of the form of manifests.
const SCHEMA: u32 = 2;

/// A manifest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    schema_version: u32,
    media_type: Option<String>,
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The name of a blob.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The only layer of a manifest.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) signature: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    created: &'a str,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [String; 1],
    component: Interface,
}

/// The imports and exports of a component.
#[derive(Debug, Serialize)]
pub(crate) struct Interface {
    exports: Vec<String>,
    imports: Vec<String>,
    target: Option<String>,
}

/// A blob that is published.
pub(crate) struct Blob {
    pub(crate) digest: Digest,
    pub(crate) bytes: Vec<u8>,
}

impl Manifest {
    /// Reads a manifest and checks its layout.
    pub(crate) fn layer(text: &[u8]) -> Result<Layer, TransferError> {
        let wrong = |reason: String| TransferError::Layout { reason };
        let manifest: Self = serde_json::from_slice(text).map_err(|error| {
            wrong(format!(
                "it is no manifest of one artifact ({})",
                elided(&error.to_string(), 120)
            ))
        })?;
        if manifest.schema_version != SCHEMA
            || manifest.media_type.as_deref().is_some_and(|it| it != MANIFEST)
        {
            return Err(wrong("its manifest is none of an OCI artifact".to_owned()));
        }
        if manifest.config.media_type != CONFIG {
            let found = elided(&manifest.config.media_type, 80);
            return Err(wrong(format!("its config is of type `{found}`")));
        }
        let [layer] = manifest.layers.as_slice() else {
            return Err(wrong(format!("it has {} layers", manifest.layers.len())));
        };
        if layer.media_type != COMPONENT {
            let found = elided(&layer.media_type, 80);
            return Err(wrong(format!("its layer is of type `{found}`")));
        }
        if layer.size > limits::PLUGIN {
            return Err(wrong(format!("its layer has more than {} bytes", limits::PLUGIN)));
        }
        let signature = manifest.annotations.get(SIGNATURE);
        let signature = signature.filter(|text| text.len() as u64 <= limits::SIGNATURE);
        Ok(Layer {
            digest: parse_digest(&layer.digest).map_err(wrong)?,
            size: layer.size,
            signature: signature.cloned(),
        })
    }

    /// Returns the manifest of a component and its config.
    pub(crate) fn of(
        component: &Blob,
        interface: Interface,
        title: &str,
        signature: Option<String>,
        created: &str,
    ) -> Result<(Blob, Blob), serde_json::Error> {
        let layer_digests = [component.digest.to_string()];
        let config = Config {
            created,
            architecture: "wasm",
            os: "wasip2",
            layer_digests,
            component: interface,
        };
        let config = Blob::new(serde_json::to_vec(&config)?);
        let title = BTreeMap::from([(TITLE.to_owned(), title.to_owned())]);
        let manifest = Self {
            schema_version: SCHEMA,
            media_type: Some(MANIFEST.to_owned()),
            config: config.descriptor(CONFIG, BTreeMap::new()),
            layers: vec![component.descriptor(COMPONENT, title)],
            annotations: signature.map(|text| (SIGNATURE.to_owned(), text)).into_iter().collect(),
        };
        Ok((Blob::new(serde_json::to_vec(&manifest)?), config))
    }
}

impl Blob {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::of(&bytes), bytes }
    }

    fn descriptor(&self, media_type: &str, annotations: BTreeMap<String, String>) -> Descriptor {
        Descriptor {
            media_type: media_type.to_owned(),
            digest: self.digest.to_string(),
            size: self.bytes.len() as u64,
            annotations,
        }
    }
}

impl Interface {
    /// Reads the imports and exports of a component.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, TransferError> {
        let wrong = |reason: String| TransferError::NoComponent { reason };
        let mut interface = Self { exports: Vec::new(), imports: Vec::new(), target: None };
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(|error| wrong(elided(&error.to_string(), 120)))?;
            match payload {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err(wrong("it is a core module".to_owned()));
                }
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 1 => {
                    for import in section {
                        let import = import.map_err(|error| wrong(error.to_string()))?;
                        interface.imports.push(import.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 1 => {
                    for export in section {
                        let export = export.map_err(|error| wrong(error.to_string()))?;
                        interface.exports.push(export.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(interface)
    }
}

/// Refuses bytes that do not begin like a component, before anything else looks at them.
pub(crate) fn check_beginning(bytes: &[u8]) -> Result<(), TransferError> {
    let no = |reason: &str| Err(TransferError::NoComponent { reason: reason.to_owned() });
    match bytes {
        // The layer 1 is that of components.
        [0, b'a', b's', b'm', _, _, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', ..] => no("it is a core module"),
        [0x1f, 0x8b, ..] | [b'P', b'K', ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            no("it is an archive")
        }
        [b'<', ..] => no("it is a page of text"),
        [] => no("it is empty"),
        _ => no("it begins with other bytes"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    /// The beginning of a component, which is a whole empty one.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn published() -> Vec<u8> {
        let blob = Blob::new(EMPTY.to_vec());
        let interface = Interface::of(EMPTY).unwrap();
        let signature = Some("signed".to_owned());
        Manifest::of(&blob, interface, "a.wasm", signature, "2026-01-01T00:00:00Z").unwrap().0.bytes
    }

    #[test]
    fn own_manifest_is_read_again() {
        let layer = Manifest::layer(&published()).unwrap();
        assert_eq!((layer.digest, layer.size), (Digest::of(EMPTY), EMPTY.len() as u64));
        assert_eq!(layer.signature.as_deref(), Some("signed"));
    }

    #[test]
    fn other_layout_is_refused_with_the_accepted_one() {
        let text = String::from_utf8(published()).unwrap();
        for (from, to) in [
            (CONFIG, "application/vnd.oci.image.config.v1+json"),
            ("\"application/wasm\"", "\"application/gzip\""),
            ("\"schemaVersion\":2", "\"schemaVersion\":1"),
            (MANIFEST, "application/vnd.oci.image.index.v1+json"),
            ("sha256:", "sha512:"),
            ("\"layers\":[", "\"layers\":[], \"x\": ["),
            ("\"size\":8", "\"size\":99999999999"),
        ] {
            assert!(text.contains(from), "{from}");
            let refused = Manifest::layer(text.replace(from, to).as_bytes()).unwrap_err();
            assert!(refused.to_string().contains("palisade publish"), "{from}: {refused}");
        }
    }

    #[test]
    fn archive_page_and_module_are_no_component() {
        for bytes in [&b"\x1f\x8b"[..], b"PK\x03\x04", b"<html>", b"", b"\0asm\x01\0\0\0", b"abc"] {
            assert!(check_beginning(bytes).is_err(), "{bytes:?}");
        }
        assert!(check_beginning(EMPTY).is_ok());
        assert!(Interface::of(b"\0asm\x01\0\0\0").is_err());
    }
}
