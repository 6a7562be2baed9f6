//! The way over the stock layer, which only other systems than Unix use.

use std::fs;
use std::sync::Arc;

use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{HostDirectoryEntryStream, PathFlags};

use super::{
    Access, Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, Quotas, READ, WRITE, code, now, read_some, write_some,
};
use crate::sandbox::guard::Refusal;
use crate::sandbox::guard::ledger::{Exhausted, Ledger};
use crate::sandbox::guard::stock::{Mount, Root, StockView};

/// One call over the stock layer, on the same workspace as the other tests have.
struct Stock {
    call: Call,
    root: Root,
    access: Access,
    ledger: Arc<Ledger>,
    table: ResourceTable,
}

impl Stock {
    fn new(access: Access, quotas: Quotas) -> Self {
        let call = Call::new(super::resolvers()[0], access, Quotas::default());
        let dir = cap_std::fs::Dir::open_ambient_dir(call.host(""), cap_std::ambient_authority()).unwrap();
        let root = Mount::new(&dir).unwrap().root();
        let ledger =
            Arc::new(Ledger::new(quotas, Some(call.workspace.rules()), crate::sandbox::guard::PluginFiles::default()));
        Self { call, root, access, ledger, table: ResourceTable::new() }
    }

    fn view(&mut self) -> StockView<'_> {
        StockView { root: Some(&self.root), access: self.access, ledger: &self.ledger, table: &mut self.table }
    }

    fn open(&mut self, path: &str, open: OpenFlags, write: bool) -> Result<u32, ErrorCode> {
        let root = self.view().get_directories().unwrap().remove(0).0;
        let flags = if write { READ | WRITE } else { READ };
        code(now(self.view().open_at(root, FOLLOW, path.to_owned(), open, flags))).map(|file| file.rep())
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), ErrorCode> {
        let file = self.open(path, OpenFlags::CREATE | OpenFlags::TRUNCATE, true)?;
        let stream = code(self.view().write_via_stream(Resource::new_own(file), 0))?;
        write_some(self.table.get_mut(&stream).unwrap(), text)
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, ErrorCode> {
        let file = self.open(path, OpenFlags::empty(), false)?;
        let stream = code(self.view().read_via_stream(Resource::new_own(file), 0))?;
        Ok(read_some(self.table.get_mut(&stream).unwrap(), 100)?.unwrap_or_default())
    }
}

fn writable() -> Stock {
    Stock::new(Access::ReadWrite, Quotas::default())
}

#[test]
fn files_are_read_written_and_noted() {
    let mut stock = writable();
    assert_eq!(stock.read("file.txt").unwrap(), b"inside");
    stock.write("new.txt", "made").unwrap();
    stock.write("dir/deep.txt", "x").unwrap();
    assert_eq!(fs::read_to_string(stock.call.host("new.txt")).unwrap(), "made");
    assert_eq!(stock.ledger.modified(), ["new.txt", "dir/deep.txt"]);
    assert_eq!((stock.ledger.bytes_read(), stock.ledger.bytes_written()), (6, 5));
}

#[test]
fn a_path_that_leads_out_is_not_permitted() {
    let mut stock = writable();
    stock.call.link("out", "../outside");
    for path in ["../outside/secret.txt", "/file.txt", "out/secret.txt", "dir/../../outside/secret.txt"] {
        assert_eq!(stock.read(path), Err(ErrorCode::NotPermitted), "{path}");
        assert_eq!(stock.write(path, "x"), Err(ErrorCode::NotPermitted), "{path}");
    }
    assert_eq!(stock.ledger.refusal(), Some(&Refusal::Escape));
    assert_eq!(stock.call.secret(), "secret");
}

