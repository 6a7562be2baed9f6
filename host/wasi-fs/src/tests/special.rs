//! Pipes, sockets and devices.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, mknodat};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, PathFlags};

use super::{Call, ErrorCode, FOLLOW, HostDescriptor, OpenFlags, READ, WRITE, everywhere};
use crate::inspect::Opener;

fn pipe(call: &Call, name: &str) {
    let root = std::fs::File::open(call.host("")).unwrap();
    mknodat(root, name, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
}

/// Runs a test on a thread with a timeout, since an open that waits for a pipe's peer would never
/// return.
fn at_once(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match wait.recv_timeout(Duration::from_secs(20)) {
        Err(RecvTimeoutError::Timeout) => panic!("an open holds its thread"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => thread.join().unwrap(),
    }
}

/// Tries every combination of open flags.
fn every_open(call: &mut Call, path: &str) {
    for flags in [READ, WRITE, READ | WRITE] {
        for open in [OpenFlags::empty(), OpenFlags::CREATE, OpenFlags::TRUNCATE] {
            let opened = call.open(path, FOLLOW, open, flags).map(drop);
            assert_eq!(opened, Err(ErrorCode::NotPermitted), "{path} {open:?} {flags:?}");
        }
    }
}

#[test]
fn pipe_is_refused_at_once() {
    at_once(|| {
        everywhere(|call| {
            pipe(call, "pipe");
            call.link("to_pipe", "pipe");
            every_open(call, "pipe");
            every_open(call, "to_pipe");
            assert!(call.fs.refused());
        });
    });
}

/// Makes a call open files by name, as without `/proc`.
fn by_name(call: &mut Call) {
    let resolver = call.fs.root.as_ref().unwrap().resolver();
    let root = std::fs::File::open(call.host("")).unwrap();
    call.fs.root = Some(super::Mount::with_ways(root.into(), resolver, Opener::Name).root());
}

/// Runs a test with every resolver and every opener.
fn however_opened(test: impl Fn(&mut Call)) {
    assert_eq!(Opener::best(), Opener::Handle, "the better way is there to be tested");
    everywhere(&test);
    everywhere(|call| {
        by_name(call);
        test(call);
    });
}

#[test]
fn pipe_is_recognised_before_opening() {
    use rustix::fs::inotify;
    however_opened(|call| {
        pipe(call, "pipe");
        call.link("to_pipe", "pipe");
        let watch =
            inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&watch, call.host("pipe"), inotify::WatchFlags::OPEN).unwrap();
        inotify::add_watch(&watch, call.host("file.txt"), inotify::WatchFlags::OPEN).unwrap();
        every_open(call, "pipe");
        every_open(call, "to_pipe");
        let mut space = [std::mem::MaybeUninit::uninit(); 512];
        let opened = inotify::Reader::new(&watch, &mut space).next().map(drop);
        assert_eq!(opened, Err(rustix::io::Errno::AGAIN), "a pipe was opened");
        // The watch does report opens.
        call.read("file.txt").unwrap();
        assert!(inotify::Reader::new(&watch, &mut space).next().is_ok());
    });
}

#[test]
fn inspected_file_is_opened_by_every_method() {
    however_opened(|call| {
        call.link("to_file", "file.txt");
        for path in ["file.txt", "to_file", "dir/../file.txt"] {
            assert_eq!(call.read(path).unwrap(), "inside", "{path}");
        }
        call.write("file.txt", "changed").unwrap();
        call.write("to_file", "again").unwrap();
        assert_eq!(call.read("file.txt").unwrap(), "again");
        assert!(call.open_to_read("dir").is_ok() && call.open_to_read("dir/").is_ok());
        assert_eq!(call.open_to_read("file.txt/").map(drop), Err(ErrorCode::NotDirectory));
        assert!(!call.fs.refused());
    });
}

/// Returns true if a reader of a pipe is told that its last writer has gone.
fn hangs_up(reader: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(reader, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).unwrap();
    polled[0].revents().contains(PollFlags::HUP)
}

#[test]
fn pipe_reader_is_not_disturbed_by_an_open() {
    use super::Access::{ReadOnly, ReadWrite};
    for (resolver, access) in
        super::resolvers().into_iter().flat_map(|way| [(way, ReadOnly), (way, ReadWrite)])
    {
        let call = &mut Call::new(resolver, access, super::Quotas::default());
        pipe(call, "pipe");
        let end = |access| {
            rustix::fs::open(call.host("pipe"), access | OFlags::NONBLOCK, Mode::empty()).unwrap()
        };
        let (reader, path) = (end(OFlags::RDONLY), call.host("pipe"));
        every_open(call, "pipe");
        assert!(!hangs_up(&reader), "{resolver:?}, {access:?}");
        drop(rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).unwrap());
        assert!(hangs_up(&reader), "a writer that comes and goes is noticed");
    }
}

#[test]
fn socket_is_refused_at_once() {
    everywhere(|call| {
        let _socket = UnixListener::bind(call.host("socket")).unwrap();
        every_open(call, "socket");
        assert!(call.fs.refused());
    });
}

#[test]
fn device_is_refused_at_once() {
    // Creating a device node takes privileges, so the test uses those in `/dev`.
    for resolver in super::resolvers() {
        let mut call = of_the_machine("/dev", resolver, super::Access::ReadWrite);
        every_open(&mut call, "null");
        every_open(&mut call, "zero");
        assert!(call.fs.refused());
    }
}

/// Creates a call in a directory of the machine.
fn of_the_machine(directory: &str, resolver: super::Resolver, access: super::Access) -> Call {
    let call = Call::new(resolver, access, super::Quotas::default());
    let mount =
        super::Mount::with_resolver(std::fs::File::open(directory).unwrap().into(), resolver);
    let rules = Arc::new(super::rules_of(directory.as_ref()));
    let fs = super::Filesystem::new(&mount, access, rules, super::Options::default());
    Call { fs, ..call }
}

