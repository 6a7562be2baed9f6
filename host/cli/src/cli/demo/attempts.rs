//! The attempts of the hostile plugin, with the evidence that each must show to count as held.

use palisade::tool::text::{elided, visible};
use palisade::{ErrorClass, ErrorKind, Limit, ToolResult};
use std::path::Path;
use std::time::Duration;

/// One attempt.
pub(super) struct Attempt {
    /// The name by which the plugin knows the attempt.
    pub(super) name: &'static str,
    /// The description for the user.
    pub(super) tries: &'static str,
    pub(super) tool: &'static str,
    pub(super) calls: Calls,
    wall: Wall,
}

/// How the attempt is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// One call with the default timeout.
    Once,
    /// Two calls; the second one is judged.
    Twice,
    /// One call with this timeout, in milliseconds.
    Within(u64),
    /// One call that is cancelled after this time, in milliseconds.
    CancelledAfter(u64),
}

/// The defence that must hold an attempt.
#[derive(Clone, Copy)]
enum Wall {
    /// The plugin received a refusal; the text names the defence.
    Refused(&'static str),
    /// The call ended with this error class; the text names the defence.
    Ends(ErrorClass, &'static str),
    /// The call ended at this limit.
    Limit(Limit),
    /// The call succeeded, and its excess output was dropped.
    Dropped,
    /// The host's change log has the change that the plugin conceals.
    Journal(&'static str),
}

const WRITER: &str = "escape";
const READER: &str = "escape_reading";

const fn attempt(name: &'static str, tries: &'static str, wall: Wall) -> Attempt {
    Attempt { name, tries, tool: WRITER, calls: Calls::Once, wall }
}

impl Attempt {
    const fn by(self, calls: Calls) -> Self {
        Self { calls, ..self }
    }

    const fn reading(self) -> Self {
        Self { tool: READER, ..self }
    }
}

/// In the order of display: files, environment, resource exhaustion, time, deception.
pub(super) static ATTEMPTS: &[Attempt] = &[
    attempt("absolute_path", "read /etc/passwd", Wall::Refused("its root is the workspace")),
    attempt(
        "parent_path",
        "climb out by ../..",
        Wall::Refused("no path leads above the workspace"),
    ),
    attempt(
        "planted_link",
        "follow a link that leads out",
        Wall::Refused("links are resolved inside the workspace only"),
    ),
    attempt(
        "hard_link",
        "give an outside file a name inside",
        Wall::Refused("no hard link through a link"),
    ),
    attempt(
        "write_outside",
        "write outside of the workspace",
        Wall::Refused("no path leads above the workspace"),
    ),
    attempt("hook", "plant a git hook", Wall::Refused("`.git` is protected, in any spelling")),
    attempt(
        "write_anyway",
        "write with a tool that may only read",
        Wall::Refused("mounted read-only"),
    )
    .reading(),
    attempt(
        "pipe",
        "wait at a pipe that nobody feeds",
        Wall::Refused("regular files and directories only"),
    ),
    attempt(
        "environment",
        "read your environment variables",
        Wall::Refused("the sandbox has none"),
    ),
    attempt("network", "open a connection", Wall::Refused("the sandbox has no network")),
    attempt("process", "run a program", Wall::Refused("the sandbox runs none")),
    attempt(
        "remember",
        "find what the last call left behind",
        Wall::Refused("a fresh sandbox for every call"),
    )
    .by(Calls::Twice),
    attempt("memory", "take 2 GiB of memory", Wall::Limit(Limit::Memory)),
    attempt("disk", "fill the disk", Wall::Limit(Limit::BytesWritten)),
    attempt("files", "make a million files", Wall::Limit(Limit::NewEntries)),
    attempt(
        "recursion",
        "overflow the stack",
        Wall::Ends(ErrorClass::ExecutionError, "a guarded stack of its own"),
    ),
    attempt("output", "print 64 MiB", Wall::Dropped),
    attempt("result", "return 64 MiB", Wall::Limit(Limit::HostcallData)),
    attempt(
        "loop",
        "compute for ever",
        Wall::Ends(ErrorClass::Timeout, "the deadline, here 300 ms"),
    )
    .by(Calls::Within(300)),
    attempt(
        "sleep",
        "sleep for an hour",
        Wall::Ends(ErrorClass::Timeout, "the deadline, here 300 ms"),
    )
    .by(Calls::Within(300)),
    attempt(
        "ignore_cancellation",
        "go on although it was cancelled",
        Wall::Ends(ErrorClass::Cancelled, "ended by force, after a grace of 25 ms"),
    )
    .by(Calls::CancelledAfter(100)),
    attempt(
        "impersonate",
        "speak in the host's own words",
        Wall::Ends(ErrorClass::ExecutionError, "an error of the tool, whatever it says"),
    ),
    attempt("hide_change", "change a file in secret", Wall::Journal("notes/changed")),
];

impl Attempt {
    /// Judges the outcome of an attempt and names the defence that held it.
    ///
    /// # Errors
    ///
    /// If the attempt succeeded, or if another defence than the expected one held it.
    pub(super) fn judge(&self, result: &ToolResult) -> Result<String, String> {
        let said = result.output().unwrap_or_default();
        match (self.wall, result.error()) {
            (Wall::Refused(by), None) => {
                let told = said.strip_prefix("refused: ").ok_or_else(|| shown(&said))?;
                Ok(format!("{by} ({})", shown(told.split(" (os error").next().unwrap_or(told))))
            }
            (Wall::Ends(class, by), Some(error)) if error.class() == class => {
                Ok(format!("{by} ({class})"))
            }
            (Wall::Limit(limit), Some(error)) => match error.kind() {
                ErrorKind::ResourceExhausted { limit: reached, value } if *reached == limit => {
                    Ok(format!("the limit `{reached}` of {value}"))
                }
                _ => Err(shown(&error.to_string())),
            },
            (Wall::Dropped, None) if result.usage().truncated_bytes > 0 => {
                Ok(format!("{} MiB of it were dropped", result.usage().truncated_bytes >> 20))
            }
            (Wall::Journal(path), None)
                if result
                    .files_modified()
                    .iter()
                    .any(|changed| changed.as_path() == Path::new(path)) =>
            {
                Ok(format!("the host's own list of changes says `{path}`"))
            }
            (_, Some(error)) => Err(shown(&error.to_string())),
            (_, None) => Err(shown(&said)),
        }
    }
}

/// Makes text of the plugin safe for a terminal, and shortens it.
fn shown(text: &str) -> String {
    elided(&visible(text), 70)
}

impl Calls {
    /// Returns the timeout of the call, if it is not the default.
    pub(super) fn time(self) -> Option<Duration> {
        match self {
            Self::Within(millis) => Some(Duration::from_millis(millis)),
            _ => None,
        }
    }

    /// Returns the time after which the call is cancelled, if it is.
    pub(super) fn cancelled_after(self) -> Option<Duration> {
        match self {
            Self::CancelledAfter(millis) => Some(Duration::from_millis(millis)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use palisade::CallId;

    fn verdict(name: &str, result: &ToolResult) -> Result<String, String> {
        ATTEMPTS.iter().find(|attempt| attempt.name == name).unwrap().judge(result)
    }

    #[test]
    fn attempt_verdict_compares_output_with_host_facts() {
        let said = |text: &str| ToolResult::success(CallId::new("c"), WRITER, text);
        assert_eq!(
            verdict("parent_path", &said("out: root:x:0:0")),
            Err("out: root:x:0:0".to_owned())
        );
        assert!(
            verdict("parent_path", &said("refused: Operation not permitted (os error 63)"))
                .unwrap()
                .ends_with("(Operation not permitted)")
        );
        assert!(
            verdict("output", &said("out: 64 MiB of standard output")).is_err(),
            "nothing of it was dropped"
        );
        assert!(
            verdict("hide_change", &said("out: a change")).is_err(),
            "the host knows of no change"
        );
    }

    #[test]
    fn attempt_is_held_only_by_its_expected_error() {
        let failed = |kind| ToolResult::failure(CallId::new("c"), WRITER, kind);
        let limit = |limit| failed(ErrorKind::ResourceExhausted { limit, value: 7 });
        assert!(verdict("memory", &limit(Limit::Memory)).is_ok());
        assert!(verdict("memory", &limit(Limit::Tables)).is_err());
        assert!(verdict("loop", &failed(ErrorKind::Cancelled)).is_err());
        assert!(
            verdict("parent_path", &failed(ErrorKind::Cancelled)).is_err(),
            "it was never tried"
        );
    }
}
