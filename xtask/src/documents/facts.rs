//! Figures that the README repeats from the code. Both places are checked, so that neither can
//! change alone.

use crate::place::Place;
use anyhow::Context as _;
use std::fs;

const LIMITS: &str = "host/palisade/src/sandbox/limits.rs";
const QUOTAS: &str = "host/wasi-fs/src/quotas.rs";
const OWNER: &str = "host/palisade/src/execution/owner.rs";
const EXIT: &str = "host/cli/src/cli/args.rs";

/// A file, a piece of its code, and the corresponding text of the README.
const FACTS: [(&str, &str, &str); 20] = [
    (LIMITS, "MEMORY: u64 = 128 * MIB;", "| memory | 128 MiB,"),
    (LIMITS, "MAX_MEMORY: u64 = 512 * MIB;", "at most 512 MiB) |"),
    (LIMITS, "TOTAL_MEMORY: u64 = 4 * GIB;", "hold at most 4 GiB of memory"),
    (LIMITS, "TIMEOUT: Duration = Duration::from_secs(60);", "| time | 60 s;"),
    (
        LIMITS,
        "MAX_TIMEOUT: Duration = Duration::from_secs(600);",
        "600 s for `execute` and `network`",
    ),
    (
        LIMITS,
        "DESCRIBE_TIMEOUT: Duration = Duration::from_secs(2);",
        "has 2 s to describe its tools",
    ),
    (LIMITS, "QUEUE_TIMEOUT: Duration = Duration::from_secs(60);", "others wait up to 60 s"),
    (OWNER, "SANDBOXES: u32 = 256;", "At most 256 calls run at once"),
    (LIMITS, "COMPONENT: u64 = 64 * MIB;", "A plugin is at most 64 MiB large"),
    (LIMITS, "RESULT: u64 = 4 * MIB;", "| result | 4 MiB |"),
    (LIMITS, "HANDLES: usize = 256;", "10,000, 100,000, 256 |"),
    (LIMITS, "STDIO: usize = 256 * KIB as usize;", "256 KiB each;"),
    (LIMITS, "LOG: usize = 256 * KIB as usize;", "256 KiB each;"),
    (LIMITS, "EMITTED: usize = MIB as usize;", "; 1 MiB |"),
    (QUOTAS, "READ_BYTES: u64 = 256 << 20;", "| bytes of files read, written | 256 MiB,"),
    (QUOTAS, "WRITE_BYTES: u64 = 64 << 20;", "256 MiB, 64 MiB |"),
    (QUOTAS, "NEW_ENTRIES: u64 = 10_000;", "| 10,000,"),
    (QUOTAS, "LISTED_ENTRIES: u64 = 100_000;", "10,000, 100,000,"),
    (
        EXIT,
        "0 ok · 1 internal · 2 usage · 3 not found · 4 denied · 5 the tool failed · 6 invalid input or plugin · 7 limit or timeout · 130 interrupted",
        "0 ok · 1 internal · 2 usage,",
    ),
    ("rust-toolchain.toml", "wasm32-wasip2", "rustup target add wasm32-wasip2"),
];

/// Returns the facts that are missing in either place.
pub(super) fn wrong(place: &Place) -> anyhow::Result<Vec<String>> {
    let read = |name: &str| {
        fs::read_to_string(place.root.join(name)).with_context(|| format!("reading {name}"))
    };
    let readme = read("README.md")?;
    let mut wrong = Vec::new();
    for (file, source, row) in FACTS {
        if !read(file)?.contains(source) {
            wrong.push(format!(
                "{file} has no `{source}` any more; what does the row `{row}` of README.md say now?"
            ));
        }
        if !readme.contains(row) {
            wrong.push(format!("README.md does not say `{row}`, as `{source}` in {file} asks for"));
        }
    }
    Ok(wrong)
}
