//! Giving a component to a registry.

use crate::credentials::CredentialsOf;
use crate::fetch::from_file;
use crate::layout::{self, Blob, Interface, Manifest, check_beginning};
use crate::reference::OciReference;
use crate::registry::{Access, Registry};
use crate::transfer_error::TransferError;
use bytes::Bytes;
use palisade::tool::Digest;
use palisade::workspace::LastLink;
use palisade_net::Network;
use palisade_trust::{check_form, signature_file};
use std::path::Path;

/// Whether a tag may be moved to other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// A tag with other bytes is an error.
    Refuse,
    /// The tag is moved.
    Replace,
}

/// A component in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The digest of the manifest, by which it can be pinned.
    pub manifest: Digest,
    /// The digest of the component.
    pub component: Digest,
    /// Whether a signature is with it.
    pub is_signed: bool,
}

/// Publishes a component, with the signature beside its file if there is one. `created` is a time
/// in the form of RFC 3339. Blocks the thread.
///
/// # Errors
///
/// [`TransferError`] if the file is no component, what is beside it is a link or no signature, the
/// reference has no tag, the tag has other bytes already, or the registry refuses a request.
pub fn publish(
    network: &Network,
    file: &Path,
    reference: &OciReference,
    credentials: &CredentialsOf,
    overwrite: Overwrite,
    created: &str,
) -> Result<Published, TransferError> {
    if reference.digest().is_some() || reference.tag().is_none() {
        return Err(TransferError::NoTag);
    }
    // A checkout may hold a link to any file of the user.
    let (bytes, signature) = from_file(file, LastLink::Keep)?;
    if let Some(text) = &signature {
        let path = signature_file(file);
        check_form(text).map_err(|reason| TransferError::Signature { path, reason })?;
    }
    check_beginning(&bytes)?;
    let interface = Interface::of(&bytes)?;
    let component = Blob::new(bytes);
    let is_signed = signature.is_some();
    let title = file.file_name().unwrap_or_default().to_string_lossy();
    let made = Manifest::of(&component, interface, &title, signature, created);
    let (manifest, config) =
        made.map_err(|error| TransferError::Layout { reason: error.to_string() })?;
    let mut registry = Registry::new(network, reference, Access::Push, credentials)?;
    push(&mut registry, [&component, &config], &manifest, overwrite)
        .map_err(|error| registry.without_its_words(error))?;
    Ok(Published { manifest: manifest.digest, component: component.digest, is_signed })
}

/// Uploads the blobs of a component and its manifest.
fn push(
    registry: &mut Registry<'_>,
    [component, config]: [&Blob; 2],
    manifest: &Blob,
    overwrite: Overwrite,
) -> Result<(), TransferError> {
    if overwrite == Overwrite::Refuse {
        check_free(registry, component.digest)?;
    }
    // The manifest comes last: what it names is there by then.
    for blob in [component, config] {
        registry.upload(blob.digest, &Bytes::copy_from_slice(&blob.bytes))?;
    }
    registry.put_manifest(layout::MANIFEST, &Bytes::copy_from_slice(&manifest.bytes))
}

/// Refuses a tag that has other bytes.
fn check_free(registry: &mut Registry<'_>, component: Digest) -> Result<(), TransferError> {
    let Some(text) = registry.manifest(layout::MANIFEST)? else { return Ok(()) };
    let found = match Manifest::layer(&text) {
        Ok(layer) if layer.digest == component => return Ok(()),
        Ok(layer) => layer.digest.to_string(),
        Err(_) => "an artifact of another layout".to_owned(),
    };
    Err(TransferError::Exists { reference: registry.reference().to_string(), found })
}
