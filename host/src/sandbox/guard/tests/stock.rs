//! Tests of the stock layer, which only systems other than Unix use.

use std::fs;
use std::sync::Arc;

use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Descriptor, HostDirectoryEntryStream, PathFlags,
};

use super::{
    Access, Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, Quotas, READ, WRITE, code, now,
    read_some, write_some,
};
use crate::sandbox::guard::Refusal;
use crate::sandbox::guard::ledger::{Exhausted, Ledger};
use crate::sandbox::guard::stock::{Mount, Root, StockView};

/// One call over the stock layer, on the same workspace as the other tests.
struct Stock {
    call: Call,
    root: Root,
    access: Access,
    ledger: Arc<Ledger>,
    table: ResourceTable,
}

impl Stock {
    fn new(access: Access, quotas: Quotas) -> Self {
        Self::over(Call::new(super::resolvers()[0], access, Quotas::default()), access, quotas)
    }

    fn over(call: Call, access: Access, quotas: Quotas) -> Self {
        let dir = cap_std::fs::Dir::open_ambient_dir(call.host(""), cap_std::ambient_authority())
            .unwrap();
        let root = Mount::new(&dir).unwrap().root();
        let ledger = Arc::new(Ledger::new(
            quotas,
            Some(call.workspace.rules()),
            crate::sandbox::guard::PluginFiles::default(),
        ));
        Self { call, root, access, ledger, table: ResourceTable::new() }
    }

    fn view(&mut self) -> StockView<'_> {
        StockView {
            root: Some(&self.root),
            access: self.access,
            ledger: &self.ledger,
            table: &mut self.table,
        }
    }

    fn open(&mut self, path: &str, open: OpenFlags, write: bool) -> Result<u32, ErrorCode> {
        let root = self.view().get_directories().unwrap().remove(0).0;
        let flags = if write { READ | WRITE } else { READ };
        code(now(self.view().open_at(root, FOLLOW, path.to_owned(), open, flags)))
            .map(|file| file.rep())
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
    for path in
        ["../outside/secret.txt", "/file.txt", "out/secret.txt", "dir/../../outside/secret.txt"]
    {
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
    let linked = now(stock.view().link_at(
        root(),
        PathFlags::empty(),
        "file.txt".to_owned(),
        root(),
        "x".to_owned(),
    ));
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
    let linked = now(stock.view().link_at(
        root(),
        PathFlags::empty(),
        "file.txt".into(),
        root(),
        "made/x".into(),
    ));
    code(linked).unwrap();
    code(now(stock.view().rename_at(root(), "made".to_owned(), root(), "moved".to_owned())))
        .unwrap();
    code(now(stock.view().unlink_file_at(root(), "moved/x".to_owned()))).unwrap();
    code(now(stock.view().remove_directory_at(root(), "moved".to_owned()))).unwrap();
    assert_eq!(stock.ledger.modified(), [""; 0]);
    let made = now(stock.view().symlink_at(root(), "a".to_owned(), "b".to_owned()));
    assert_eq!(code(made), Err(ErrorCode::NotPermitted));
}

#[test]
fn quotas_hold() {
    let quotas =
        Quotas { read_bytes: 6, write_bytes: 3, new_entries: 1, listed_entries: 1, depth: 128 };
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
    let by_path =
        code(now(stock.view().metadata_hash_at(root, FOLLOW, "file.txt".to_owned()))).unwrap();
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
        assert_eq!(
            stock.open("pipe", OpenFlags::empty(), write).map(drop),
            Err(ErrorCode::NotPermitted)
        );
    }
}

#[test]
fn whichever_part_of_a_repository_comes_second_is_refused_here_too() {
    for (first, second) in
        [("HEAD", "objects"), ("refs", "head"), ("commondir", "HEAD"), ("HEAD", "CommonDir")]
    {
        let mut stock = writable();
        fs::write(stock.call.host("dir").join(first), "x").unwrap();
        let path = format!("dir/{second}");
        assert_eq!(stock.write(&path, "x"), Err(ErrorCode::NotPermitted), "{path}");
        let mut root = || stock.view().get_directories().unwrap().remove(0).0;
        let (one, two, three) = (root(), root(), root());
        let made = code(now(stock.view().create_directory_at(one, path.clone())));
        let moved =
            code(now(stock.view().rename_at(two, "file.txt".to_owned(), three, path.clone())));
        assert_eq!(
            (made, moved),
            (Err(ErrorCode::NotPermitted), Err(ErrorCode::NotPermitted)),
            "{path}"
        );
        assert!(!stock.call.host(&path).exists());
        stock.write(&format!("dir/sub/{second}"), "x").unwrap();
    }
}

