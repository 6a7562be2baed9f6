//! Streams of files.

use std::fs;

use bytes::Bytes;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::StreamError;
use wasmtime_wasi::p2::bindings::filesystem::types;

use super::{
    ErrorCode, FOLLOW, HostDescriptor, OpenFlags, READ, WRITE, code, everywhere, now, read_some,
    write_some,
};
use crate::file::MAX_CHUNK;

#[test]
fn read_returns_at_most_one_chunk() {
    everywhere(|call| {
        fs::write(call.host("big"), vec![7; MAX_CHUNK + 100]).unwrap();
        let file = call.open_to_read("big").unwrap();
        let stream = code(call.view().read_via_stream(file, 0)).unwrap();
        let stream = call.table.get_mut(&stream).unwrap();
        assert_eq!(stream.read(usize::MAX).unwrap().len(), MAX_CHUNK);
        assert_eq!(stream.read(60).unwrap().len(), 60);
        assert_eq!(stream.read(60).unwrap().len(), 40);
        assert!(matches!(stream.read(60), Err(StreamError::Closed)));
        assert_eq!(stream.read(0).unwrap().len(), 0);
        assert_eq!(call.fs.bytes_read(), MAX_CHUNK as u64 + 100);
    });
}

#[test]
fn stream_follows_a_growing_file() {
    everywhere(|call| {
        let file = call.open_to_read("file.txt").unwrap();
        let stream = code(call.view().read_via_stream(file, 6)).unwrap();
        assert_eq!(read_some(call.table.get_mut(&stream).unwrap(), 1_000), Ok(None));
        fs::write(call.host("file.txt"), "x".repeat(500)).unwrap();
        let stream = call.table.get_mut(&stream).unwrap();
        let mut sum = 0;
        while let Some(bytes) = read_some(stream, 1_000).unwrap() {
            sum += bytes.len();
        }
        assert_eq!(sum, 494);
    });
}

#[test]
fn grown_file_is_read_in_large_chunks() {
    everywhere(|call| {
        let file = call.open_to_read("file.txt").unwrap();
        let stream = code(call.view().read_via_stream(file, 0)).unwrap();
        fs::write(call.host("file.txt"), "x".repeat(10_000)).unwrap();
        let stream = call.table.get_mut(&stream).unwrap();
        let mut sizes = Vec::new();
        while let Some(bytes) = read_some(stream, 20_000).unwrap() {
            sizes.push(bytes.len());
        }
        assert!(sizes.len() == 2 && sizes.iter().sum::<usize>() == 10_000, "{sizes:?}");
    });
}

#[test]
fn only_stream_errors_have_a_code() {
    everywhere(|call| {
        let told = |call: &mut super::Call, error: wasmtime::Error| {
            let error = call.table.push(error).unwrap();
            types::Host::filesystem_error_code(&mut call.view(), Resource::new_borrow(error.rep()))
                .unwrap()
        };
        assert_eq!(told(call, wasmtime::Error::new(ErrorCode::Quota)), Some(ErrorCode::Quota));
        assert_eq!(told(call, wasmtime::Error::msg("of a socket")), None);
    });
}

#[test]
fn positioned_read_reports_the_end_only_for_bytes() {
    everywhere(|call| {
        let file = call.open_to_read("file.txt").unwrap();
        let mut read = |length, offset| {
            let file = Resource::new_borrow(file.rep());
            code(now(call.view().read(file, length, offset))).unwrap()
        };
        assert_eq!(read(5, 6), (Vec::new(), true));
        assert_eq!(read(0, 6), (Vec::new(), false));
        assert_eq!(read(0, 0), (Vec::new(), false));
    });
}

#[test]
fn shrinking_file_just_ends() {
    everywhere(|call| {
        let file = call.open_to_read("file.txt").unwrap();
        fs::write(call.host("file.txt"), "in").unwrap();
        let stream = code(call.view().read_via_stream(file, 0)).unwrap();
        let stream = call.table.get_mut(&stream).unwrap();
        assert_eq!(read_some(stream, 1_000), Ok(Some(b"in".to_vec())));
        assert_eq!(read_some(stream, 1_000), Ok(None));
    });
}

