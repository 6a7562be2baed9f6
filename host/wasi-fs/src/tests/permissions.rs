//! Permissions of files, which guests can neither see nor set.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::{Access, Call, Quotas, everywhere, resolvers};

#[test]
fn replacing_file_has_the_permissions_of_the_replaced_one() {
    everywhere(|call| {
        let root = call.host(".");
        let set = |path: &str, mode| {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().mode() & 0o7777;
        for (replaced, kept) in [(0o600, 0o600), (0o755, 0o755), (0o4750, 0o750), (0o440, 0o440)] {
            set("file.txt", replaced);
            call.write("new", "x").unwrap();
            call.rename("new", "file.txt").unwrap();
            assert_eq!(mode("file.txt"), kept, "{replaced:o}");
        }
        // A file that was there keeps its own, and gets no permission.
        for (own, replaced, kept) in [(0o600, 0o644, 0o600), (0o755, 0o640, 0o640)] {
            set("dir/deep.txt", own);
            set("file.txt", replaced);
            fs::write(call.host("dir/deep.txt"), "x").unwrap();
            call.rename("dir/deep.txt", "file.txt").unwrap();
            assert_eq!(mode("file.txt"), kept, "{own:o} {replaced:o}");
            fs::rename(call.host("file.txt"), call.host("dir/deep.txt")).unwrap();
            fs::write(call.host("file.txt"), "x").unwrap();
        }
        call.write("new", "x").unwrap();
        let new = mode("new");
        call.rename("new", "other").unwrap();
        assert_eq!(mode("other"), new, "it replaces nothing");
    });
}

#[test]
fn temporary_file_is_private_until_it_has_its_name() {
    const TEMPORARY: &str = ".palisade-0123456789abcdef.tmp";
    everywhere(|call| {
        let root = call.host(".");
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().mode() & 0o7777;
        fs::set_permissions(root.join("file.txt"), fs::Permissions::from_mode(0o640)).unwrap();
        call.write("new", "x").unwrap();
        for (name, settled) in [("file.txt", 0o640), ("another", mode("new"))] {
            call.write(TEMPORARY, "x").unwrap();
            assert_eq!(mode(TEMPORARY), 0o600);
            call.rename(TEMPORARY, name).unwrap();
            assert_eq!(mode(name), settled, "{name}");
        }
    });
}

/// The file that a call moves to a path is not the one that it has created there.
#[test]
fn file_that_was_there_gets_no_permission_by_a_new_name() {
    everywhere(|call| {
        let root = call.host(".");
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().mode() & 0o7777;
        fs::write(root.join("secret"), "x").unwrap();
        fs::set_permissions(root.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(root.join("public"), "x").unwrap();
        fs::set_permissions(root.join("public"), fs::Permissions::from_mode(0o755)).unwrap();
        call.write("made", "x").unwrap();
        call.rename("secret", "made").unwrap();
        call.rename("made", "elsewhere").unwrap();
        call.rename("elsewhere", "public").unwrap();
        assert_eq!(mode("public"), 0o600);
    });
}

/// A file that the call has created is a file like any other once it has its name.
#[test]
fn file_with_its_name_keeps_its_permissions_at_the_next_one() {
    const TEMPORARY: &str = ".palisade-0123456789abcdef.tmp";
    everywhere(|call| {
        let root = call.host(".");
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().mode() & 0o7777;
        fs::set_permissions(root.join("file.txt"), fs::Permissions::from_mode(0o600)).unwrap();
        call.write(TEMPORARY, "x").unwrap();
        assert!(call.rename(TEMPORARY, "dir").is_err(), "a directory is not replaced by a file");
        assert_eq!(mode(TEMPORARY), 0o600, "it is private as long as it has no name");
        call.rename(TEMPORARY, "file.txt").unwrap();
        call.rename("file.txt", "next").unwrap();
        assert_eq!(mode("next"), 0o600);
    });
}

/// The system gives the inode number of a removed file to the next one.
#[test]
fn file_of_another_program_with_a_used_number_gets_no_permission() {
    everywhere(|call| {
        let root = call.host(".");
        let private = |path: &str| {
            fs::write(root.join(path), "x").unwrap();
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(0o600)).unwrap();
        };
        for (number, removes) in [(0, true), (1, false)] {
            call.write("made", "x").unwrap();
            match removes {
                true => call.unlink("made").unwrap(),
                // The clock of the file system advances in steps of a few milliseconds.
                false => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    fs::remove_file(root.join("made")).unwrap();
                }
            }
            let [from, to] = [format!("private{number}"), format!("moved{number}")];
            private(&from);
            call.rename(&from, &to).unwrap();
            assert_eq!(fs::metadata(root.join(&to)).unwrap().mode() & 0o7777, 0o600, "{to}");
        }
    });
}

/// The permissions would change under the other name as well, which may be outside.
#[test]
fn file_with_another_name_keeps_its_permissions() {
    for resolver in resolvers() {
        let mut call = Call::strict(resolver, Access::ReadWrite, Quotas::default());
        let root = call.host(".");
        let set = |path: &str, mode| {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().mode() & 0o7777;
        fs::write(root.join("tool"), "x").unwrap();
        fs::hard_link(root.join("tool"), root.join("named")).unwrap();
        set("tool", 0o755);
        set("file.txt", 0o600);
        assert!(call.rename("named", "file.txt").is_err());
        assert_eq!(mode("tool"), 0o755);
        call.rename("named", "elsewhere").unwrap();
        assert_eq!(mode("tool"), 0o755, "a new name alone changes no permission");
    }
}

/// The group bits of a file with an access list are the mask of the list, and not the rights of the
/// group.
#[cfg(target_os = "linux")]
#[test]
fn replacing_file_has_the_access_list_of_the_replaced_one() {
    use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
    const ACCESS: &str = "system.posix_acl_access";
    // user::rw-, user:12345:rw-, group::---, mask::rw-, other::---
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 6, 12345), (4, 0, u32::MAX), (16, 6, u32::MAX), (32, 0, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend([&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    everywhere(|call| {
        let file = call.host(".").join("file.txt");
        if setxattr(&file, ACCESS, &list, XattrFlags::empty()).is_err() {
            return; // This file system has no access lists.
        }
        let read = || {
            let mut found = [0; 256];
            getxattr(&file, ACCESS, &mut found).map(|length| found[..length].to_vec())
        };
        call.write("new", "x").unwrap();
        call.rename("new", "file.txt").unwrap();
        assert_eq!(read(), Ok(list.clone()));
        removexattr(&file, ACCESS).unwrap();
        call.write("new", "x").unwrap();
        setxattr(call.host("new"), ACCESS, &list, XattrFlags::empty()).unwrap();
        call.rename("new", "file.txt").unwrap();
        assert!(read().is_err(), "the one that a directory gives to new files is taken off");
    });
}
