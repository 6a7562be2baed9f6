//! Files with several hard links, some of which may lie outside of the workspace.

use std::fs;

use wasmtime_wasi::p2::bindings::filesystem::types::NewTimestamp;

use super::REFUSED;
use crate::Refusal;
use crate::tests::{
    Access, Call, FOLLOW, HostDescriptor, OpenFlags, Quotas, READ, WRITE, code, now, resolvers,
};

#[test]
fn hard_linked_file_is_replaced_but_not_changed() {
    for resolver in resolvers() {
        let mut call = Call::strict(resolver, Access::ReadWrite, Quotas::default());
        let store = call.outer.path().join("outside/store");
        fs::write(&store, "shared").unwrap();
        fs::hard_link(&store, call.host("package")).unwrap();
        assert_eq!(call.read("package").unwrap(), "shared");
        for open in [OpenFlags::empty(), OpenFlags::CREATE, OpenFlags::TRUNCATE] {
            for flags in [WRITE, READ | WRITE] {
                assert_eq!(
                    call.open("package", FOLLOW, open, flags).map(drop),
                    REFUSED,
                    "{open:?} {flags:?}"
                );
            }
        }
        assert_eq!(call.open("package", FOLLOW, OpenFlags::TRUNCATE, READ).map(drop), REFUSED);
        let opened = call.open_to_read("package").unwrap();
        assert_eq!(
            code(now(call.view().set_times(opened, NewTimestamp::Now, NewTimestamp::Now))),
            REFUSED
        );
        let root = call.root();
        let (name, time) = ("package".to_owned(), NewTimestamp::Now);
        assert_eq!(code(now(call.view().set_times_at(root, FOLLOW, name, time, time))), REFUSED);
        assert_eq!(call.fs.refusal(), Some(&Refusal::HardLinked));
        assert_eq!(call.hard_link("file.txt", "second"), REFUSED);
        assert!(!call.host("second").exists());
        call.write("new", "own").unwrap();
        call.rename("new", "package").unwrap();
        assert_eq!(call.read("package").unwrap(), "own");
        assert_eq!(fs::read_to_string(&store).unwrap(), "shared");
    }
}

#[test]
fn single_file_and_directory_are_changed_in_place() {
    for resolver in resolvers() {
        let mut call = Call::strict(resolver, Access::ReadWrite, Quotas::default());
        call.write("file.txt", "changed").unwrap();
        for path in ["file.txt", "dir"] {
            let opened = call.open_to_read(path).unwrap();
            code(now(call.view().set_times(opened, NewTimestamp::Now, NewTimestamp::Now))).unwrap();
        }
        assert!(!call.fs.refused());
    }
}
