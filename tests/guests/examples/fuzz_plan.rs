//! A guest that executes a sequence of file operations directly through `wasi:filesystem`, each
//! relative to a directory that an earlier operation has opened.

use palisade_guest::{Json, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The steps, in order.
    steps: Vec<Step>,
}

#[derive(Deserialize, JsonSchema)]
struct Step {
    /// The operation.
    op: String,
    /// The number of the directory: 0 is the workspace, 1 the first opened directory, and so on.
    at: usize,
    /// The path.
    path: String,
    /// The number of the second path's directory, for operations with two paths.
    to_at: usize,
    /// The second path, for operations with two paths.
    to: String,
}

/// Performs the steps, and returns the result of each.
#[tool(side_effects = "write")]
fn plan(args: Args) -> Json<Vec<String>> {
    let mut open: Vec<Descriptor> =
        get_directories().into_iter().map(|(directory, _)| directory).collect();
    let told = args.steps.iter().map(|step| {
        let done = carry_out(&open, step);
        done.map_or_else(
            |code| code.name().to_owned(),
            |done| match done {
                Done::Opened(directory) => {
                    open.push(directory);
                    "opened".to_owned()
                }
                Done::Told(text) => text,
            },
        )
    });
    Json(told.collect())
}

enum Done {
    Opened(Descriptor),
    Told(String),
}

const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const STAY: PathFlags = PathFlags::empty();

fn carry_out(open: &[Descriptor], step: &Step) -> Result<Done, ErrorCode> {
    let (Some(root), Some(other)) =
        (open.get(step.at % open.len().max(1)), open.get(step.to_at % open.len().max(1)))
    else {
        return Err(ErrorCode::BadDescriptor);
    };
    let (path, to) = (step.path.as_str(), step.to.as_str());
    let told = match step.op.as_str() {
        "open-directory" => {
            let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
            return root.open_at(FOLLOW, path, OpenFlags::DIRECTORY, flags).map(Done::Opened);
        }
        "make-directory" => root.create_directory_at(path).map(nothing),
        "remove-directory" => root.remove_directory_at(path).map(nothing),
        "unlink" => root.unlink_file_at(path).map(nothing),
        "rename" => root.rename_at(path, other, to).map(nothing),
        "link" => root.link_at(STAY, path, other, to).map(nothing),
        "link-followed" => root.link_at(FOLLOW, path, other, to).map(nothing),
        "symlink" => root.symlink_at(to, path).map(nothing),
        "readlink" => root.readlink_at(path),
        "stat" => root.stat_at(FOLLOW, path).map(|stat| format!("{:?}", stat.type_)),
        "stat-itself" => root.stat_at(STAY, path).map(|stat| format!("{:?}", stat.type_)),
        "set-times" => {
            root.set_times_at(FOLLOW, path, NewTimestamp::Now, NewTimestamp::Now).map(nothing)
        }
        "set-own-times" => {
            root.set_times_at(STAY, path, NewTimestamp::Now, NewTimestamp::Now).map(nothing)
        }
        op => on_file(root, op, path),
    };
    told.map(Done::Told)
}

/// Performs the operations that open a file or a directory first.
fn on_file(root: &Descriptor, op: &str, path: &str) -> Result<String, ErrorCode> {
    let open = |how, flags| root.open_at(FOLLOW, path, how, flags);
    let (read, write) = (DescriptorFlags::READ, DescriptorFlags::WRITE);
    match op {
        "read" => open(OpenFlags::empty(), read)?
            .read(4096, 0)
            .map(|(read, _)| String::from_utf8_lossy(&read).into()),
        "list" => {
            let entries = open(OpenFlags::DIRECTORY, read)?.read_directory()?;
            let mut names = Vec::new();
            while let Some(entry) = entries.read_directory_entry()? {
                names.push(entry.name);
            }
            Ok(names.join(" "))
        }
        "write" => {
            open(OpenFlags::CREATE, write)?.write(b"written", 0).map(|written| written.to_string())
        }
        "create-new" => open(OpenFlags::CREATE | OpenFlags::EXCLUSIVE, write).map(|_| nothing(())),
        "truncate" => open(OpenFlags::TRUNCATE, write).map(|_| nothing(())),
        "append" => open(OpenFlags::empty(), write)?
            .append_via_stream()?
            .blocking_write_and_flush(b"more")
            .map(nothing)
            .map_err(|_| ErrorCode::Io),
        "set-size" => open(OpenFlags::empty(), write)?.set_size(3).map(nothing),
        _ => Err(ErrorCode::Unsupported),
    }
}

fn nothing((): ()) -> String {
    "done".to_owned()
}

palisade_guest::export!(plan);
