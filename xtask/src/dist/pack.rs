//! Packs files into archives whose bytes depend on the files alone: in the order of their paths,
//! with one fixed time and no owner.

use super::files::Files;
use anyhow::Context as _;
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, GzBuilder};
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use std::io::Write as _;

/// The time of every file: 1985-10-26 08:15:00 UTC, as in every package of npm. A zip file has no
/// time before 1980, and `tar` warns of the year 1970.
const TIME: u64 = 499_162_500;

/// The system in the head of a gzip stream: unknown, so that every system writes the same.
const ANY_SYSTEM: u8 = 255;

/// The mode bits of a regular file, without which pip ignores the permissions.
const REGULAR: u32 = 0o100_000;

/// How much a package is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Quickly, for a trial.
    Low,
    /// As small as possible, for a release.
    High,
}

impl Effort {
    fn level(self) -> Compression {
        match self {
            Self::Low => Compression::fast(),
            Self::High => Compression::best(),
        }
    }
}

/// Packs files into a compressed tar archive, below the directory `top`.
pub(super) fn tar_gz(files: &Files, top: &str, effort: Effort) -> anyhow::Result<Vec<u8>> {
    let gzip: GzEncoder<Vec<u8>> =
        GzBuilder::new().operating_system(ANY_SYSTEM).write(Vec::new(), effort.level());
    let mut archive = tar::Builder::new(gzip);
    for (path, file) in files.iter() {
        let mut header = tar::Header::new_gnu();
        header.set_mode(file.mode.permissions());
        header.set_mtime(TIME);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(file.bytes.len().try_into()?);
        archive
            .append_data(&mut header, format!("{top}/{path}"), &*file.bytes)
            .with_context(|| format!("packing {path}"))?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// Packs files into a zip archive.
pub(super) fn zip(files: &Files, effort: Effort) -> anyhow::Result<Vec<u8>> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    let time = UtcDateTime::from_unix(TIME.try_into()?);
    for (path, file) in files.iter() {
        let (mut entry, config) = archive
            .new_file(path)
            .compression_method(CompressionMethod::DEFLATE)
            .last_modified(time)
            .unix_permissions(REGULAR | file.mode.permissions())
            .start()
            .with_context(|| format!("packing {path}"))?;
        let mut data = config.wrap(DeflateEncoder::new(&mut entry, effort.level()));
        data.write_all(&file.bytes)?;
        let (encoder, descriptor) = data.finish()?;
        encoder.finish()?;
        entry.finish(descriptor)?;
    }
    Ok(archive.finish()?)
}
