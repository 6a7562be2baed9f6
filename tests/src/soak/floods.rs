//! A soak test for excessive output: a gibibyte on standard output, and a million messages to the
//! host of each kind.

use palisade::{Call, plugins::Shipped};
use serde_json::json;

use super::{MEMORY, Report};
use crate::Stage;
use crate::case::block_on;
use crate::guest::HOSTILE_ABUSE;
use crate::oracle::Resources;

/// The number of messages and the number of bytes.
const WORDS: u64 = 1_000_000;
const FLOOD: u64 = 1 << 30;
/// The guest's action, its amount, its output, and the number of dropped bytes.
const FLOODS: [(&str, u64, &str, u64); 4] = [
    ("flood", FLOOD, "flooded", FLOOD - (512 << 10)),
    ("say-often", WORDS, "said", WORDS - (256 << 10)),
    ("emit-often", WORDS, "emitted", 2 * WORDS - (1 << 20)),
    ("step-often", WORDS, "stepped", 0),
];

/// Runs `rounds` rounds of all floods, with a subscriber that never reads its events.
///
/// # Panics
///
/// If the host cannot be built.
pub fn floods(rounds: usize) -> Report {
    let stage = Stage::new(&[HOSTILE_ABUSE], |builder| builder.shipped(Shipped::LeftOut));
    let stream = stage.host.events();
    let mut wrong = round(&stage);
    let before = Resources::now();
    (1..rounds.max(2)).for_each(|_| wrong.extend(round(&stage)));
    Report::new(&format!("{} events missed by who reads none {:?}", stream.missed(), wrong.first()))
        .bound("what is dropped is counted, and the answers are whole", wrong.is_empty())
        .held(before, MEMORY)
}

fn round(stage: &Stage) -> Vec<String> {
    let flood = |(how, amount, answer, dropped): &(&str, u64, &str, u64)| {
        let call = Call::new("abuse", json!({"how": how, "amount": amount}));
        let result = block_on(stage.host.dispatch(stage.host.session(), call));
        stage.recorder.forget();
        let right = result.output().as_deref() == Some(*answer)
            && result.to_json()["usage"]["truncated_bytes"] == *dropped;
        (!right).then(|| format!("{how}: {result} {}", result.to_json()["usage"]))
    };
    FLOODS.iter().filter_map(flood).collect()
}
