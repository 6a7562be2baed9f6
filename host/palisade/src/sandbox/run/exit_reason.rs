//! Classification of the end of a guest that did not return: by what the host observed, rather than
//! by the text of the trap.

use super::client_requests::ClientExit;
use super::denied::Denied;
use super::interrupt::Interrupted;
use super::state::State;
use crate::execution::owner::{guest_descriptors, sandbox_count};
use crate::sandbox::engine::{is_out_of_descriptors, is_out_of_memory, live_sandboxes};
use crate::sandbox::limits;
use crate::tool::text::{cut, elided, visible};
use crate::tool::{ErrorKind, Limit, SideEffects, budget};
use palisade_wasi_fs::Exhausted;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};
use wasmtime::{FrameInfo, Trap, WasmBacktrace};

/// The message of wasmtime when the bound on lifted data is reached. The error type is private. A
/// test fails if this text changes.
const FUEL_TEXT: &str = "fuel allocated for hostcalls has been exhausted";
/// The message of wasmtime when a store's resource table is full.
const TABLE_TEXT: &str = "resource table has no free keys";
/// The message of wasmtime when a store holds too many component-model handles.
const HANDLES_TEXT: &str = "store handle limit exceeded";
/// The part of the end of a guest's standard error that is kept, in bytes.
const STDERR_TAIL: usize = 2 << 10;
/// The part of a backtrace that is kept, in bytes. The number of frames is limited, but the guest
/// chose their names.
const FRAMES: usize = 8 << 10;
/// The part of an engine error that is read, in bytes.
const SENTENCE: usize = 512;

/// The least number of frames in the trace of a deep recursion. The engine keeps 16.
const MANY_FRAMES: usize = 12;
/// The description of a stack that overflowed into the guest's memory.
const STACK: &str = "the plugin most likely ran out of stack: it accessed memory out of bounds in a deep recursion; a less nested input, or a larger stack of the plugin (linked with `-zstack-size`), avoids that";

/// The end of a guest that did not return.
#[derive(Debug)]
pub(crate) enum ExitReason {
    /// The deadline passed.
    Deadline,
    /// The caller cancelled the call.
    Cancelled,
    /// A limit was reached.
    Limit(Limit, u64),
    /// The guest made a request to its client that ends the call.
    Client(ClientExit),
    /// The guest caused a trap.
    Trap(Crash),
}

/// A crash of a guest, for the log and the user's terminal. It quotes the guest, so no result
/// contains it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Crash {
    /// The kind of crash, and the end of the guest's standard error.
    pub(crate) message: String,
    /// The engine's own report, on one line.
    #[source]
    frames: Frames,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
struct Frames(String);

impl ExitReason {
    /// Returns the end of a call for which no sandbox became free.
    pub(crate) fn queue_timeout() -> Self {
        Self::Limit(Limit::Queue, limits::QUEUE_MILLIS)
    }

    /// Converts the end of a call to the error of the call.
    pub(crate) fn into_error_kind(self, timeout: Duration, class: SideEffects) -> ErrorKind {
        match self {
            Self::Deadline => ErrorKind::Timeout { limit: timeout, class, input: None },
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Limit(limit, value) => ErrorKind::ResourceExhausted { limit, value },
            Self::Client(exit) => exit.into(),
            Self::Trap(crash) => ErrorKind::crashed(crash),
        }
    }
}

/// Classifies an error that came out of a guest.
pub(crate) fn classify(error: &wasmtime::Error, state: &State) -> ExitReason {
    if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
        return match interrupted {
            Interrupted::Deadline => ExitReason::Deadline,
            Interrupted::Cancelled => ExitReason::Cancelled,
        };
    }
    if let Some(exit) = error.downcast_ref::<ClientExit>() {
        return ExitReason::Client(exit.clone());
    }
    if let Some(Denied(exhausted)) = error.downcast_ref::<Denied>() {
        return denied(*exhausted);
    }
    // The deadline takes precedence over the trap. A bulk operation or a host call can last beyond
    // the deadline.
    if Instant::now() >= state.deadline {
        return ExitReason::Deadline;
    }
    if let Some((limit, value)) = limit(error, state) {
        return ExitReason::Limit(limit, value);
    }
    let frames = Frames(elided(&beginning(error, FRAMES), FRAMES));
    ExitReason::Trap(Crash { message: trap_text(error, state), frames })
}

fn denied(exhausted: budget::Exhausted) -> ExitReason {
    match exhausted {
        budget::Exhausted::CallMemory { limit } => ExitReason::Limit(Limit::Memory, limit),
        budget::Exhausted::TotalMemory { limit } => ExitReason::Limit(Limit::TotalMemory, limit),
        budget::Exhausted::AddressSpace { limit } => ExitReason::Limit(Limit::AddressSpace, limit),
        budget::Exhausted::Deadline => ExitReason::Deadline,
        budget::Exhausted::Cancelled => ExitReason::Cancelled,
    }
}

fn limit(error: &wasmtime::Error, state: &State) -> Option<(Limit, u64)> {
    if let Some(limit) = state.limiter.denied() {
        return Some(limit);
    }
    if let Some(exhausted) = state.filesystem.exhausted() {
        return Some(quota(exhausted));
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return Some((Limit::Sandboxes, u64::from(sandbox_count())));
    }
    if is_out_of_memory(error) {
        return Some((Limit::Sandboxes, live_sandboxes()));
    }
    if is_out_of_descriptors(error) {
        return Some((Limit::OpenFiles, guest_descriptors()));
    }
    // Only the engine's own message, without the frames around it, whose names the guest chose.
    let text = beginning(error.root_cause(), SENTENCE);
    if text.contains(FUEL_TEXT) {
        Some((Limit::HostcallData, state.hostcall_data as u64))
    } else if text.contains(TABLE_TEXT) {
        Some((Limit::Handles, limits::HANDLES as u64))
    } else if text.contains(HANDLES_TEXT) {
        Some((Limit::Handles, limits::COMPONENT_HANDLES as u64))
    } else {
        None
    }
}

