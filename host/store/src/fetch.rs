//! Getting a plugin from its source, within bounds.

use crate::credentials::CredentialsOf;
use crate::layout::{self, Manifest, check_beginning};
use crate::limits;
use crate::redirects::{follow, shown, status};
use crate::reference::OciReference;
use crate::registry::{Access, Registry};
use crate::source::Source;
use crate::transfer_error::TransferError;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use palisade::internal::open_regular;
use palisade::tool::Digest;
use palisade::workspace::LastLink;
use palisade_net::{Exchange, ExchangeError, Network, Reach};
use palisade_trust::signature_file;
use std::io::{self, Read as _};
use std::path::Path;

/// A fetched plugin. It has not run, and has no approval.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fetched {
    /// The bytes, which begin like a component.
    pub bytes: Vec<u8>,
    /// The digest of the bytes.
    pub digest: Digest,
    /// The signature that comes with the plugin, which nobody has verified.
    pub signature: Option<String>,
    /// The digest of the manifest that the source resolved to, for a registry.
    pub resolved: Option<Digest>,
}

/// Fetches a plugin. Blocks the thread.
///
/// # Errors
///
/// [`TransferError`] if the source does not answer within the limits, answers with other bytes than
/// its digests say, or has no component.
pub fn fetch(
    network: &Network,
    source: &Source,
    credentials: &CredentialsOf,
) -> Result<Fetched, TransferError> {
    let (bytes, signature, resolved) = match source {
        Source::File(path) => {
            let (bytes, signature) = from_file(path, LastLink::Follow)?;
            (bytes, signature, None)
        }
        Source::Web(url) => {
            let bytes = download(network, url, limits::PLUGIN)?;
            // Before the signature is asked for, so that an error page is refused as such.
            check_beginning(&bytes)?;
            (bytes, signature_of(network, url)?, None)
        }
        Source::Oci(reference) => from_registry(network, reference, credentials)?,
    };
    check_beginning(&bytes)?;
    Ok(Fetched { digest: Digest::of(&bytes), bytes, signature, resolved })
}

/// Reads a plugin file and its signature, which may be a symbolic link if `link` is followed.
pub(crate) fn from_file(
    path: &Path,
    link: LastLink,
) -> Result<(Vec<u8>, Option<String>), TransferError> {
    let failed = |path: &Path, reason| TransferError::File { path: path.to_owned(), reason };
    let bytes =
        read(path, LastLink::Follow, limits::PLUGIN).map_err(|reason| failed(path, reason))?;
    let beside = signature_file(path);
    let signature = match read(&beside, link, limits::SIGNATURE) {
        Ok(text) => Some(String::from_utf8_lossy(&text).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(reason) => return Err(failed(&beside, reason)),
    };
    Ok((bytes, signature))
}

fn read(path: &Path, link: LastLink, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, link)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it is larger than {most} bytes"))),
        false => Ok(bytes),
    }
}

fn download(network: &Network, url: &str, most: u64) -> Result<Vec<u8>, TransferError> {
    let exchange = Exchange {
        method: Method::GET,
        url: url.to_owned(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        reach: Reach::Private,
        most,
    };
    let (answer, _) = follow(network, exchange)?;
    match answer.status {
        StatusCode::OK => Ok(answer.body),
        _ => Err(status(url, &answer)),
    }
}

/// Fetches the signature beside a file. A server that does not have it refuses it in one way or
/// another, or sends a page.
fn signature_of(network: &Network, url: &str) -> Result<Option<String>, TransferError> {
    let (path, query) =
        url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    match download(network, &format!("{path}.minisig{query}"), limits::SIGNATURE) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(TransferError::Status { status: 400..500, .. })
        | Err(TransferError::Exchange { reason: ExchangeError::TooLarge { .. }, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The bytes of a plugin, its signature and the digest of its manifest.
type Pulled = (Vec<u8>, Option<String>, Option<Digest>);

fn from_registry(
    network: &Network,
    reference: &OciReference,
    credentials: &CredentialsOf,
) -> Result<Pulled, TransferError> {
    let mut registry = Registry::new(network, reference, Access::Pull, credentials)?;
    pull(&mut registry, reference).map_err(|error| registry.without_its_words(error))
}

fn pull(registry: &mut Registry<'_>, reference: &OciReference) -> Result<Pulled, TransferError> {
    let manifest = registry.manifest(layout::MANIFEST)?.ok_or_else(|| TransferError::Status {
        url: shown(&reference.url("manifests")),
        status: 404,
        said: format!(": there is no `{reference}`"),
    })?;
    let resolved = Digest::of(&manifest);
    let named = reference.digest().unwrap_or(resolved);
    same("manifest", resolved, named)?;
    let layer = Manifest::layer(&manifest)?;
    let bytes = registry.blob(layer.digest, layer.size)?;
    same("layer", Digest::of(&bytes), layer.digest)?;
    Ok((bytes, layer.signature, Some(resolved)))
}

/// Refuses bytes with another digest than the one that was named.
fn same(part: &'static str, found: Digest, named: Digest) -> Result<(), TransferError> {
    match found == named {
        true => Ok(()),
        false => Err(TransferError::OtherBytes { part, found, named }),
    }
}