#[test]
fn whatever_could_change_something_is_judged_as_a_change_here_too() {
    let opens =
        [(OpenFlags::CREATE, false), (OpenFlags::TRUNCATE, false), (OpenFlags::empty(), true)];
    for (open, write) in opens {
        let mut read_only = Stock::new(Access::ReadOnly, Quotas::default());
        assert_eq!(
            read_only.open("file.txt", open, write).map(drop),
            Err(ErrorCode::NotPermitted),
            "{open:?}"
        );
        assert_eq!(read_only.ledger.refusal(), Some(&Refusal::ReadOnly), "{open:?}");
        let mut stock = writable();
        fs::create_dir(stock.call.host(".git")).unwrap();
        fs::write(stock.call.host(".git/config"), "[core]").unwrap();
        assert_eq!(
            stock.open(".git/config", open, write).map(drop),
            Err(ErrorCode::NotPermitted),
            "{open:?}"
        );
        assert_eq!(stock.read(".git/config").unwrap(), b"[core]");
    }
}

#[test]
fn a_file_with_several_names_is_read_and_not_changed_in_place_here_either() {
    let call = Call::strict(super::resolvers()[0], Access::ReadWrite, Quotas::default());
    let mut stock = Stock::over(call, Access::ReadWrite, Quotas::default());
    fs::hard_link(stock.call.host("file.txt"), stock.call.host("second")).unwrap();
    assert_eq!(stock.read("second").unwrap(), b"inside");
    assert!(
        stock.open("dir", OpenFlags::DIRECTORY, false).is_ok()
            && stock.write("dir/deep.txt", "x").is_ok()
    );
    assert_eq!(
        stock.open("second", OpenFlags::empty(), true).map(drop),
        Err(ErrorCode::NotPermitted)
    );
    assert_eq!(stock.ledger.refusal(), Some(&Refusal::HardLinked));
}

#[test]
fn a_file_that_is_missing_and_is_only_read_counts_for_nothing() {
    let mut stock = Stock::new(Access::ReadWrite, Quotas { new_entries: 0, ..Quotas::default() });
    assert_eq!(stock.read("missing"), Err(ErrorCode::NoEntry));
    assert_eq!(stock.ledger.exhausted(), None);
    assert_eq!(stock.write("missing", ""), Err(ErrorCode::Quota));
}

#[test]
fn only_a_truncation_that_takes_something_away_is_noted() {
    let mut stock = writable();
    fs::write(stock.call.host("empty"), "").unwrap();
    for path in ["empty", "file.txt"] {
        stock.open(path, OpenFlags::TRUNCATE, true).unwrap();
    }
    stock.open("dir/deep.txt", OpenFlags::empty(), true).unwrap();
    assert_eq!(stock.ledger.modified(), ["file.txt"]);
}

#[test]
fn the_end_identity_and_errors_of_files_are_told_here_too() {
    let mut stock = writable();
    fs::hard_link(stock.call.host("file.txt"), stock.call.host("second")).unwrap();
    let [file, second, other]: [Resource<Descriptor>; 3] = ["file.txt", "second", "dir/deep.txt"]
        .map(|path| Resource::new_borrow(stock.open(path, OpenFlags::empty(), false).unwrap()));
    let of = |fd: &Resource<_>| Resource::new_borrow(fd.rep());
    let mut read =
        |length, offset| code(now(stock.view().read(of(&file), length, offset))).unwrap();
    assert_eq!(
        (read(5, 6), read(0, 6), read(0, 0)),
        ((Vec::new(), true), (Vec::new(), false), (Vec::new(), false))
    );
    assert!(now(stock.view().is_same_object(of(&file), of(&second))).unwrap());
    assert!(!now(stock.view().is_same_object(of(&file), of(&other))).unwrap());
    let error = stock.table.push(wasmtime::Error::new(ErrorCode::Quota)).unwrap();
    let told = types::Host::filesystem_error_code(&mut stock.view(), error).unwrap();
    assert_eq!(told, Some(ErrorCode::Quota));
    let root = stock.view().get_directories().unwrap().remove(0).0;
    let listing = code(now(stock.view().read_directory(root))).unwrap();
    let before = stock.table.iter_mut().count();
    HostDirectoryEntryStream::drop(&mut stock.view(), listing).unwrap();
    assert_eq!(stock.table.iter_mut().count(), before - 1);
}

#[test]
fn a_second_name_is_for_files_and_each_other_kind_has_its_reason_here_too() {
    for (name, refusal) in [("dir", None), ("link", Some(&Refusal::Symlink))] {
        let mut stock = writable();
        stock.call.link("link", "file.txt");
        let root = stock.view().get_directories().unwrap().remove(0).0.rep();
        let root = || Resource::new_borrow(root);
        let linked =
            now(stock.view().link_at(root(), PathFlags::empty(), name.into(), root(), "x".into()));
        assert_eq!(code(linked), Err(ErrorCode::NotPermitted), "{name}");
        assert_eq!(stock.ledger.refusal(), refusal, "{name}");
    }
}
