//! The requests that a server may send to the host, and its reports while a call runs.

#![expect(deprecated, reason = "servers of earlier protocol versions ask for the roots")]

use palisade::execution::{Progress, Sink};
use palisade::sandbox::limits::{LOG, PROGRESS_STEPS};
use palisade::tool::text::{cut, visible};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, ElicitResult, ElicitationAction, ErrorCode,
    ErrorData, Implementation, ListRootsResult, ProgressNotificationParam, ProgressToken, Root,
    RootsCapabilities, ServerRequest,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest text of a progress report, in bytes.
const MAX_STEP: usize = 1 << 10;

/// The host's side of a connection. Questions to the user and requests to the model are declined:
/// the client of this host has not been told of the server.
#[derive(Clone, Default)]
pub(crate) struct Handler(Arc<Shared>);

#[derive(Default)]
struct Shared {
    workspace: Option<PathBuf>,
    /// The running calls whose progress is reported.
    running: Mutex<HashMap<ProgressToken, Steps>>,
    has_new_list: AtomicBool,
}

/// The progress of a call, within the bounds of a plugin's.
struct Steps {
    sink: Arc<dyn Sink>,
    steps_left: usize,
    bytes_left: usize,
}

impl Steps {
    /// Returns the receiver of another report, with its message, unless the call has had its share.
    fn next(&mut self, message: Option<&str>) -> Option<(Arc<dyn Sink>, Option<String>)> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let message = message.map(|text| visible(cut(text, MAX_STEP)));
        let length = message.as_ref().map_or(0, String::len);
        self.bytes_left = self.bytes_left.checked_sub(length)?;
        Some((self.sink.clone(), message))
    }
}

impl Handler {
    /// Creates the handler of a connection, which may tell the server of this workspace.
    pub(crate) fn new(workspace: Option<&Path>) -> Self {
        let workspace = workspace.map(Path::to_owned);
        Self(Arc::new(Shared { workspace, ..Shared::default() }))
    }

    /// Sends the progress of a call to its sink for as long as the guard is held.
    pub(crate) fn follow(&self, token: ProgressToken, sink: Arc<dyn Sink>) -> Followed {
        let steps = Steps { sink, steps_left: PROGRESS_STEPS, bytes_left: LOG };
        self.running().insert(token.clone(), steps);
        Followed { handler: self.clone(), token }
    }

    /// Reports the progress of a running call. The transport calls this in the order of the
    /// messages, so that a report is not behind the response. Reports beyond the bounds of a call
    /// are dropped.
    pub(crate) fn report(&self, report: &ProgressNotificationParam) {
        let mut running = self.running();
        let steps = running.get_mut(&report.progress_token);
        let next = steps.and_then(|steps| steps.next(report.message.as_deref()));
        drop(running);
        let Some((sink, message)) = next else { return };
        if report.progress.is_finite() {
            let total = report.total.filter(|total| total.is_finite());
            sink.progress(Progress { done: report.progress, total, message });
        }
    }

    /// Returns the response to a request of the server, of a bounded length. The workspace is the
    /// only root.
    pub(crate) fn response(&self, request: &ServerRequest) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            ServerRequest::ListRootsRequest(_) => {
                let root = self.0.workspace.iter().map(|path| Root::new(file_uri(path)));
                Ok(ClientResult::ListRootsResult(ListRootsResult::new(root.collect())))
            }
            ServerRequest::ElicitRequest(_) => {
                Ok(ClientResult::ElicitResult(ElicitResult::new(ElicitationAction::Decline)))
            }
            _ => {
                let message = "the client does not offer this method";
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
            }
        }
    }

    /// Sets whether the server has said that its list of tools is another one.
    pub(crate) fn set_new_list(&self, has_new_list: bool) {
        self.0.has_new_list.store(has_new_list, Ordering::SeqCst);
    }

    /// Returns true if the server has said that its list of tools is another one.
    pub(crate) fn has_new_list(&self) -> bool {
        self.0.has_new_list.load(Ordering::SeqCst)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, Steps>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call whose progress is reported.
pub(crate) struct Followed {
    handler: Handler,
    token: ProgressToken,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.handler.running().remove(&self.token);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = self.0.workspace.as_ref().map(|_| RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("palisade", env!("CARGO_PKG_VERSION")))
    }
}

/// Returns the `file` URI of a path: RFC 8089, with all but the unreserved characters of RFC 3986
/// in their percent form.
fn file_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_is_a_file_uri() {
        for (path, uri) in [("/a/b-c.d", "file:///a/b-c.d"), ("/a b/ü%", "file:///a%20b/%C3%BC%25")]
        {
            assert_eq!(file_uri(Path::new(path)), uri);
        }
    }
}
