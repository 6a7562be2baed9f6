//! A guest that reads, writes, creates and lists a given amount.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};

use palisade_guest::{Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The amount or the count.
    amount: u64,
}

/// Reads this number of MiB of `big`.
#[tool(side_effects = "read")]
fn read(args: Args) -> Result<String> {
    let mut file = File::open("big")?.take(args.amount << 20);
    let (mut buffer, mut sum) = (vec![0; 1 << 20], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{sum} read")),
            count => sum += count,
        }
    }
}

/// Writes this number of MiB.
#[tool(side_effects = "write")]
fn write(args: Args) -> Result<String> {
    let (mut file, part) = (File::create("written")?, vec![b'w'; 1 << 20]);
    for _ in 0..args.amount {
        file.write_all(&part)?;
    }
    Ok(format!("{} written", args.amount << 20))
}

/// Creates one sparse file of this number of MiB.
#[tool(side_effects = "write")]
fn stretch(args: Args) -> Result<String> {
    File::create("stretched")?.set_len(args.amount << 20)?;
    Ok("stretched".to_owned())
}

/// Creates this number of empty files.
#[tool(side_effects = "write")]
fn make(args: Args) -> Result<String> {
    for number in 0..args.amount {
        File::create(format!("f{number}"))?;
    }
    Ok(format!("{} made", args.amount))
}

/// Creates this number of nested directories.
#[tool(side_effects = "write")]
fn nest(args: Args) -> Result<String> {
    let mut path = String::from("d");
    for _ in 0..args.amount {
        fs::create_dir(&path)?;
        path.push_str("/d");
    }
    Ok(format!("{} nested", args.amount))
}

/// Renames a file this number of times, below 126 directories whose names together exceed the
/// maximum length of a path: each is opened from its parent.
#[tool(side_effects = "write")]
fn shuffle(args: Args) -> Result<String> {
    let name = "d".repeat(250);
    let (mut folder, _) = get_directories().into_iter().next().ok_or("there is no directory")?;
    let told = |code: ErrorCode| code.name().to_owned();
    for _ in 0..126 {
        // The directories may exist from an earlier call.
        let _ = folder.create_directory_at(&name);
        let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
        folder =
            folder.open_at(PathFlags::empty(), &name, OpenFlags::DIRECTORY, flags).map_err(told)?;
    }
    folder
        .open_at(PathFlags::empty(), "f0", OpenFlags::CREATE, DescriptorFlags::WRITE)
        .map_err(told)?;
    for number in 0..args.amount {
        folder
            .rename_at(&format!("f{number}"), &folder, &format!("f{}", number + 1))
            .map_err(told)?;
    }
    Ok(format!("{} renamed", args.amount))
}

/// Lists the workspace this number of times.
#[tool(side_effects = "read")]
fn list(args: Args) -> Result<String> {
    let mut seen = 0;
    for _ in 0..args.amount {
        for entry in fs::read_dir(".")? {
            entry?;
            seen += 1;
        }
    }
    Ok(format!("{seen} listed"))
}

palisade_guest::export!(read, write, stretch, make, nest, shuffle, list);
