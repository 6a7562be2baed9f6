//! Measures the server: many sessions that read a file while many subscribers read every event,
//! against the same calls in the library.

pub(crate) mod connection;
mod lanes;
pub(crate) mod served;
mod subscribers;

use crate::report::{self, Series, shown, size};
use crate::world::World;
use lanes::{InProcess, Lane, OfServer};
use palisade::CallMode;
use served::{Held, Served};
use std::time::{Duration, Instant};
use subscribers::{Delivered, Subscribers};
use tokio::runtime::Runtime;

/// The size of a run.
struct Scale {
    sessions: usize,
    /// The calls of each session in a turn.
    calls: usize,
    /// The calls in flight, each on a connection of its own. A server admits 256 connections of
    /// one machine, subscribers included.
    at_once: usize,
    subscribers: usize,
    /// The calls of a single session in a turn.
    alone: usize,
    turns: usize,
}

/// An unoptimised run only shows that the group works.
const SCALE: Scale = if cfg!(debug_assertions) {
    Scale { sessions: 8, calls: 5, at_once: 4, subscribers: 16, alone: 20, turns: 1 }
} else {
    Scale { sessions: 100, calls: 50, at_once: 50, subscribers: 200, alone: 500, turns: 3 }
};

pub(crate) fn run(world: &World) {
    let runtime = crate::on_every_core();
    let server = match Served::start(world, &[]) {
        Ok(server) => server,
        Err(why) => return report::skipped("server", &why),
    };
    let hosts =
        [CallMode::InPlace, CallMode::OWN_THREADS].map(|mode| InProcess::new(world, mode, &SCALE));
    let mut lanes = runtime.block_on(OfServer::open(&server, &SCALE));
    let mut memory = vec![("ready", server.held())];
    let (mut tables, mut delivered) = (Tables::default(), Vec::new());
    for turn in 0..=SCALE.turns {
        // The first turn warms up.
        let counts = turn > 0;
        for (number, host) in hosts.iter().enumerate() {
            tables.measure(&runtime, (number, counts), host.lanes());
        }
        lanes = tables.measure(&runtime, (2, counts), lanes);
        if turn == 1 {
            memory.push(("warm, without subscribers", server.held()));
        }
        let calls = SCALE.alone + SCALE.sessions * SCALE.calls;
        let subscribers = Subscribers::attach(&runtime, &server, SCALE.subscribers, calls);
        if turn == 1 {
            memory.push(("with subscribers", server.held()));
        }
        lanes = tables.measure(&runtime, (3, counts), lanes);
        let called = Instant::now();
        if turn == SCALE.turns {
            memory.push(("after the calls", server.held()));
        }
        let of_turn = subscribers.finish(&runtime, called);
        if counts {
            delivered.push(of_turn);
        }
        server.wait_until_unread();
    }
    memory.push(("subscribers gone", server.held()));
    tables.print();
    print_delivered(&delivered);
    print_memory(&memory);
}

/// The contestants, in the order of their rows.
const ROWS: [&str; 4] = [
    "the library, in place",
    "the library, own threads",
    "the server",
    "the server, all subscribers",
];

/// The figures of one session, and of many at once.
#[derive(Default)]
struct Tables {
    alone: [Loads; ROWS.len()],
    many: [Loads; ROWS.len()],
}

/// The calls of a contestant.
#[derive(Default)]
struct Loads {
    times: Vec<Duration>,
    whole: Duration,
}

impl Tables {
    /// Measures a contestant with one session and with many. Calls that do not count warm up.
    fn measure<L: Lane>(
        &mut self,
        runtime: &Runtime,
        (number, counts): (usize, bool),
        mut lanes: Vec<L>,
    ) -> Vec<L> {
        let rest = lanes.split_off(1);
        let (mut lanes, one) = load(runtime, lanes, (1, SCALE.alone));
        lanes.extend(rest);
        let (lanes, many) = load(runtime, lanes, (usize::MAX, SCALE.calls));
        if counts {
            for (table, load) in [(&mut self.alone, one), (&mut self.many, many)] {
                table[number].times.extend(load.times);
                table[number].whole += load.whole;
            }
        }
        lanes
    }

    fn print(self) {
        let many = format!("{} sessions, {} calls at once", SCALE.sessions, SCALE.at_once);
        for (name, table) in [("1 session", self.alone), (&many, self.many)] {
            let columns = ["calls/s", "p50", "p99", "p50, ratio"];
            report::row(&format!("\n{name}"), &columns.map(str::to_owned));
            let mut base = None;
            for (row, load) in ROWS.iter().zip(table) {
                let rate = load.times.len() as f64 / load.whole.as_secs_f64();
                let series = Series::of(row, load.times);
                let p50 = series.at(500);
                let ratio = p50.as_secs_f64() / base.get_or_insert(p50).as_secs_f64();
                let cells = [
                    format!("{rate:.0}"),
                    shown(p50),
                    shown(series.at(990)),
                    format!("× {ratio:.2}"),
                ];
                report::row(&format!("  {row}"), &cells);
            }
        }
    }
}

/// Runs all lanes at once, each with at most this many of its sessions, in turns.
fn load<L: Lane>(
    runtime: &Runtime,
    mut lanes: Vec<L>,
    (most, calls): (usize, usize),
) -> (Vec<L>, Loads) {
    for lane in &mut lanes {
        runtime.block_on(lane.begin());
    }
    let begun = Instant::now();
    let running: Vec<_> = lanes
        .into_iter()
        .map(|mut lane| {
            runtime.spawn(async move {
                let sessions = lane.sessions().min(most);
                let mut times = Vec::with_capacity(sessions * calls);
                for session in (0..calls).flat_map(|_| 0..sessions) {
                    let wanted = Instant::now();
                    // So that the wait for a thread is a part of the time, as it is in the server.
                    tokio::task::yield_now().await;
                    lane.call(session).await;
                    times.push(wanted.elapsed());
                }
                lane.end();
                (lane, times)
            })
        })
        .collect();
    let ended = running.into_iter().map(|lane| runtime.block_on(lane).expect("a lane"));
    let (lanes, times): (Vec<_>, Vec<_>) = ended.unzip();
    (lanes, Loads { times: times.concat(), whole: begun.elapsed() })
}

fn print_delivered(turns: &[Delivered]) {
    let columns = ["of a turn", "bytes to each", "p50 later", "last later"];
    report::row("\nevents", &columns.map(str::to_owned));
    let mean = |of: fn(&Delivered) -> f64| turns.iter().map(of).sum::<f64>() / turns.len() as f64;
    let later: Vec<Duration> = turns.iter().flat_map(|turn| turn.later.clone()).collect();
    let later = Series::of("later", later);
    let cells = [
        format!("{:.0}", mean(|turn| turn.events as f64)),
        size(mean(|turn| turn.bytes as f64)),
        shown(later.at(500)),
        shown(later.at(1000)),
    ];
    report::row(&format!("  {} subscribers to all sessions", SCALE.subscribers), &cells);
}

fn print_memory(held: &[(&str, Held)]) {
    report::row("\nthe server holds", &["resident", "at most so far"].map(str::to_owned));
    for (when, held) in held {
        let cells = [held.resident, held.most].map(|bytes| size(bytes as f64));
        report::row(&format!("  {when}"), &cells);
    }
}
