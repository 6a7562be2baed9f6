//! Pipes, sockets and devices.

use std::os::unix::net::UnixListener;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rustix::fs::{FileType, Mode, mknodat};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, PathFlags};

use super::{Call, ErrorCode, FOLLOW, OpenFlags, READ, WRITE, everywhere};

fn pipe(call: &Call, name: &str) {
    let root = std::fs::File::open(call.host("")).unwrap();
    mknodat(root, name, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
}

/// Runs a test that would not end, in place of failing, if an open waited for a pipe's other end.
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

/// All ways of opening.
fn every_open(call: &mut Call, path: &str) {
    for flags in [READ, WRITE, READ | WRITE] {
        for open in [OpenFlags::empty(), OpenFlags::CREATE, OpenFlags::TRUNCATE] {
            let opened = call.open(path, FOLLOW, open, flags).map(drop);
            assert_eq!(opened, Err(ErrorCode::NotPermitted), "{path} {open:?} {flags:?}");
        }
    }
}

#[test]
fn a_pipe_is_refused_at_once() {
    at_once(|| {
        everywhere(|call| {
            pipe(call, "pipe");
            call.link("to_pipe", "pipe");
            every_open(call, "pipe");
            every_open(call, "to_pipe");
            assert!(call.guard.refused());
        });
    });
}

#[test]
fn a_pipe_with_a_reader_is_not_disturbed_by_an_open_for_writing() {
    everywhere(|call| {
        pipe(call, "pipe");
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        let reader = rustix::fs::open(call.host("pipe"), flags, Mode::empty()).unwrap();
        assert_eq!(call.open("pipe", FOLLOW, OpenFlags::empty(), WRITE).map(drop), Err(ErrorCode::NotPermitted));
        drop(reader);
    });
}

#[test]
fn a_socket_is_refused_at_once() {
    everywhere(|call| {
        let _socket = UnixListener::bind(call.host("socket")).unwrap();
        every_open(call, "socket");
        assert!(call.guard.refused());
    });
}

#[test]
fn a_device_is_refused_at_once() {
    // Making a device node takes privileges; the directory of devices has some already.
    for resolver in super::resolvers() {
        let call = Call::new(resolver, super::Access::ReadWrite, super::Quotas::default());
        let mount = super::Mount::with_resolver(std::fs::File::open("/dev").unwrap().into(), resolver);
        let rules = super::Workspace::open("/dev".as_ref()).unwrap().rules();
        let guard = super::Guard::new(
            (&mount, super::Access::ReadWrite, rules),
            super::Quotas::default(),
            &crate::sandbox::guard::PluginFiles::default(),
        );
        let mut call = Call { guard, ..call };
        every_open(&mut call, "null");
        every_open(&mut call, "zero");
        assert!(call.guard.refused());
    }
}

#[test]
fn a_special_file_can_be_seen_and_removed() {
    everywhere(|call| {
        pipe(call, "pipe");
        assert_eq!(call.stat("pipe", PathFlags::empty()).unwrap().type_, DescriptorType::Fifo);
        assert_eq!(call.hard_link("pipe", "second"), Err(ErrorCode::NotPermitted));
        assert_eq!(call.unlink("pipe"), Ok(()));
    });
}
