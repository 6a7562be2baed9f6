//! Directory listings, charged as the guest reads them.

use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, ErrorCode};
use wasmtime_wasi::p2::{FsResult, ReaddirIterator};

use crate::sandbox::guard::errors::Fault;
use crate::sandbox::guard::ledger::Ledger;

/// A directory listing that the stock layer has read.
pub(super) struct Listing {
    entries: Box<dyn Iterator<Item = FsResult<DirectoryEntry>> + Send>,
}

impl Listing {
    pub(super) fn new(entries: ReaddirIterator) -> Self {
        Self { entries: entries.into_iter() }
    }

    /// Returns the next entry, or none at the end. Skips names that are not Unicode: an error would
    /// hide all later entries from the guest.
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
