//! Subscribers, who read the events of all sessions.

use super::served::Served;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The stream of a reader who answers no questions.
const EVENTS: &str = "/events?observer=true";
/// The size of a read, in bytes.
const READ: usize = 64 << 10;
/// The bytes of the previous read that are kept, so that each line with a number is found whole.
const KEPT: usize = 32;
/// The time for the last event to arrive.
const PATIENCE: Duration = Duration::from_secs(120);

/// Attached subscribers. One of them looks at each event and finds the number of the last one; the
/// others only look for that number, and so leave the processor to the server.
pub(super) struct Subscribers {
    counting: JoinHandle<Counted>,
    others: Vec<JoinHandle<Other>>,
}

/// The events and bytes that the subscribers received, with their delays.
pub(super) struct Delivered {
    /// The number of events.
    pub(super) events: usize,
    /// The bytes of the stream to each subscriber.
    pub(super) bytes: usize,
    /// How long after the last call each subscriber had the last event.
    pub(super) later: Vec<Duration>,
}

/// The measurements of the subscriber that looks at each event.
struct Counted {
    events: usize,
    ended: Instant,
}

/// The measurements of another subscriber.
struct Other {
    bytes: usize,
    ended: Instant,
}

impl Subscribers {
    /// Attaches subscribers with the operator's token, for this many calls.
    pub(super) fn attach(runtime: &Runtime, server: &Served, count: usize, calls: usize) -> Self {
        let (found, last) = watch::channel(None);
        runtime.block_on(async {
            let server = server.operator();
            let open = async || server.connect().await.stream(EVENTS).await;
            let counting = tokio::spawn(count_events(open().await, calls, found));
            let mut others = Vec::with_capacity(count);
            for _ in 1..count {
                others.push(tokio::spawn(read_events(open().await, last.clone())));
            }
            Self { counting, others }
        })
    }

    /// Waits until each subscriber has the last event. The last call has ended at `called`.
    pub(super) fn finish(self, runtime: &Runtime, called: Instant) -> Delivered {
        runtime.block_on(async {
            let counted = timeout(PATIENCE, self.counting).await.expect("the end of each call");
            let Counted { events, ended } = counted.expect("a subscriber");
            let mut delivered = Delivered { events, bytes: 0, later: Vec::new() };
            delivered.later.push(ended.saturating_duration_since(called));
            for other in self.others {
                let other = timeout(PATIENCE, other).await.expect("the last event");
                let Other { bytes, ended } = other.expect("a subscriber");
                delivered.later.push(ended.saturating_duration_since(called));
                delivered.bytes = delivered.bytes.max(bytes);
            }
            delivered
        })
    }
}

/// Counts events up to the end of the last call, and tells the others its number.
async fn count_events(
    mut stream: BufReader<TcpStream>,
    calls: usize,
    found: watch::Sender<Option<u64>>,
) -> Counted {
    let (mut events, mut completed, mut last) = (0, 0, None);
    let mut line = String::new();
    while completed < calls {
        line.clear();
        let read = stream.read_line(&mut line).await.expect("the server streams");
        assert!(read > 0, "the stream ends after {completed} calls");
        if let Some(id) = line.strip_prefix("id: ") {
            last = id.trim_end().parse().ok();
        } else if let Some(name) = line.strip_prefix("event: ") {
            events += 1;
            completed += usize::from(name.trim_end() == "tool.completed");
        }
    }
    let ended = Instant::now();
    found.send_replace(last);
    Counted { events, ended }
}

/// Reads until the last event is there.
async fn read_events(
    mut stream: BufReader<TcpStream>,
    mut last: watch::Receiver<Option<u64>>,
) -> Other {
    let mut buffer = vec![0; KEPT + READ];
    let (mut kept, mut newest) = (0, 0);
    let mut other = Other { bytes: 0, ended: Instant::now() };
    while last.borrow_and_update().is_none_or(|last| newest < last) {
        let read = tokio::select! {
            read = stream.read(&mut buffer[kept..]) => read.expect("the server streams"),
            // The number may become known after the event has arrived.
            Ok(()) = last.changed() => continue,
        };
        assert!(read > 0, "the stream ends after {} bytes", other.bytes);
        other.bytes += read;
        let filled = kept + read;
        if let Some(id) = last_id(&buffer[..filled]).filter(|id| *id > newest) {
            newest = id;
            other.ended = Instant::now();
        }
        kept = filled.min(KEPT);
        buffer.copy_within(filled - kept..filled, 0);
    }
    other
}

/// Returns the number in the last complete line with one.
fn last_id(bytes: &[u8]) -> Option<u64> {
    const BEFORE: &[u8] = b"\nid: ";
    let mut to = bytes.len();
    loop {
        let at = bytes[..to].windows(BEFORE.len()).rposition(|part| part == BEFORE)?;
        let line = &bytes[at + BEFORE.len()..];
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            return std::str::from_utf8(&line[..end]).ok()?.parse().ok();
        }
        to = at;
    }
}
