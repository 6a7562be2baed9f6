//! Permissions of files, which guests can neither see nor set.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::everywhere;

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
