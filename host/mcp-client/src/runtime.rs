//! The runtime of the connections: one thread, apart from the runtimes of the callers, since a
//! connection outlives the call that opens it.

use std::future::Future;
use std::io;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Runs a future on the thread of the connections.
///
/// # Errors
///
/// If the thread cannot be started.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let start = || {
        let name = "palisade-mcp-client";
        Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build().ok()
    };
    let runtime = RUNTIME.get_or_init(start).as_ref();
    let runtime = runtime.ok_or_else(|| io::Error::other("no thread for MCP servers"))?;
    Ok(runtime.spawn(work))
}
