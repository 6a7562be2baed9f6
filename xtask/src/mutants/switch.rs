//! Tells which fault is switched on. `cargo xtask mutants` adds this module to its copy of each
//! crate that has faults.
//!
//! The number is in a file whose path is compiled in, because the programs that the tests start do
//! not inherit environment variables. Every crate with faults is two directories below the tree.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

const HOME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../switch/");

static REACHED: [AtomicBool; 1 << 14] = [const { AtomicBool::new(false) }; 1 << 14];

static SWITCH: LazyLock<(usize, Option<File>)> = LazyLock::new(|| {
    let on = std::fs::read_to_string(format!("{HOME}on")).ok().and_then(|on| on.trim().parse().ok());
    (on.unwrap_or(0), OpenOptions::new().append(true).open(format!("{HOME}reached")).ok())
});

/// Returns whether this fault is switched on. Records in the file `reached`, if it exists, that the
/// fault was reached.
pub(crate) fn fault(number: usize) -> bool {
    let (on, reached) = &*SWITCH;
    if let Some(mut file) = reached.as_ref()
        && REACHED.get(number).is_some_and(|seen| !seen.swap(true, Ordering::Relaxed))
    {
        let _ = file.write_all(format!("{number}\n").as_bytes());
    }
    *on == number
}
