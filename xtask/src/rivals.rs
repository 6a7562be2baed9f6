//! Compares calls per second and latencies with other servers with equal tools in one run: the
//! server of the official Python SDK, and ACT.
//!
//! The others are installed by pip in exact versions below the target directory; an unavailable one
//! is skipped with a message. All servers run for the whole time and are measured in turn, cell by
//! cell, by the same client: raw JSON-RPC of the current revision. Palisade runs as shipped, with
//! policy, validation and events; the others run with their defaults.

mod contestant;
mod http;
mod lines;
mod load;
mod table;
mod wire;

use crate::documents::Profile;
use crate::place::Place;
use crate::served::Transport;
use anyhow::{Context as _, bail, ensure};
use contestant::{Contestant, Server};
use load::{Measured, Times};
use std::fs;
use std::time::Duration;
use table::Row;
use wire::Tool;

/// The numbers of concurrent callers.
const CALLERS: [usize; 2] = [1, 8];
/// Rounds per server and cell, in turn with the other servers. The median is reported: a
/// disturbance by the machine affects one round only.
const ROUNDS: usize = 5;
/// The warm-up time and the measured time of a round.
const TIMES: Times =
    Times { warm: Duration::from_millis(300), measured: Duration::from_millis(1500) };

/// Measures all available servers, and fails if another one is ahead of Palisade. An unoptimised
/// build is measured but not judged.
pub(crate) fn run(place: &Place, profile: Profile) -> anyhow::Result<()> {
    let home = place.target.join("rivals");
    fs::create_dir_all(&home)?;
    let contestants = contestant::all(place, profile, &home)?;
    contestants.iter().for_each(|contestant| println!("{}", contestant.described()));
    println!("{}\n", conditions(profile));
    let mut rows = Vec::new();
    for transport in [Transport::Stdio, Transport::Http] {
        rows.extend(measure(&contestants, transport)?);
    }
    println!("\nrepeat it with: {}", command(profile));
    let behind = table::behind(&rows, contestant::OURS);
    match profile {
        Profile::Debug => println!("not judged: an unoptimised build"),
        Profile::Release => {
            ensure!(behind.is_empty(), "not ahead everywhere:\n{}", behind.join("\n"));
        }
    }
    Ok(())
}

fn command(profile: Profile) -> &'static str {
    match profile {
        Profile::Debug => "cargo xtask rivals --debug",
        Profile::Release => "cargo xtask rivals",
    }
}

fn conditions(profile: Profile) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let build = match profile {
        Profile::Debug => "an unoptimised build of ours",
        Profile::Release => "the release build",
    };
    let Times { warm, measured } = TIMES;
    format!(
        "{build}; {cores} cores, shared with the client; the medians of {ROUNDS} rounds in turn, {measured:?} each after {warm:?} of warming; texts of 1 KiB"
    )
}

/// The running servers.
type Servers<'a> = Vec<(&'a Contestant, Server)>;

/// Measures all cells of one transport, each server in turn, so that disturbances affect all alike.
fn measure(contestants: &[Contestant], transport: Transport) -> anyhow::Result<Vec<Row>> {
    let mut servers: Servers = Vec::new();
    for contestant in contestants {
        match contestant.start(transport) {
            Ok(server) => servers.push((contestant, server)),
            Err(error) if contestant.name() == contestant::OURS => bail!("{error:#}"),
            Err(error) => {
                println!("skipped: {} over {}: {error:#}", contestant.name(), transport.name());
            }
        }
    }
    let mut rows = Vec::new();
    for tool in Tool::all() {
        for callers in CALLERS {
            let cell = cell(&mut servers, (transport, &tool, callers))?;
            cell.iter().for_each(|row| println!("{row}"));
            rows.extend(cell);
        }
    }
    for (contestant, server) in servers {
        server
            .stop()
            .with_context(|| format!("{} over {}", contestant.name(), transport.name()))?;
    }
    Ok(rows)
}

/// Returns one row per server.
fn cell(
    servers: &mut Servers,
    (transport, tool, callers): (Transport, &Tool, usize),
) -> anyhow::Result<Vec<Row>> {
    let mut rounds = vec![Vec::new(); servers.len()];
    for _ in 0..ROUNDS {
        for ((contestant, server), rows) in servers.iter_mut().zip(&mut rounds) {
            let Measured { latencies, time } = server.load(tool, callers, TIMES)?;
            rows.push(Row::new(
                contestant.name(),
                (transport.name(), tool.name, callers),
                latencies,
                time,
            ));
        }
    }
    Ok(rounds.iter().filter_map(|rounds| Row::middle(rounds)).collect())
}
