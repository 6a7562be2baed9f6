//! A guest that performs each of some operations on each of some paths, directly through
//! `wasi:filesystem`, and returns the error codes.

use palisade_guest::{Json, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The operations, each performed on every path.
    ops: Vec<String>,
    /// The paths.
    paths: Vec<String>,
}

/// Performs the operation in class read.
#[tool(side_effects = "read")]
fn probe_read(args: Args) -> Json<Vec<Vec<String>>> {
    probe(&args)
}

/// Performs the operation in class write.
#[tool(side_effects = "write")]
fn probe_write(args: Args) -> Json<Vec<Vec<String>>> {
    probe(&args)
}

fn probe(args: &Args) -> Json<Vec<Vec<String>>> {
    let preopens = get_directories();
    let tell = |op: &str, path: &str| match preopens.first() {
        None => "there is no directory".to_owned(),
        Some((root, _)) => act(root, op, path).unwrap_or_else(|code| code.name().to_owned()),
    };
    Json(args.ops.iter().map(|op| args.paths.iter().map(|path| tell(op, path)).collect()).collect())
}

const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const STAY: PathFlags = PathFlags::empty();
/// The source and the target of the legitimate side of renames and links.
const HERE: &str = "here.txt";
const THERE: &str = "there.txt";

fn act(root: &Descriptor, op: &str, path: &str) -> Result<String, ErrorCode> {
    match op {
        "mkdir" => root.create_directory_at(path).map(done),
        "rmdir" => root.remove_directory_at(path).map(done),
        "unlink" => root.unlink_file_at(path).map(done),
        "rename-from" => root.rename_at(path, root, THERE).map(done),
        "rename-to" => root.rename_at(HERE, root, path).map(done),
        "link-from" => root.link_at(STAY, path, root, THERE).map(done),
        "link-from-followed" => root.link_at(FOLLOW, path, root, THERE).map(done),
        "link-to" => root.link_at(STAY, HERE, root, path).map(done),
        "symlink-at" => root.symlink_at(HERE, path).map(done),
        "symlink-to" => root.symlink_at(path, THERE).map(done),
        "readlink" => root.readlink_at(path),
        "stat" => root.stat_at(FOLLOW, path).map(|stat| format!("{:?}", stat.type_)),
        "lstat" => root.stat_at(STAY, path).map(|stat| format!("{:?}", stat.type_)),
        "hash" => root.metadata_hash_at(FOLLOW, path).map(|_| done(())),
        "set-times" => {
            root.set_times_at(FOLLOW, path, NewTimestamp::Now, NewTimestamp::Now).map(done)
        }
        "set-own-times" => {
            root.set_times_at(STAY, path, NewTimestamp::Now, NewTimestamp::Now).map(done)
        }
        _ => opened(root, op, path),
    }
}

/// Performs the operations that open the path first.
fn opened(root: &Descriptor, op: &str, path: &str) -> Result<String, ErrorCode> {
    let (none, read, write) = (OpenFlags::empty(), DescriptorFlags::READ, DescriptorFlags::WRITE);
    let open = |how, flags| root.open_at(FOLLOW, path, how, flags);
    match op {
        "open" => open(none, read)?
            .read(4096, 0)
            .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned()),
        "open-itself" => root.open_at(STAY, path, none, read).map(|_| done(())),
        "open-write" => open(none, write).map(|_| done(())),
        "create" => open(OpenFlags::CREATE, write).map(|_| done(())),
        "create-new" => open(OpenFlags::CREATE | OpenFlags::EXCLUSIVE, write).map(|_| done(())),
        "truncate" => open(OpenFlags::TRUNCATE, write).map(|_| done(())),
        "append" => open(none, write)?
            .append_via_stream()?
            .blocking_write_and_flush(b"more")
            .map(done)
            .map_err(|_| ErrorCode::Io),
        "set-size" => open(none, write)?.set_size(1).map(done),
        // Operations through a descriptor opened for reading, which must not change anything in any
        // class.
        "append-by-reader" => open(none, read)?.append_via_stream().map(|_| done(())),
        "write-by-reader" => open(none, read)?.write(b"x", 0).map(|_| done(())),
        "set-size-by-reader" => open(none, read)?.set_size(0).map(done),
        "set-handle-times" => {
            open(none, read)?.set_times(NewTimestamp::Now, NewTimestamp::Now).map(done)
        }
        "readdir" => {
            let entries = open(OpenFlags::DIRECTORY, read)?.read_directory()?;
            let mut names = Vec::new();
            while let Some(entry) = entries.read_directory_entry()? {
                names.push(entry.name);
            }
            names.sort();
            Ok(names.join(" "))
        }
        "mkdir-below" => open(OpenFlags::DIRECTORY, read | DescriptorFlags::MUTATE_DIRECTORY)?
            .create_directory_at("made")
            .map(done),
        _ => Err(ErrorCode::Unsupported),
    }
}

fn done((): ()) -> String {
    "done".to_owned()
}

palisade_guest::export!(probe_read, probe_write);
