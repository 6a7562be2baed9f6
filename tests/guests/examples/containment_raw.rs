//! A guest that performs operations on paths directly through `wasi:filesystem`, so that no
//! standard library normalizes the path.

use palisade_guest::{Json, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The attempts, in order.
    attempts: Vec<Attempt>,
}

#[derive(Deserialize, JsonSchema)]
struct Attempt {
    /// The operation.
    op: String,
    /// The path.
    path: String,
    /// The second path, for operations with two paths.
    #[serde(default)]
    to: String,
    /// Whether a link at the end of the path is followed.
    #[serde(default)]
    follow: bool,
}

/// Performs the operation in class none.
#[tool(side_effects = "none")]
fn raw_none(args: Args) -> Json<Vec<String>> {
    try_all(&args)
}

/// Performs the operation in class read.
#[tool(side_effects = "read")]
fn raw_read(args: Args) -> Json<Vec<String>> {
    try_all(&args)
}

/// Performs the operation in class write.
#[tool(side_effects = "write")]
fn raw_write(args: Args) -> Json<Vec<String>> {
    try_all(&args)
}

/// Returns the host's answer to each attempt.
fn try_all(args: &Args) -> Json<Vec<String>> {
    let preopens = get_directories();
    let names: Vec<&str> = preopens.iter().map(|(_, name)| name.as_str()).collect();
    let answer = |attempt: &Attempt| match preopens.first() {
        _ if attempt.op == "preopens" => names.join(" "),
        None => "there is no directory".to_owned(),
        Some((root, _)) => {
            act(root, attempt).unwrap_or_else(|code| format!("refused: {}", code.name()))
        }
    };
    Json(args.attempts.iter().map(answer).collect())
}

fn act(root: &Descriptor, Attempt { op, path, to, follow }: &Attempt) -> Result<String, ErrorCode> {
    let flags = if *follow { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() };
    let open = |open, flag| root.open_at(flags, path, open, flag);
    let done = |()| "done".to_owned();
    match op.as_str() {
        "open" => contents(&open(OpenFlags::empty(), DescriptorFlags::READ)?),
        "open-directory" => {
            open(OpenFlags::DIRECTORY, DescriptorFlags::READ).map(|_| "opened".to_owned())
        }
        "open-write" => {
            open(OpenFlags::empty(), DescriptorFlags::WRITE).map(|_| "opened".to_owned())
        }
        "mutate" => {
            let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
            open(OpenFlags::DIRECTORY, flags)?.create_directory_at("made").map(done)
        }
        "create" => open(OpenFlags::CREATE, DescriptorFlags::WRITE).map(|_| "created".to_owned()),
        "create-for-reading" => {
            open(OpenFlags::CREATE, DescriptorFlags::READ).map(|_| "created".to_owned())
        }
        "truncate" => {
            open(OpenFlags::TRUNCATE, DescriptorFlags::READ).map(|_| "truncated".to_owned())
        }
        "write" => open(OpenFlags::empty(), DescriptorFlags::READ)?
            .write(b"changed", 0)
            .map(|_| "written".to_owned()),
        "write-stream" => open(OpenFlags::empty(), DescriptorFlags::READ)?
            .write_via_stream(0)
            .map(|_| "open".to_owned()),
        "append-stream" => open(OpenFlags::empty(), DescriptorFlags::READ)?
            .append_via_stream()
            .map(|_| "open".to_owned()),
        "set-size" => open(OpenFlags::empty(), DescriptorFlags::READ)?.set_size(0).map(done),
        "set-times" => {
            let file = open(OpenFlags::empty(), DescriptorFlags::READ)?;
            file.set_times(NewTimestamp::Now, NewTimestamp::Now).map(done)
        }
        "set-times-at" => {
            root.set_times_at(flags, path, NewTimestamp::Now, NewTimestamp::Now).map(done)
        }
        "sync" => open(OpenFlags::empty(), DescriptorFlags::READ)?.sync().map(done),
        "stat" => root.stat_at(flags, path).map(|stat| kind(&stat)),
        "hash" => root.metadata_hash_at(flags, path).map(|_| "hashed".to_owned()),
        "readlink" => root.readlink_at(path),
        "mkdir" => root.create_directory_at(path).map(done),
        "rmdir" => root.remove_directory_at(path).map(done),
        "unlink" => root.unlink_file_at(path).map(done),
        "rename" => root.rename_at(path, root, to).map(done),
        "link" => root.link_at(flags, path, root, to).map(done),
        "symlink" => root.symlink_at(to, path).map(done),
        "climb" => climb(root, path),
        _ => Err(ErrorCode::Unsupported),
    }
}

fn contents(file: &Descriptor) -> Result<String, ErrorCode> {
    let (bytes, _) = file.read(4096, 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn kind(stat: &DescriptorStat) -> String {
    format!("{:?}", stat.type_)
}

/// Opens a directory, and then tries to open `..` twice. The first `..` may be inside the
/// workspace, but the second one leaves it.
fn climb(root: &Descriptor, path: &str) -> Result<String, ErrorCode> {
    let inside =
        root.open_at(PathFlags::empty(), path, OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
    let up =
        inside.open_at(PathFlags::empty(), "..", OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
    up.open_at(PathFlags::empty(), "..", OpenFlags::DIRECTORY, DescriptorFlags::READ)
        .map(|_| "climbed".to_owned())
}

palisade_guest::export!(raw_none, raw_read, raw_write);