/// Returns the beginning of an error's text, including its causes. The guest chooses the length of
/// the text, so the rest is never formatted.
fn beginning(error: impl fmt::Display, bytes: usize) -> String {
    struct Beginning(String, usize);
    impl fmt::Write for Beginning {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let kept = cut(text, self.1 - self.0.len());
            self.0.push_str(kept);
            if kept.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
        }
    }
    let mut beginning = Beginning(String::new(), bytes);
    // A write fails only when the buffer is full.
    let _ = write!(beginning, "{error:#}");
    beginning.0
}

/// Returns the description of a trap for a user: its kind, and the end of the guest's standard
/// error.
fn trap_text(error: &wasmtime::Error, state: &State) -> String {
    let what = match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            "the plugin ran out of stack: it recurses too deeply".to_owned()
        }
        Some(Trap::MemoryOutOfBounds) if is_in_recursion(error) => STACK.to_owned(),
        Some(Trap::UnreachableCodeReached) => "the plugin crashed".to_owned(),
        Some(trap) => format!("the plugin crashed: {trap}"),
        None => match error.downcast_ref::<wasmtime_wasi::I32Exit>() {
            Some(exit) => format!("the plugin exited with code {} in place of returning", exit.0),
            None => format!(
                "the plugin could not be run: {}",
                cut(&visible(&beginning(error.root_cause(), SENTENCE)), SENTENCE)
            ),
        },
    };
    let (stderr, _) = state.wasi_ctx.take_errors();
    let last = last_words(&String::from_utf8_lossy(&stderr));
    if last.is_empty() { what } else { format!("{what}; its last words: {last}") }
}

/// Returns true if the innermost frames of a trap are those of a deep recursion: the stack in a
/// guest's own memory ends at its address 0, so that running out of it is an access out of bounds.
fn is_in_recursion(error: &wasmtime::Error) -> bool {
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else { return false };
    let frames = trace.frames();
    let functions: BTreeSet<u32> = frames.iter().map(FrameInfo::func_index).collect();
    frames.len() >= MANY_FRAMES && functions.len() * 2 <= frames.len()
}

/// Returns the end of what a guest wrote to standard error, on one line. It leaves out how a
/// developer gets a backtrace, which does nothing in a sandbox without an environment.
fn last_words(stderr: &str) -> String {
    let text = stderr.trim();
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(STDERR_TAIL))..];
    let lines = tail.lines().map(str::trim);
    let kept = lines.filter(|line| !line.is_empty() && !line.contains("RUST_BACKTRACE="));
    let mut words = String::new();
    for line in kept {
        match words.chars().last() {
            None => {}
            Some(':') => words.push(' '),
            Some(_) => words.push_str(" | "),
        }
        words.push_str(line);
    }
    elided(&words, STDERR_TAIL)
}

/// Returns the limit of an exhausted quota, with its value.
pub(crate) fn quota(exhausted: Exhausted) -> (Limit, u64) {
    match exhausted {
        Exhausted::ReadBytes(limit) => (Limit::BytesRead, limit),
        Exhausted::WriteBytes(limit) => (Limit::BytesWritten, limit),
        Exhausted::NewEntries(limit) => (Limit::NewEntries, limit),
        Exhausted::ListedEntries(limit) => (Limit::ListedEntries, limit),
        Exhausted::Depth(limit) => (Limit::Depth, limit),
        Exhausted::OpenFiles(limit) => (Limit::OpenFiles, limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// An error that writes a name a thousand times and counts the writes.
    struct Frames<'a>(&'a str, Cell<usize>);

    impl fmt::Display for Frames<'_> {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            (0..1000).try_for_each(|_| {
                self.1.set(self.1.get() + 1);
                out.write_str(self.0)
            })
        }
    }

    #[test]
    fn missing_descriptor_of_the_process_is_no_crash() {
        for errno in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE] {
            let error = wasmtime::Error::from(errno).context("an image of memory");
            assert!(is_out_of_descriptors(&error));
            let error = std::io::Error::from_raw_os_error(errno.raw_os_error());
            assert!(is_out_of_descriptors(&wasmtime::Error::from(error)));
        }
        assert!(!is_out_of_descriptors(&wasmtime::Error::msg("Too many open files")));
    }

    #[test]
    fn last_words_are_one_line_without_a_developers_hints() {
        let panic = "\nthread 'main' (1) panicked at src/lib.rs:3:5:\nno such unit\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(last_words(panic), "thread 'main' (1) panicked at src/lib.rs:3:5: no such unit");
        assert_eq!(
            last_words("Traceback:\n  File \"a\"\nKeyError\n"),
            "Traceback: File \"a\" | KeyError"
        );
        assert_eq!(last_words(" \n"), "");
        assert!(last_words(&"x\n".repeat(STDERR_TAIL)).chars().count() <= STDERR_TAIL + 64);
    }

    #[test]
    fn formatted_frames_are_bounded() {
        let frames = Frames(&"ä".repeat(700), Cell::new(0));
        assert_eq!(beginning(&frames, FRAMES), "ä".repeat(FRAMES / 2));
        assert_eq!(frames.1.get(), FRAMES / 1400 + 1);
        assert_eq!(beginning("short", FRAMES), "short");
    }
}
