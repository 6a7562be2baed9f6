//! The host traits of the bindings: each method checks, delegates to the stock layer and records
//! the change.

use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::listing::Listing;
use super::node::Node;
use super::view::{StockView, stock};
use crate::sandbox::guard::PREOPEN_NAME;
use crate::sandbox::guard::errors::{Fault, Refusal};
use crate::sandbox::guard::file::wide;
use crate::sandbox::guard::path::{self, GuestPath};
use crate::sandbox::guard::streams::{Position, Reader};

impl preopens::Host for StockView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let Some(root) = self.root else { return Ok(Vec::new()) };
        let inner = self.table.push(Descriptor::Dir(root.dir(self.access)))?;
        let node = self.table.push(Node::new(&inner, String::new(), None))?;
        Ok(vec![(Resource::new_own(node.rep()), PREOPEN_NAME.to_owned())])
    }
}

impl types::Host for StockView<'_> {
    fn convert_error_code(&mut self, err: FsError) -> wasmtime::Result<ErrorCode> {
        err.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        err: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(self.table.get(&err)?.downcast_ref::<ErrorCode>().copied())
    }
}

impl HostDescriptor for StockView<'_> {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynInputStream>> {
        let file = self.file(&fd, ErrorCode::IsDirectory).cloned();
        let file = self.ledger.answer(file)?;
        let stream: DynInputStream = Box::new(Reader::new(file, Arc::clone(self.ledger), offset));
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&fd, Position::At(offset))
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writer(&fd, Position::End)
    }

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        _: u64,
        _: u64,
        _: Advice,
    ) -> FsResult<()> {
        let outcome = self.file(&fd, ErrorCode::BadDescriptor).map(|_| ());
        self.ledger.answer(outcome)
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        let outcome = self.sync_changes(&fd).await;
        self.ledger.answer(outcome)
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        let outcome = self.sync_changes(&fd).await;
        self.ledger.answer(outcome)
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        let outcome = async { stock!(self, &fd, get_flags) }.await;
        self.ledger.answer(outcome)
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        let outcome = async { stock!(self, &fd, get_type) }.await;
        self.ledger.answer(outcome)
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: u64) -> FsResult<()> {
        let file = self.check_writable().and_then(|()| self.file(&fd, ErrorCode::BadDescriptor));
        let outcome = file.and_then(|file| file.set_size(self.ledger, size));
        self.ledger.answer(outcome)
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let outcome = async {
            self.check_writable()?;
            self.ledger.rules()?.check_names(&self.node(&fd)?.name)?;
            stock!(self, &fd, set_times, access, modification)?;
            self.ledger.note_changed(&self.node(&fd)?.name);
            Ok(())
        };
        let outcome = outcome.await;
        self.ledger.answer(outcome)
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        len: u64,
        offset: u64,
    ) -> FsResult<(Vec<u8>, bool)> {
        let file = self.file(&fd, ErrorCode::BadDescriptor);
        let outcome = file.and_then(|file| file.read(self.ledger, len, offset));
        let bytes = self.ledger.answer(outcome)?;
        let end = bytes.is_empty() && len > 0;
        Ok((bytes, end))
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: u64,
    ) -> FsResult<u64> {
        let file = self.check_writable().and_then(|()| self.file(&fd, ErrorCode::BadDescriptor));
        let outcome = file.and_then(|file| file.write(self.ledger, &bytes, offset));
        self.ledger.answer(outcome).map(wide)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        let outcome = async { stock!(self, &fd, read_directory) }.await;
        let entries = self.ledger.answer(outcome)?;
        let listing = Listing::new(self.table.delete(entries)?);
        let listing = self.table.push(listing)?;
        Ok(Resource::new_own(listing.rep()))
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let outcome = async {
            let name = self.change(&fd, &path)?;
            self.ledger.check_depth(path::depth(&name))?;
            self.check_addition(&fd, &path).await?;
            self.ledger.charge_entry()?;
            let made = stock!(self, &fd, create_directory_at, path);
            made.inspect_err(|_| self.ledger.refund_entry())?;
            self.ledger.note_created(&name);
            Ok(())
        };
        let outcome = outcome.await;
        self.ledger.answer(outcome)
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        let outcome = async { stock!(self, &fd, stat) }.await;
        self.ledger.answer(outcome)
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let outcome = self.look(&fd, flags, &path).await;
        self.ledger.answer(outcome)
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let outcome = async {
            let name = self.change(&fd, &path)?;
            stock!(self, &fd, set_times_at, flags, path, access, modification)?;
            self.ledger.note_changed(&name);
            Ok(())
        };
        let outcome = outcome.await;
        self.ledger.answer(outcome)
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let outcome = self.link((&fd, old_path), flags, (&new_fd, new_path)).await;
        self.ledger.answer(outcome)
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let outcome = self.open(&fd, path_flags, path, open_flags, flags).await;
        self.ledger.answer(outcome)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        let outcome = async {
            GuestPath::parse(&path)?;
            stock!(self, &fd, readlink_at, path)
        };
        let outcome = outcome.await;
        self.ledger.answer(outcome)
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let outcome = async {
            let name = self.change(&fd, &path)?;
            stock!(self, &fd, remove_directory_at, path)?;
            self.ledger.note_gone(&name);
            Ok(())
        };
        let outcome = outcome.await;
        self.ledger.answer(outcome)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let outcome = async {
            let (old, new) = (self.change(&fd, &old_path)?, self.change(&new_fd, &new_path)?);
            self.ledger.check_depth(path::depth(&new))?;
            self.check_addition(&new_fd, &new_path).await?;
            let replaces = self.look(&new_fd, PathFlags::empty(), &new_path).await.is_ok();
            let to = self.inner(&new_fd)?;
            stock!(self, &fd, rename_at, old_path, to, new_path)?;
            self.ledger.note_moved(&old, &new, replaces);
            Ok(())
        };
        let outcome = outcome.await;
        self.ledger.answer(outcome)
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, _: String, _: String) -> FsResult<()> {
        let node = self.check_writable().and_then(|()| self.node(&fd));
        let outcome = node.and_then(|_| Err(Refusal::Symlink.into()));
        self.ledger.answer(outcome)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let outcome = async {
            let name = self.change(&fd, &path)?;
            stock!(self, &fd, unlink_file_at, path)?;
            self.ledger.note_gone(&name);
            Ok(())
        };
        let outcome = outcome.await;
        self.ledger.answer(outcome)
    }

    async fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        let (a, b) = (self.node(&a)?.inner(), self.node(&b)?.inner());
        let mut ctx = WasiFilesystemCtx::default();
        WasiFilesystemCtxView { ctx: &mut ctx, table: self.table }.is_same_object(a, b).await
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        let outcome = async { stock!(self, &fd, metadata_hash) }.await;
        self.ledger.answer(outcome)
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let outcome = async {
            GuestPath::parse(&path)?;
            stock!(self, &fd, metadata_hash_at, flags, path)
        };
        let outcome = outcome.await;
        self.ledger.answer(outcome)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        let node = self.table.delete(Resource::<Node>::new_own(fd.rep()))?;
        self.table.delete(node.into_inner())?;
        Ok(())
    }
}

impl types::HostDirectoryEntryStream for StockView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        let outcome = listing.next(self.ledger);
        self.ledger.answer(outcome)
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}
