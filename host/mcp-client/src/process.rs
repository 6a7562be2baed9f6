//! The process of a server: what it writes as errors, and how it ends.

use crate::connect_error::ConnectError;
use crate::inbox::Inbox;
use crate::runtime::{LAST_MOMENT, RunningProgram};
use palisade::tool::text::{cut, visible};
use palisade_shell::ServiceProcess;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// The last bytes of the errors that are kept.
const KEPT_ERRORS: usize = 4 << 10;
/// The most lines of them in a message, and the longest one, in bytes.
const LINES: usize = 8;
const MAX_LINE: usize = 256;
/// The time for reading the last errors of a program that has ended.
const LAST_ERRORS: Duration = Duration::from_millis(200);

/// A watched process, which ends after its connection.
#[derive(Debug)]
pub(crate) struct Watched {
    seen: Arc<Mutex<Seen>>,
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct Seen {
    errors: VecDeque<u8>,
    end: Option<String>,
}

impl Watched {
    /// Watches a process in a task of the current runtime. It is killed if it goes on for more than
    /// [`LAST_MOMENT`] after its connection has ended. Its errors count as bytes without a message.
    pub(crate) fn new(process: ServiceProcess, errors: pipe::Receiver, inbox: Inbox) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let ended = CancellationToken::new();
        let (running, ends) = (RunningProgram::new(), ended.clone().drop_guard());
        let watch = watch(process, errors, seen.clone(), inbox);
        tokio::spawn(async move {
            watch.await;
            drop((ends, running));
        });
        Self { seen, ended }
    }

    /// Completes when the process has ended, and its errors are read.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns the token that is cancelled at the end of the process.
    pub(crate) fn end(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Returns how the process ended, if it did, and the last lines that it wrote as errors.
    pub(crate) fn report(&self) -> Option<ConnectError> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let end = seen.end.as_deref()?;
        let errors: Vec<u8> = seen.errors.iter().copied().collect();
        let text = String::from_utf8_lossy(&errors);
        // The frames of a stack, as JavaScript writes them, come after the error itself, and would
        // leave no room for it.
        let is_said = |line: &&str| !line.is_empty() && !line.starts_with("at ");
        let lines = text.lines().map(str::trim).filter(is_said);
        let lines: Vec<String> = lines.map(|line| visible(cut(line, MAX_LINE))).collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        Some(match last {
            [] => ConnectError::Ended(end.to_owned()),
            last => ConnectError::Crashed { end: end.to_owned(), errors: last.join(" / ") },
        })
    }
}

async fn watch(
    mut process: ServiceProcess,
    errors: pipe::Receiver,
    seen: Arc<Mutex<Seen>>,
    inbox: Inbox,
) {
    let connection = inbox.fault().ended().clone();
    let last_moment_is_over = async {
        connection.cancelled().await;
        tokio::time::sleep(LAST_MOMENT).await;
    };
    let mut reading = tokio::spawn(read(errors, seen.clone(), inbox));
    tokio::select! {
        () = last_moment_is_over => {}
        end = process.ended() => {
            // Other processes may hold the pipe, so that its end is not awaited for long.
            let _ = tokio::time::timeout(LAST_ERRORS, &mut reading).await;
            seen.lock().unwrap_or_else(PoisonError::into_inner).end = Some(end);
        }
    }
    reading.abort();
}

/// Reads the errors to their end, and keeps the last of them.
async fn read(mut errors: pipe::Receiver, seen: Arc<Mutex<Seen>>, inbox: Inbox) {
    let mut block = vec![0; 16 << 10];
    while let Ok(count @ 1..) = errors.read(&mut block).await {
        inbox.count_idle(count);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.errors.extend(&block[..count]);
        let excess = seen.errors.len().saturating_sub(KEPT_ERRORS);
        seen.errors.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_before_its_stack_is_reported() {
        let frames = "    at Module._load (node:internal/modules/cjs/loader:1051:27)\n".repeat(12);
        let text = format!(
            "node:internal/modules\n  throw err;\n  ^\n\nError: Cannot find module '/a/b.mjs'\n\
             {frames}  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}}\n\nNode.js v20\n"
        );
        let seen = Seen { errors: text.bytes().collect(), end: Some("it ended".to_owned()) };
        let watched = Watched { seen: Arc::new(Mutex::new(seen)), ended: CancellationToken::new() };
        let said = watched.report().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("Cannot find module '/a/b.mjs'"), "{said}");
        assert!(!said.contains("Module._load") && said.contains("Node.js v20"), "{said}");
    }
}
