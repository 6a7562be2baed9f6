//! Directory listings, counted as the guest asks for them.

use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, ErrorCode};
use wasmtime_wasi::p2::{FsResult, ReaddirIterator};

use crate::sandbox::guard::errors::Fault;
use crate::sandbox::guard::ledger::Ledger;

/// What the stock layer has read of a directory.
pub(super) struct Listing {
    entries: Box<dyn Iterator<Item = FsResult<DirectoryEntry>> + Send>,
}

impl Listing {
    pub(super) fn new(entries: ReaddirIterator) -> Self {
        Self { entries: entries.into_iter() }
    }

    /// The next entry, or none at the end. Names that are not Unicode are left out: an error would hide all entries after it from the guest.
    pub(super) fn next(&mut self, ledger: &Ledger) -> Result<Option<DirectoryEntry>, Fault> {
        for entry in &mut self.entries {
            ledger.charge_listed()?;
            match entry.map_err(Fault::from_stock) {
                Err(Fault::Code(ErrorCode::IllegalByteSequence)) => {}
                entry => return entry.map(Some),
            }
        }
        Ok(None)
    }
}
