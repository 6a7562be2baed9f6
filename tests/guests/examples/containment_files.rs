//! A guest that performs one file operation on one path through the standard library, with a tool
//! of each side-effect class.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::time::SystemTime;

use palisade_guest::{Error, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The operation.
    op: String,
    /// The path. It has no format, so that only the sandbox checks it.
    path: String,
    /// The second path, for operations with two paths.
    #[serde(default)]
    to: String,
}

/// Performs the operation in class none.
#[tool(side_effects = "none")]
fn in_none(args: Args) -> Result<String> {
    attempt(&args)
}

/// Performs the operation in class read.
#[tool(side_effects = "read")]
fn in_read(args: Args) -> Result<String> {
    attempt(&args)
}

/// Performs the operation in class write.
#[tool(side_effects = "write")]
fn in_write(args: Args) -> Result<String> {
    attempt(&args)
}

/// Performs the operation in class execute.
#[tool(side_effects = "execute")]
fn in_execute(args: Args) -> Result<String> {
    attempt(&args)
}

/// Performs the operation in class network.
#[tool(side_effects = "network")]
fn in_network(args: Args) -> Result<String> {
    attempt(&args)
}

fn attempt(Args { op, path, to }: &Args) -> Result<String> {
    let done = "done".to_owned();
    Ok(match op.as_str() {
        "read" => fs::read_to_string(path)?,
        "list" => names(path)?,
        "stat" => kind(&fs::metadata(path)?),
        "lstat" => kind(&fs::symlink_metadata(path)?),
        "readlink" => fs::read_link(path)?.display().to_string(),
        "create" => File::create_new(path).map(|_| done)?,
        "write" => fs::write(path, "changed").map(|()| done)?,
        "append" => OpenOptions::new().append(true).open(path)?.write_all(b"+").map(|()| done)?,
        "truncate" => OpenOptions::new().write(true).open(path)?.set_len(0).map(|()| done)?,
        "touch" => OpenOptions::new()
            .write(true)
            .open(path)?
            .set_modified(SystemTime::UNIX_EPOCH)
            .map(|()| done)?,
        "mkdir" => fs::create_dir(path).map(|()| done)?,
        "rmdir" => fs::remove_dir(path).map(|()| done)?,
        "unlink" => fs::remove_file(path).map(|()| done)?,
        "rename" => fs::rename(path, to).map(|()| done)?,
        "link" => fs::hard_link(path, to).map(|()| done)?,
        "scribble" => scribble(path)?,
        "begin" => begin(path)?,
        other => return Err(Error::invalid_input("op", format!("there is no `{other}`"))),
    })
}

/// Appends to a file until the call is stopped.
fn scribble(path: &str) -> Result<String> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    loop {
        file.write_all(b"+")?;
    }
}

/// Writes the first part of a file, and then computes until the call is stopped.
fn begin(path: &str) -> Result<String> {
    fs::write(path, "half of it")?;
    let mut turns: u64 = 0;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

fn kind(meta: &fs::Metadata) -> String {
    let kind = if meta.is_dir() {
        "directory"
    } else if meta.is_symlink() {
        "link"
    } else if meta.is_file() {
        "file"
    } else {
        "special"
    };
    kind.to_owned()
}

fn names(path: &str) -> Result<String> {
    let names =
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names.join(" "))
}

palisade_guest::export!(in_none, in_read, in_write, in_execute, in_network);