#[cfg(target_os = "linux")]
#[test]
fn kernel_files_are_refused_on_any_mount() {
    for resolver in super::resolvers() {
        for (root, paths) in [
            ("/", ["proc/version", "proc/self/environ", "proc"]),
            ("/proc", ["version", "sys/kernel/ostype", "sys"]),
        ] {
            for path in paths {
                let mut call = of_the_machine(root, resolver, super::Access::ReadOnly);
                assert!(call.open_to_read(path).is_err(), "{root} {path}");
                let refusal = call.fs.refusal().map(ToString::to_string).unwrap_or_default();
                // A path through a magic link of the kernel is refused for the same reason.
                assert!(refusal.contains("file system of the kernel"), "{root} {path}: {refusal}");
            }
        }
        let mut call = of_the_machine("/", resolver, super::Access::ReadOnly);
        assert!(call.open_to_read("etc").is_ok() && call.open_to_read("etc/passwd").is_ok());
        // Usually a separate mount, but of an ordinary file system.
        assert!(call.open_to_read("dev").is_ok());
        assert!(!call.fs.refused());
    }
}

/// A change of an entry.
type Change = fn(&mut Call) -> Result<(), ErrorCode>;

/// The changes of entries of `/proc/self`, in every way.
const CHANGES: [(&str, Change); 6] = [
    ("create", |call| call.open("made", FOLLOW, OpenFlags::CREATE, WRITE).map(drop)),
    ("mkdir", |call| call.mkdir("made")),
    ("rmdir", |call| call.rmdir("fd")),
    ("unlink", |call| call.unlink("status")),
    ("rename", |call| call.rename("status", "made")),
    ("rename onto", |call| call.rename("comm", "status")),
];

#[test]
fn kernel_directory_entries_cannot_be_changed() {
    use crate::Refusal;
    for resolver in super::resolvers() {
        for (name, change) in CHANGES {
            let mut call = of_the_machine("/proc/self", resolver, super::Access::ReadWrite);
            assert_eq!(change(&mut call), Err(ErrorCode::NotPermitted), "{name} with {resolver:?}");
            // The kernel would refuse most of these as well: this crate has to do so before.
            assert_eq!(call.fs.refusal(), Some(&Refusal::Kernel), "{name} with {resolver:?}");
        }
    }
}

#[test]
fn open_kernel_directory_keeps_its_times() {
    use crate::Refusal;
    use wasmtime_wasi::p2::bindings::filesystem::types::NewTimestamp;
    for resolver in super::resolvers() {
        let mut call = of_the_machine("/proc/self", resolver, super::Access::ReadWrite);
        let root = call.root();
        let set = super::now(call.view().set_times(root, NewTimestamp::Now, NewTimestamp::Now));
        assert_eq!(super::code(set), Err(ErrorCode::NotPermitted));
        assert_eq!(call.fs.refusal(), Some(&Refusal::Kernel), "{resolver:?}");
    }
}

#[test]
fn kernel_mount_accepts_no_new_entries() {
    use crate::Refusal;
    // In these the kernel lets a process create entries, if it has the privileges.
    let mounted = ["/dev/mqueue", "/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/kernel/config"];
    let of_the_kernel =
        |path: &&str| std::fs::metadata(path).is_ok_and(|meta| meta.is_dir()) && is_own(path);
    let found: Vec<&str> = mounted.into_iter().filter(of_the_kernel).collect();
    if found.is_empty() {
        use std::io::Write as _;
        // Not `eprintln!`: the test harness would capture it.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: none of {mounted:?} is a file system of the kernel here"
        );
    }
    for (resolver, directory) in
        super::resolvers().into_iter().flat_map(|way| found.iter().map(move |at| (way, at)))
    {
        let mut call = of_the_machine(directory, resolver, super::Access::ReadWrite);
        let made = format!("palisade-test-{}", std::process::id());
        let outcome = call.mkdir(&made);
        let _ = std::fs::remove_dir(std::path::Path::new(directory).join(made));
        assert_eq!(outcome, Err(ErrorCode::NotPermitted), "{directory} with {resolver:?}");
        assert_eq!(call.fs.refusal(), Some(&Refusal::Kernel), "{directory} with {resolver:?}");
    }
}

/// Returns true if the kernel's table of mounts names one of its own file systems at this path.
fn is_own(path: &str) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let at = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some(path));
    at.and_then(|line| line.split_once(" - ")).is_some_and(|(_, system)| {
        ["mqueue ", "cgroup2 ", "configfs "].iter().any(|own| system.starts_with(own))
    })
}

#[test]
fn hard_links_are_for_regular_files_only() {
    use crate::Refusal;
    everywhere(|call| {
        assert_eq!(call.hard_link("dir", "second"), Err(ErrorCode::NotPermitted));
        assert!(!call.fs.refused(), "no system links directories");
        call.link("link", "file.txt");
        assert_eq!(call.hard_link("link", "second"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.fs.refusal(), Some(&Refusal::Symlink));
        call.again();
        pipe(call, "pipe");
        assert_eq!(call.hard_link("pipe", "second"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.fs.refusal(), Some(&Refusal::SpecialFile));
    });
}

#[test]
fn special_file_can_be_inspected_and_removed() {
    everywhere(|call| {
        pipe(call, "pipe");
        assert_eq!(call.stat("pipe", PathFlags::empty()).unwrap().type_, DescriptorType::Fifo);
        assert_eq!(call.hard_link("pipe", "second"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.unlink("pipe"), Ok(()));
    });
}
