//! A question with the answers yes and no, outside any call.

use super::question::{Offers, Reading, Reply, read};
use super::terminal_lock::TerminalLock;
use super::{forget_what_was_typed, open, stop_in_background};
use std::io::{self, Write as _};

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum YesNo {
    Yes,
    /// Also the answer of an empty line, and of an input that ends.
    No,
}

/// Writes a text to the terminal and asks until the answer is yes or no. The text has been escaped,
/// and ends with the question.
///
/// # Errors
///
/// If there is no terminal.
pub(in crate::cli) fn yes_or_no(text: &str) -> io::Result<YesNo> {
    let (mut input, mut output) = open()?;
    stop_in_background(&input);
    let _lock = TerminalLock::wait(&mut output, || false);
    let mut text = text;
    loop {
        // Input that was typed before is no answer to this question.
        forget_what_was_typed(&input)?;
        output.write_all(text.as_bytes())?;
        output.flush()?;
        match read(&mut input, &Offers::default())? {
            Reading::Reply(Reply::Yes) => return Ok(YesNo::Yes),
            Reading::Reply(_) => return Ok(YesNo::No),
            Reading::End => {
                output.write_all(b"\n")?;
                return Ok(YesNo::No);
            }
            Reading::Unclear => text = "please answer y or n: ",
        }
    }
}
