//! The host traits of the generated bindings. They only order the checks before each operation.

use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::listing::Listing;
use super::locate::Follow;
use super::mount::OpenDir;
use super::node::Node;
use super::open::Wish;
use super::{attributes, entries, open, sync};
use crate::FilesystemView;
use crate::errors::{Fault, Refusal};
use crate::file::{OpenFile, wide};
use crate::streams::{Position, Reader, Writer};
use crate::usage::Usage;

impl preopens::Host for FilesystemView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let root = self.filesystem.root.as_ref();
        // Without a mount as well: a guest without a preopened directory would fail to find a path
        // in its own library, unseen by the host.
        let root = root.map_or(Node::Unmounted, |root| Node::Dir(Arc::clone(root)));
        Ok(vec![(self.push(root)?, self.filesystem.name.to_string())])
    }
}

impl types::Host for FilesystemView<'_> {
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

impl types::HostDescriptor for FilesystemView<'_> {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<DynInputStream>> {
        let file = self.file(&fd, ErrorCode::IsDirectory).cloned();
        let file = self.usage().answer(file)?;
        let stream: DynInputStream = Box::new(Reader::new(file, Arc::clone(self.usage()), offset));
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

    /// Accepts the advice and ignores it: it cannot change the result of a read, only the page
    /// cache of the host.
    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        _: u64,
        _: u64,
        _: Advice,
    ) -> FsResult<()> {
        let outcome = self.file(&fd, ErrorCode::BadDescriptor).map(|_| ());
        self.usage().answer(outcome)
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        let outcome = self
            .node(&fd)
            .and_then(|node| sync::sync(node, self.filesystem.access, sync::What::Data));
        self.usage().answer(outcome)
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        let outcome = self
            .node(&fd)
            .and_then(|node| sync::sync(node, self.filesystem.access, sync::What::All));
        self.usage().answer(outcome)
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        let outcome = self.node(&fd).map(|node| node.flags(self.filesystem.access));
        self.usage().answer(outcome)
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        let outcome = self.node(&fd).map(|node| match node {
            Node::Dir(_) | Node::Unmounted => DescriptorType::Directory,
            Node::File(_) => DescriptorType::RegularFile,
        });
        self.usage().answer(outcome)
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: u64) -> FsResult<()> {
        let file = self.check_writable().and_then(|()| self.file(&fd, ErrorCode::BadDescriptor));
        let outcome = file.and_then(|file| file.set_size(self.usage(), size));
        self.usage().answer(outcome)
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let node = self.check_writable().and_then(|()| self.node(&fd));
        let outcome =
            node.and_then(|node| attributes::set_times(node, access, modification, self.usage()));
        self.usage().answer(outcome)
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        len: u64,
        offset: u64,
    ) -> FsResult<(Vec<u8>, bool)> {
        let file = self.file(&fd, ErrorCode::BadDescriptor);
        let outcome = file.and_then(|file| file.read(self.usage(), len, offset));
        let bytes = self.usage().answer(outcome)?;
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
        let outcome = file.and_then(|file| file.write(self.usage(), &bytes, offset));
        self.usage().answer(outcome).map(wide)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        let outcome = self.dir(&fd).and_then(|dir| Listing::open(dir, self.usage()));
        let listing = self.usage().answer(outcome)?;
        let listing = self.table.push(listing)?;
        Ok(Resource::new_own(listing.rep()))
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let dir = self.check_writable().and_then(|()| self.dir(&fd));
        let outcome = dir.and_then(|dir| entries::create_directory(dir, &path, self.usage()));
        self.usage().answer(outcome)
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        let outcome = self.node(&fd).and_then(|node| attributes::stat(node, self.usage()));
        self.usage().answer(outcome)
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let outcome = self
            .dir(&fd)
            .and_then(|dir| attributes::stat_at(dir, &path, Follow::from(flags), self.usage()));
        self.usage().answer(outcome)
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let dir = self.check_writable().and_then(|()| self.dir(&fd));
        let set = |dir: &Arc<OpenDir>| {
            attributes::set_times_at(
                dir,
                &path,
                Follow::from(flags),
                (access, modification),
                self.usage(),
            )
        };
        self.usage().answer(dir.and_then(set))
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let dirs = self.check_writable().and_then(|()| Ok((self.dir(&fd)?, self.dir(&new_fd)?)));
        let outcome = dirs.and_then(|(old, new)| {
            entries::link((old, &old_path), Follow::from(flags), (new, &new_path), self.usage())
        });
        self.usage().answer(outcome)
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let outcome = Wish::new(path_flags, open_flags, flags).and_then(|wish| {
            if wish.changes() {
                self.check_writable()?;
            }
            open::open(self.dir(&fd)?, &path, wish, self.filesystem.access, self.usage())
        });
        let node = self.usage().answer(outcome)?;
        Ok(self.push(node)?)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        let outcome = self.dir(&fd).and_then(|dir| entries::read_link(dir, &path, self.usage()));
        self.usage().answer(outcome)
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let dir = self.check_writable().and_then(|()| self.dir(&fd));
        let outcome = dir.and_then(|dir| entries::remove_directory(dir, &path, self.usage()));
        self.usage().answer(outcome)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let dirs = self.check_writable().and_then(|()| Ok((self.dir(&fd)?, self.dir(&new_fd)?)));
        let outcome = match dirs {
            Ok((old, new)) => {
                entries::rename((old, &old_path), (new, &new_path), self.usage()).await
            }
            Err(fault) => Err(fault),
        };
        self.usage().answer(outcome)
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, _: String, _: String) -> FsResult<()> {
        let dir = self.check_writable().and_then(|()| self.dir(&fd));
        let outcome = dir.and_then(|_| Err(Refusal::Symlink.into()));
        self.usage().answer(outcome)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let dir = self.check_writable().and_then(|()| self.dir(&fd));
        let outcome = dir.and_then(|dir| entries::unlink(dir, &path, self.usage()));
        self.usage().answer(outcome)
    }

    async fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        // The interface has no error here. An open file without readable metadata is a host
        // failure.
        let nodes = self.node(&a).and_then(|a| Ok((a, self.node(&b)?)));
        nodes.and_then(|(a, b)| attributes::is_same(a, b)).map_err(wasmtime::Error::new)
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        let outcome = self.node(&fd).and_then(attributes::hash);
        self.usage().answer(outcome)
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let outcome = self
            .dir(&fd)
            .and_then(|dir| attributes::hash_at(dir, &path, Follow::from(flags), self.usage()));
        self.usage().answer(outcome)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Node>::new_own(fd.rep()))?;
        Ok(())
    }
}

