//! The sources that keys are bound to: directories, and the beginnings of URLs.

use std::path::{Path, PathBuf};

/// Returns true if a configured source is that of a plugin, or the beginning of its URL. A file
/// that was added by its path counts to its directory, so that a copy needs the same signature.
pub(super) fn covers(configured: &str, source: &str) -> bool {
    if let Some(path) = source.strip_prefix("file://") {
        let folder = Path::new(path).parent();
        return configured == source
            || folder.is_some_and(|folder| real(configured) == real_path(folder));
    }
    match (is_url(configured), is_url(source)) {
        (false, false) => real(configured) == real(source),
        (true, true) => source.strip_prefix(configured).is_some_and(|rest| {
            rest.is_empty() || configured.ends_with('/') || rest.starts_with(['/', ':', '@', '?'])
        }),
        (false, true) | (true, false) => false,
    }
}

/// Returns true if a source is a URL, and no directory.
pub(super) fn is_url(source: &str) -> bool {
    source.contains("://")
}

/// Returns the directory that a source leads to, or its text if there is none.
fn real(source: &str) -> PathBuf {
    real_path(Path::new(source))
}

fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
