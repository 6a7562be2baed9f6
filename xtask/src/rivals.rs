//! Calls per second and their latencies, beside other servers with equal tools, in one run: the official Python SDK's own server, and ACT.
//!
//! The others come from pip, in exact versions, into a directory below the target directory; what cannot be had is skipped aloud. All of them run for the whole
//! time, and are measured in turn, cell by cell, by one and the same client: raw JSON-RPC of the current revision, written and read here. Ours runs as it is
//! shipped, with its policy, its validation and its events; the others as they start by themselves.

mod contestant;
mod http;
mod lines;
mod load;
mod table;
mod wire;

use crate::documents::Tried;
use crate::place::Place;
use crate::served::Way;
use anyhow::{Context as _, bail, ensure};
use contestant::{Contestant, Server};
use load::{Measured, Times};
use std::fs;
use std::time::Duration;
use table::Row;
use wire::Tool;

/// How many call at once.
const CALLERS: [usize; 2] = [1, 8];
/// How often each server is asked in a cell, in turn with the others. The middle of what was measured counts: what the machine does besides hits one round, not all.
const ROUNDS: usize = 5;
/// How long a round warms, and measures.
const TIMES: Times = Times { warm: Duration::from_millis(300), measured: Duration::from_millis(1500) };

/// Measures all that can be had, and fails where another one is ahead of ours. An unoptimised build is measured and not judged.
pub(crate) fn run(place: &Place, tried: Tried) -> anyhow::Result<()> {
    let home = place.target.join("rivals");
    fs::create_dir_all(&home)?;
    let contestants = contestant::all(place, tried, &home)?;
    contestants.iter().for_each(|contestant| println!("{}", contestant.described()));
    println!("{}\n", conditions(tried));
    let mut rows = Vec::new();
    for way in [Way::Lines, Way::Http] {
        rows.extend(measure(&contestants, way)?);
    }
    println!("\nrepeat it with: {}", command(tried));
    let behind = table::behind(&rows, contestant::OURS);
    match tried {
        Tried::Debug => println!("not judged: an unoptimised build"),
        Tried::AsWritten => ensure!(behind.is_empty(), "not ahead everywhere:\n{}", behind.join("\n")),
    }
    Ok(())
}

fn command(tried: Tried) -> &'static str {
    match tried {
        Tried::Debug => "cargo xtask rivals --debug",
        Tried::AsWritten => "cargo xtask rivals",
    }
}

fn conditions(tried: Tried) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let build = match tried {
        Tried::Debug => "an unoptimised build of ours",
        Tried::AsWritten => "the release build",
    };
    let Times { warm, measured } = TIMES;
    format!(
        "{build}; {cores} cores, shared with the client; the medians of {ROUNDS} rounds in turn, {measured:?} each after {warm:?} of warming; texts of 1 KiB"
    )
}

/// Those that run.
type Servers<'a> = Vec<(&'a Contestant, Server)>;

/// All cells of one way: each server is asked in turn, so that they share what the machine does besides.
fn measure(contestants: &[Contestant], way: Way) -> anyhow::Result<Vec<Row>> {
    let mut servers: Servers = Vec::new();
    for contestant in contestants {
        match contestant.start(way) {
            Ok(server) => servers.push((contestant, server)),
            Err(error) if contestant.name() == contestant::OURS => bail!("{error:#}"),
            Err(error) => println!("skipped: {} over {}: {error:#}", contestant.name(), way.name()),
        }
    }
    let mut rows = Vec::new();
    for tool in Tool::all() {
        for callers in CALLERS {
            let cell = cell(&mut servers, (way, &tool, callers))?;
            cell.iter().for_each(|row| println!("{row}"));
            rows.extend(cell);
        }
    }
    for (contestant, server) in servers {
        server.stop().with_context(|| format!("{} over {}", contestant.name(), way.name()))?;
    }
    Ok(rows)
}

/// One row for each server.
fn cell(servers: &mut Servers, (way, tool, callers): (Way, &Tool, usize)) -> anyhow::Result<Vec<Row>> {
    let mut rounds = vec![Vec::new(); servers.len()];
    for _ in 0..ROUNDS {
        for ((contestant, server), rows) in servers.iter_mut().zip(&mut rounds) {
            let Measured { latencies, time } = server.load(tool, callers, TIMES)?;
            rows.push(Row::of(contestant.name(), (way.name(), tool.name, callers), latencies, time));
        }
    }
    Ok(rounds.iter().filter_map(|rounds| Row::middle(rounds)).collect())
}
