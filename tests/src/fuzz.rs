//! The fuzz targets: one function per input of the host that an attacker controls, with the
//! invariants that must hold for any input.
//!
//! Each target is a function of bytes: `fuzz/` calls it with the inputs of libFuzzer, and the suite
//! `fuzz` with the recorded corpus (`fuzz/corpus`). A target returns for any bytes, and panics if
//! the host violates an invariant.

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

/// A fuzz target: accepts any bytes.
pub type Border = fn(&[u8]);

/// The fuzz targets by name, which is also the directory name of their corpus.
pub const BORDERS: [(&str, Border); 6] = [
    ("component", component),
    ("output", output),
    ("paths", paths),
    ("reply", reply),
    ("schema", schema),
    ("settings", settings),
];

/// The maximum length of a message, in bytes.
const MESSAGE: usize = 8 * 1024;

/// Checks that a message for people is not empty, not too long, and free of control characters that
/// a terminal would interpret.
///
/// # Panics
///
/// If the message is none of this.
fn check_message(message: &str) {
    assert!(
        !message.is_empty() && message.len() <= MESSAGE,
        "a message of {} bytes",
        message.len()
    );
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!message.contains(steers), "a message with control characters: {message:?}");
}
