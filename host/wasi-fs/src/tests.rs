//! Tests of the file system on real directories, through the host traits of the bindings and with
//! every path resolver of this system.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bare;
mod changes;
mod filter;
mod links;
mod listing;
#[cfg(target_os = "linux")]
mod opened;
mod paths;
mod permissions;
mod protected;
mod quotas;
mod read_only;
#[cfg(target_os = "linux")]
mod special;
mod streams;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tempfile::TempDir;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsResult, StreamError};

use super::direct::Resolver;
use super::filesystem::PREOPEN_NAME;
use super::usage::Usage;
use super::{Access, DescriptorLimit, Filesystem, FilesystemView, Mount, Options, Quotas};
use crate::protected_paths::{HardLinks, ProtectedPaths, Protection};

const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const READ: DescriptorFlags = DescriptorFlags::READ;
const WRITE: DescriptorFlags = DescriptorFlags::WRITE;

/// Returns every path resolver of this system.
fn resolvers() -> Vec<Resolver> {
    let mut all = vec![Resolver::Walk];
    #[cfg(target_os = "linux")]
    all.push(Resolver::Kernel);
    all
}

/// Runs a test once per resolver, on a writable workspace with generous quotas.
fn everywhere(test: impl Fn(&mut Call)) {
    for resolver in resolvers() {
        test(&mut Call::new(resolver, Access::ReadWrite, Quotas::default()));
    }
}

/// One call: a file system over a workspace, next to a file outside of it that must stay
/// unreachable.
struct Call {
    outer: TempDir,
    table: ResourceTable,
    fs: Filesystem,
    rules: Arc<ProtectedPaths>,
    quotas: Quotas,
}

impl Call {
    /// Creates a call that allows files with several hard links, which have their own tests.
    fn new(resolver: Resolver, access: Access, quotas: Quotas) -> Self {
        let mut call = Self::strict(resolver, access, quotas);
        call.keep(Protection::new(HardLinks::Allow, Vec::new()));
        call
    }

    /// Creates a call under the default rules.
    fn strict(resolver: Resolver, access: Access, quotas: Quotas) -> Self {
        let outer = TempDir::new().unwrap();
        let workspace = outer.path().join("workspace");
        fs::create_dir_all(workspace.join("dir/sub")).unwrap();
        fs::write(workspace.join("file.txt"), "inside").unwrap();
        fs::write(workspace.join("dir/deep.txt"), "deep").unwrap();
        fs::create_dir(outer.path().join("outside")).unwrap();
        fs::write(outer.path().join("outside/secret.txt"), "secret").unwrap();
        let handle = fs::File::open(&workspace).unwrap();
        let mount = Mount::with_resolver(handle.into(), resolver);
        let rules = Arc::new(rules_of(&workspace));
        let options = Options::default().with_quotas(quotas);
        let fs = Filesystem::new(&mount, access, rules.clone(), options);
        Self { outer, table: ResourceTable::new(), fs, rules, quotas }
    }

    /// Reopens the workspace for another call, with the rules of a host and the current repository.
    fn keep(&mut self, rules: Protection) {
        let root = self.host("").canonicalize().unwrap();
        self.rules = Arc::new(rules_of(&root).with(&Arc::new(rules), &root));
        self.again();
    }

    /// Reopens the workspace for another call, as a directory of the one around it.
    fn within_another(&mut self) {
        let outer = self.outer.path().canonicalize().unwrap();
        let root = outer.join("workspace");
        let handle = fs::File::open(&root).unwrap();
        self.rules = Arc::new(rules_of(&outer).below(&handle, &root, "workspace").unwrap());
        self.again();
    }

    /// Starts another call in the same workspace.
    fn again(&mut self) {
        let root = self.fs.root.clone().unwrap();
        let access = self.fs.access;
        let budget = Arc::new(DescriptorLimit::default());
        let usage = Usage::new(self.quotas, Some(self.rules.clone()), Some(budget));
        let usage = Arc::new(usage);
        let name = PREOPEN_NAME.into();
        self.fs = Filesystem { root: Some(root), name, access, usage };
        self.table = ResourceTable::new();
    }