#[test]
fn a_read_only_mount_refuses_every_change() {
    let mut stock = Stock::new(Access::ReadOnly, Quotas::default());
    let root = stock.view().get_directories().unwrap().remove(0).0.rep();
    let root = || Resource::new_borrow(root);
    let refused = Err(ErrorCode::NotPermitted);
    assert_eq!(stock.write("file.txt", "x"), refused);
    assert_eq!(stock.open("file.txt", OpenFlags::empty(), true).map(drop), refused);
    assert_eq!(code(now(stock.view().create_directory_at(root(), "x".to_owned()))), refused);
    assert_eq!(code(now(stock.view().remove_directory_at(root(), "dir/sub".to_owned()))), refused);
    assert_eq!(code(now(stock.view().unlink_file_at(root(), "file.txt".to_owned()))), refused);
    assert_eq!(code(now(stock.view().symlink_at(root(), "a".to_owned(), "b".to_owned()))), refused);
    let moved = now(stock.view().rename_at(root(), "file.txt".to_owned(), root(), "x".to_owned()));
    assert_eq!(code(moved), refused);
    let linked = now(stock.view().link_at(root(), PathFlags::empty(), "file.txt".to_owned(), root(), "x".to_owned()));
    assert_eq!(code(linked), refused);
    let file = stock.open("file.txt", OpenFlags::empty(), false).unwrap();
    assert_eq!(code(now(stock.view().set_size(Resource::new_borrow(file), 0))), refused);
    assert_eq!(code(stock.view().append_via_stream(Resource::new_borrow(file))).map(drop), refused);
    assert_eq!(stock.read("file.txt").unwrap(), b"inside");
    assert_eq!(stock.ledger.refusal(), Some(&Refusal::ReadOnly));
}

#[test]
fn directories_are_made_moved_linked_into_and_removed() {
    let mut stock = writable();
    let root = stock.view().get_directories().unwrap().remove(0).0.rep();
    let root = || Resource::new_borrow(root);
    code(now(stock.view().create_directory_at(root(), "made".to_owned()))).unwrap();
    let linked = now(stock.view().link_at(root(), PathFlags::empty(), "file.txt".into(), root(), "made/x".into()));
    code(linked).unwrap();
    code(now(stock.view().rename_at(root(), "made".to_owned(), root(), "moved".to_owned()))).unwrap();
    code(now(stock.view().unlink_file_at(root(), "moved/x".to_owned()))).unwrap();
    code(now(stock.view().remove_directory_at(root(), "moved".to_owned()))).unwrap();
    assert_eq!(stock.ledger.modified(), [""; 0]);
    let made = now(stock.view().symlink_at(root(), "a".to_owned(), "b".to_owned()));
    assert_eq!(code(made), Err(ErrorCode::NotPermitted));
}

#[test]
fn quotas_hold() {
    let quotas = Quotas { read_bytes: 6, write_bytes: 3, new_entries: 1, listed_entries: 1, depth: 128 };
    let mut stock = Stock::new(Access::ReadWrite, quotas);
    assert_eq!(stock.read("file.txt").unwrap(), b"inside");
    assert_eq!(stock.read("file.txt"), Err(ErrorCode::Quota));
    assert_eq!(stock.ledger.exhausted(), Some(Exhausted::ReadBytes(6)));
    assert_eq!(stock.write("new.txt", "1234"), Err(ErrorCode::Quota));
    assert_eq!(stock.write("other.txt", ""), Err(ErrorCode::Quota));
    assert!(!stock.call.host("other.txt").exists());
    let root = stock.view().get_directories().unwrap().remove(0).0;
    let listing = code(now(stock.view().read_directory(root))).unwrap().rep();
    let mut next = || code(now(stock.view().read_directory_entry(Resource::new_borrow(listing))));
    assert!(next().unwrap().is_some());
    assert_eq!(next().map(drop), Err(ErrorCode::Quota));
}

#[test]
fn what_is_looked_at_is_what_the_host_sees() {
    let mut stock = writable();
    let file = stock.open("file.txt", OpenFlags::empty(), true).unwrap();
    let file = || Resource::new_borrow(file);
    assert_eq!(code(now(stock.view().stat(file()))).unwrap().size, 6);
    assert_eq!(code(now(stock.view().read(file(), 2, 4))), Ok((b"de".to_vec(), false)));
    assert_eq!(code(now(stock.view().write(file(), b"XY".to_vec(), 4))), Ok(2));
    assert_eq!(code(now(stock.view().sync(file()))), Ok(()));
    let hash = code(now(stock.view().metadata_hash(file()))).unwrap();
    let root = stock.view().get_directories().unwrap().remove(0).0;
    let by_path = code(now(stock.view().metadata_hash_at(root, FOLLOW, "file.txt".to_owned()))).unwrap();
    assert_eq!((hash.lower, hash.upper), (by_path.lower, by_path.upper));
    let before = stock.table.iter_mut().count();
    HostDescriptor::drop(&mut stock.view(), file()).unwrap();
    assert_eq!(stock.table.iter_mut().count(), before - 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_refused_before_it_is_opened() {
    let mut stock = writable();
    let root = fs::File::open(stock.call.host("")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(root, "pipe", rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for write in [false, true] {
        assert_eq!(stock.open("pipe", OpenFlags::empty(), write).map(drop), Err(ErrorCode::NotPermitted));
    }
}
