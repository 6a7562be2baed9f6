//! Events as they are committed: as SSE, and over a WebSocket. Nothing waits for a reader, and
//! nothing is queued for one: it reads from the journal, at its own pace.

mod draining;
mod position;
mod reader;
mod sse;
mod websocket;

pub(crate) use draining::Draining;
pub(crate) use position::position;
pub(crate) use reader::{Reader, Stream};
pub(crate) use sse::respond as sse;
pub(crate) use websocket::{is_upgrade, respond as websocket};

use std::time::Duration;

/// The time after which a connection that takes nothing is dropped.
const STALLED: Duration = Duration::from_secs(30);