    fn view(&mut self) -> FilesystemView<'_> {
        FilesystemView { filesystem: &mut self.fs, table: &mut self.table }
    }

    /// Returns the host path of an entry in the workspace.
    fn host(&self, path: &str) -> PathBuf {
        self.outer.path().join("workspace").join(path)
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.host(name)).unwrap();
    }

    fn secret(&self) -> String {
        fs::read_to_string(self.outer.path().join("outside/secret.txt")).unwrap()
    }

    fn root(&mut self) -> Resource<Descriptor> {
        self.view().get_directories().unwrap().remove(0).0
    }

    fn open(
        &mut self,
        path: &str,
        path_flags: PathFlags,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Resource<Descriptor>, ErrorCode> {
        let root = self.root();
        code(now(self.view().open_at(root, path_flags, path.to_owned(), open_flags, flags)))
    }

    fn open_to_read(&mut self, path: &str) -> Result<Resource<Descriptor>, ErrorCode> {
        self.open(path, FOLLOW, OpenFlags::empty(), READ)
    }

    fn open_to_write(&mut self, path: &str) -> Result<Resource<Descriptor>, ErrorCode> {
        self.open(path, FOLLOW, OpenFlags::CREATE, READ | WRITE)
    }

    /// Reads a whole file through a stream, as wasi-libc does.
    fn read(&mut self, path: &str) -> Result<String, ErrorCode> {
        let file = self.open_to_read(path)?;
        let stream = code(self.view().read_via_stream(file, 0))?;
        let mut all = Vec::new();
        while let Some(bytes) = read_some(self.table.get_mut(&stream).unwrap(), 5)? {
            all.extend(bytes);
        }
        Ok(String::from_utf8(all).unwrap())
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), ErrorCode> {
        let file = self.open(path, FOLLOW, OpenFlags::CREATE | OpenFlags::TRUNCATE, WRITE)?;
        let stream = code(self.view().write_via_stream(file, 0))?;
        write_some(self.table.get_mut(&stream).unwrap(), text)
    }

    fn stat(&mut self, path: &str, flags: PathFlags) -> Result<DescriptorStat, ErrorCode> {
        let root = self.root();
        code(now(self.view().stat_at(root, flags, path.to_owned())))
    }

    fn mkdir(&mut self, path: &str) -> Result<(), ErrorCode> {
        let root = self.root();
        code(now(self.view().create_directory_at(root, path.to_owned())))
    }

    fn rmdir(&mut self, path: &str) -> Result<(), ErrorCode> {
        let root = self.root();
        code(now(self.view().remove_directory_at(root, path.to_owned())))
    }

    fn unlink(&mut self, path: &str) -> Result<(), ErrorCode> {
        let root = self.root();
        code(now(self.view().unlink_file_at(root, path.to_owned())))
    }

    fn rename(&mut self, old: &str, new: &str) -> Result<(), ErrorCode> {
        let (from, to) = (self.root(), self.root());
        code(now(self.view().rename_at(from, old.to_owned(), to, new.to_owned())))
    }

    fn hard_link(&mut self, old: &str, new: &str) -> Result<(), ErrorCode> {
        let (from, to) = (self.root(), self.root());
        code(now(self.view().link_at(from, PathFlags::empty(), old.to_owned(), to, new.to_owned())))
    }

    fn read_link(&mut self, path: &str) -> Result<String, ErrorCode> {
        let root = self.root();
        code(now(self.view().readlink_at(root, path.to_owned())))
    }
}

/// Returns the rules of a directory without those of a host.
fn rules_of(directory: &Path) -> ProtectedPaths {
    let root = directory.canonicalize().unwrap();
    ProtectedPaths::new(fs::File::open(&root).unwrap(), &root).unwrap()
}

/// Polls a future once, which must suffice for an operation that does not block.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("a file operation waited"),
    }
}

fn code<T>(outcome: FsResult<T>) -> Result<T, ErrorCode> {
    outcome.map_err(|error| error.downcast().unwrap())
}

/// Reads from a stream. Returns none at its end.
fn read_some(stream: &mut DynInputStream, size: usize) -> Result<Option<Vec<u8>>, ErrorCode> {
    match now(stream.blocking_read(size)) {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(StreamError::Closed) => Ok(None),
        Err(error) => Err(stream_code(error)),
    }
}

fn write_some(stream: &mut DynOutputStream, text: &str) -> Result<(), ErrorCode> {
    now(stream.blocking_write_and_flush(text.to_owned().into())).map_err(stream_code)
}

fn stream_code(error: StreamError) -> ErrorCode {
    match error {
        StreamError::LastOperationFailed(error) => *error.downcast_ref().unwrap(),
        other => panic!("{other}"),
    }
}
