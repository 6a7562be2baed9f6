//! Attacks by resource exhaustion: memory, disk, stack, output and time.

use palisade_guest::Context;
use std::hint::black_box;
use std::io::Write as _;
use std::time::Duration;
use std::{fs, io};

const MIB: usize = 1 << 20;

/// Four times the maximum memory of a call.
pub(crate) fn memory() -> io::Result<String> {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    for _ in 0..2_048 {
        taken.push(vec![1; MIB]);
    }
    Ok(format!("{} MiB of memory", black_box(&taken).len()))
}

pub(crate) fn disk() -> io::Result<String> {
    let (mut file, block) = (fs::File::create("notes/huge")?, vec![b'x'; MIB]);
    for _ in 0..1_024 {
        file.write_all(&block)?;
    }
    Ok("1 GiB of disk".to_owned())
}

pub(crate) fn files() -> io::Result<String> {
    for number in 0..1_000_000 {
        fs::write(format!("notes/{number}"), "")?;
    }
    Ok("a million files".to_owned())
}

#[allow(unconditional_recursion, reason = "that is the attempt")]
pub(crate) fn recursion(depth: u64) -> u64 {
    black_box(recursion(black_box(depth + 1))) + black_box(depth)
}

/// The host accepts all of the output, but keeps a bounded part.
#[allow(clippy::print_stdout, reason = "that is the attempt")]
pub(crate) fn output() -> String {
    let line = "x".repeat(64 << 10);
    (0..1_024).for_each(|_| println!("{line}"));
    "64 MiB of standard output".to_owned()
}

pub(crate) fn spin() -> io::Result<String> {
    let mut turns: u64 = 0;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

pub(crate) fn sleep() -> io::Result<String> {
    std::thread::sleep(Duration::from_secs(3_600));
    Ok("an hour of sleep".to_owned())
}

/// Polls for cancellation, so that a grace period is granted, and then continues.
pub(crate) fn ignore(context: &Context) -> io::Result<String> {
    while !context.cancelled() {
        black_box(());
    }
    spin()
}
