//! What a fuzzer may hand to each border of the host, and what must hold whatever that is.
//!
//! Each border is a function of bytes: `fuzz/` hands it what libFuzzer finds, and the suite `fuzz` what it has found so far (`fuzz/corpus`). A function returns
//! whatever the bytes are; it panics where the host broke a promise.

mod component;
mod output;
mod paths;
mod reply;
mod schema;
mod settings;

pub use component::component;
pub use output::{ANSWER, answer, output};
pub use paths::{paths, protected};
pub use reply::reply;
pub use schema::schema;
pub use settings::settings;

/// Takes whatever bytes there are.
pub type Border = fn(&[u8]);

/// Every border by its name, which is also that of its corpus.
pub const BORDERS: [(&str, Border); 6] = [
    ("component", component),
    ("output", output),
    ("paths", paths),
    ("reply", reply),
    ("schema", schema),
    ("settings", settings),
];

/// What no message is longer than, in bytes.
const MESSAGE: usize = 8 * 1024;

/// A message for people: there is one, it ends, and nothing in it steers a terminal.
///
/// # Panics
///
/// Where it is not so.
fn check_message(message: &str) {
    assert!(!message.is_empty() && message.len() <= MESSAGE, "a message of {} bytes", message.len());
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!message.contains(steers), "a message with control characters: {message:?}");
}
