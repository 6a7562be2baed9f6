//! Reads, writes, makes and lists as much as it is told to.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};

use palisade_guest::{Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// How much, or how many.
    amount: u64,
}

/// Reads so many MiB of `big`.
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

/// Writes so many MiB.
#[tool(side_effects = "write")]
fn write(args: Args) -> Result<String> {
    let (mut file, part) = (File::create("written")?, vec![b'w'; 1 << 20]);
    for _ in 0..args.amount {
        file.write_all(&part)?;
    }
    Ok(format!("{} written", args.amount << 20))
}

/// Makes one file of so many MiB, all of it a hole.
#[tool(side_effects = "write")]
fn stretch(args: Args) -> Result<String> {
    File::create("stretched")?.set_len(args.amount << 20)?;
    Ok("stretched".to_owned())
}

/// Makes so many empty files.
#[tool(side_effects = "write")]
fn make(args: Args) -> Result<String> {
    for number in 0..args.amount {
        File::create(format!("f{number}"))?;
    }
    Ok(format!("{} made", args.amount))
}

/// Makes so many directories inside each other.
#[tool(side_effects = "write")]
fn nest(args: Args) -> Result<String> {
    let mut path = String::from("d");
    for _ in 0..args.amount {
        fs::create_dir(&path)?;
        path.push_str("/d");
    }
    Ok(format!("{} nested", args.amount))
}

/// Lists the workspace so many times.
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

palisade_guest::export!(read, write, stretch, make, nest, list);
