//! The host's file descriptors for guests, inspected from outside.

use std::fs;
use std::process::Command;

use super::{ErrorCode, FOLLOW, HostDescriptor, OpenFlags, READ, WRITE, code, everywhere, now};

#[test]
fn guest_descriptors_are_not_inherited() {
    const CLOSED_ON_EXEC: u32 = 0o2_000_000;
    everywhere(|call| {
        call.link("link", "dir/deep.txt");
        for (path, create, flags) in [
            ("file.txt", OpenFlags::empty(), READ),
            ("file.txt", OpenFlags::empty(), WRITE),
            ("link", OpenFlags::empty(), READ | WRITE),
            ("new.txt", OpenFlags::CREATE, WRITE),
            ("dir", OpenFlags::DIRECTORY, READ),
            ("dir/", OpenFlags::empty(), READ),
        ] {
            call.open(path, FOLLOW, create, flags).unwrap();
        }
        let root = call.root();
        code(now(call.view().read_directory(root))).unwrap();
        let mut seen = 0;
        for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
            // Skip descriptors of tests that run concurrently.
            let ours =
                entry.path().read_link().is_ok_and(|target| target.starts_with(call.host("")));
            let info = format!("/proc/self/fdinfo/{}", entry.file_name().display());
            if let (true, Ok(info)) = (ours, fs::read_to_string(info)) {
                let flags =
                    info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
                let flags = u32::from_str_radix(flags, 8).unwrap();
                assert_ne!(flags & CLOSED_ON_EXEC, 0, "{entry:?} {flags:o}");
                seen += 1;
            }
        }
        assert!(seen >= 8, "{seen}");
    });
}

#[test]
fn running_program_is_busy_and_unchanged() {
    everywhere(|call| {
        fs::copy("/bin/sleep", call.host("program")).unwrap();
        let mut running = Command::new(call.host("program")).arg("1000").spawn().unwrap();
        let opened = [OpenFlags::empty(), OpenFlags::CREATE]
            .map(|create| call.open("program", FOLLOW, create, WRITE).map(drop));
        running.kill().unwrap();
        running.wait().unwrap();
        assert_eq!(opened, [Err(ErrorCode::TextFileBusy); 2]);
        call.open("program", FOLLOW, OpenFlags::empty(), WRITE).unwrap();
    });
}