#[test]
fn writer_starts_at_its_offset() {
    everywhere(|call| {
        let file = call.open_to_write("file.txt").unwrap();
        let stream = code(call.view().write_via_stream(file, 2)).unwrap();
        let stream = call.table.get_mut(&stream).unwrap();
        write_some(stream, "AB").unwrap();
        write_some(stream, "").unwrap();
        write_some(stream, "CDEF").unwrap();
        assert_eq!(fs::read_to_string(call.host("file.txt")).unwrap(), "inABCDEF");
    });
}

#[test]
fn appender_writes_at_the_end() {
    everywhere(|call| {
        let file = call.open("file.txt", FOLLOW, OpenFlags::empty(), WRITE).unwrap();
        let stream = code(call.view().append_via_stream(file)).unwrap();
        write_some(call.table.get_mut(&stream).unwrap(), "+1").unwrap();
        fs::write(call.host("file.txt"), "replaced").unwrap();
        write_some(call.table.get_mut(&stream).unwrap(), "+2").unwrap();
        assert_eq!(fs::read_to_string(call.host("file.txt")).unwrap(), "replaced+2");
    });
}

#[test]
fn excessive_write_ends_the_call() {
    everywhere(|call| {
        let file = call.open_to_write("file.txt").unwrap();
        let stream = code(call.view().write_via_stream(file, 0)).unwrap();
        let stream = call.table.get_mut(&stream).unwrap();
        assert_eq!(stream.check_write().unwrap(), MAX_CHUNK);
        let too_large = Bytes::from(vec![0; MAX_CHUNK + 1]);
        assert!(matches!(stream.write(too_large), Err(StreamError::Trap(_))));
        assert!(matches!(stream.write_zeroes(usize::MAX), Err(StreamError::Trap(_))));
        assert!(stream.write_zeroes(MAX_CHUNK).is_ok());
    });
}

#[test]
fn open_mode_limits_reads_and_writes() {
    everywhere(|call| {
        let reader = call.open("file.txt", FOLLOW, OpenFlags::empty(), READ).unwrap().rep();
        let writer = call.open("file.txt", FOLLOW, OpenFlags::empty(), WRITE).unwrap().rep();
        let written = now(call.view().write(Resource::new_borrow(reader), b"x".to_vec(), 0));
        assert_eq!(code(written).map(drop), Err(ErrorCode::BadDescriptor));
        assert_eq!(
            code(now(call.view().set_size(Resource::new_borrow(reader), 0))),
            Err(ErrorCode::Invalid)
        );
        let read = now(call.view().read(Resource::new_borrow(writer), 1, 0));
        assert_eq!(code(read).map(drop), Err(ErrorCode::BadDescriptor));
        let nothing = now(call.view().read(Resource::new_borrow(writer), 0, 0));
        assert_eq!(code(nothing).map(drop), Err(ErrorCode::BadDescriptor));
        assert!(!call.fs.refused());
    });
}

#[test]
fn empty_write_requires_write_access() {
    everywhere(|call| {
        for (flags, outcome) in [(READ, Err(ErrorCode::BadDescriptor)), (WRITE, Ok(()))] {
            for append in [false, true] {
                let file = call.open("file.txt", FOLLOW, OpenFlags::empty(), flags).unwrap();
                let mut view = call.view();
                let stream = if append {
                    view.append_via_stream(file)
                } else {
                    view.write_via_stream(file, 0)
                };
                let stream = code(stream).unwrap();
                assert_eq!(write_some(call.table.get_mut(&stream).unwrap(), ""), outcome);
            }
        }
        assert_eq!(fs::read_to_string(call.host("file.txt")).unwrap(), "inside");
        assert!(!call.fs.refused() && call.fs.modified().is_empty());
    });
}