impl types::HostDirectoryEntryStream for FilesystemView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        let outcome = listing.next(&self.filesystem.usage).await;
        self.usage().answer(outcome)
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

impl FilesystemView<'_> {
    /// Inserts a node into the table under the type of the bindings; only the index is shared.
    fn push(
        &mut self,
        node: Node,
    ) -> Result<Resource<Descriptor>, wasmtime::component::ResourceTableError> {
        let node = self.table.push(node)?;
        Ok(Resource::new_own(node.rep()))
    }

    fn check_writable(&self) -> Result<(), Fault> {
        match self.filesystem.root {
            Some(_) => self.filesystem.access.check_writable(),
            None => Err(Refusal::Unmounted.into()),
        }
    }

    fn usage(&self) -> &Arc<Usage> {
        &self.filesystem.usage
    }

    fn node(&self, fd: &Resource<Descriptor>) -> Result<&Node, Fault> {
        Ok(self.table.get(&Resource::<Node>::new_borrow(fd.rep()))?)
    }

    fn dir(&self, fd: &Resource<Descriptor>) -> Result<&Arc<OpenDir>, Fault> {
        self.node(fd)?.dir()
    }

    fn file(
        &self,
        fd: &Resource<Descriptor>,
        otherwise: ErrorCode,
    ) -> Result<&Arc<OpenFile>, Fault> {
        self.node(fd)?.file(otherwise)
    }

    fn writer(
        &mut self,
        fd: &Resource<Descriptor>,
        position: Position,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file =
            self.check_writable().and_then(|()| self.file(fd, ErrorCode::BadDescriptor)).cloned();
        let file = self.usage().answer(file)?;
        let stream: DynOutputStream =
            Box::new(Writer::new(file, Arc::clone(self.usage()), position));
        Ok(self.table.push(stream)?)
    }
}
