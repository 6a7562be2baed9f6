//! Changes the list of plugins during a run: each call of a certain tool adds or removes a plugin.
//!
//! The tool itself cannot do so, because plugins cannot reach plugins. This module follows the
//! server's events and moves the plugin file.

use super::stage::Stage;
use anyhow::{Context as _, anyhow};
use serde_json::Value;
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The tools that request a change of the tools and of the prompts: one plugin provides both.
const TOOLS: [&str; 2] = ["test_trigger_tool_change", "test_trigger_prompt_change"];
/// The poll interval of the events. The suite waits 1.5 s for a change notification.
const PAUSE: Duration = Duration::from_millis(10);

/// The thread that moves the visitor plugin until it is stopped.
pub(super) struct Changes {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Changes {
    /// Follows the events of a running server.
    pub(super) fn follow(stage: &Stage) -> anyhow::Result<Self> {
        let path = stage.events();
        let events = File::open(&path)
            .with_context(|| format!("the server writes no events to {}", path.display()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (told, stage) = (stop.clone(), stage.clone());
        let thread = thread::spawn(move || watch(events, &stage, &told));
        Ok(Self { stop, thread })
    }

    /// Stops the thread and returns the error of a failed move.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the thread that moves a plugin panicked"))?
    }
}

fn watch(mut events: File, stage: &Stage, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut unread = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        events.read_to_end(&mut unread).context("reading the server's events")?;
        for _ in 0..take_requests(&mut unread) {
            stage.move_visitor()?;
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Removes the complete lines from the buffer and returns how many of them request a change. An
/// incomplete line stays in the buffer.
fn take_requests(unread: &mut Vec<u8>) -> usize {
    let whole = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines: Vec<u8> = unread.drain(..whole).collect();
    lines.split(|byte| *byte == b'\n').filter(|line| is_request(line)).count()
}

fn is_request(line: &[u8]) -> bool {
    let event: Value = serde_json::from_slice(line).unwrap_or_default();
    event["event"] == "tool.called" && TOOLS.iter().any(|tool| event["tool_name"] == *tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_requests_are_counted_once_per_line() {
        let line = |event: &str, tool: &str| {
            format!("{{\"event\":\"{event}\",\"tool_name\":\"{tool}\"}}\n")
        };
        let text = [
            line("tool.called", "test_trigger_tool_change"),
            line("tool.completed", "test_trigger_tool_change"),
            line("tool.called", "test_simple_text"),
            line("tool.called", "test_trigger_prompt_change"),
        ]
        .concat();
        let (first, rest) = text.as_bytes().split_at(text.len() - 5);
        let mut unread = first.to_vec();
        assert_eq!(take_requests(&mut unread), 1);
        unread.extend(rest);
        assert_eq!(take_requests(&mut unread), 1);
        assert!(unread.is_empty());
        assert_eq!(take_requests(&mut unread), 0);
    }
}
