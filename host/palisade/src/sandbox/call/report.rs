//! The report of a call: what the host observed of it.

use crate::execution::Report;
use crate::sandbox::run::State;
use crate::tool::Usage;
use crate::workspace::Workspace;
use std::path::PathBuf;
use wasmtime::Store;

/// Returns the host's report of the call.
pub(super) fn report(store: &mut Store<State>, workspace: &Workspace) -> Report {
    let state = store.data_mut();
    let (stdout, stdout_dropped) = state.wasi_ctx.take_output();
    let (stderr, stderr_dropped) = state.wasi_ctx.take_errors();
    for (name, bytes) in [("stdout", stdout), ("stderr", stderr)] {
        if !bytes.is_empty() {
            let text = String::from_utf8_lossy(&bytes);
            tracing::debug!(stream = name, "{}", crate::tool::text::visible(&text));
            state.messages.log_printed(name, &text);
        }
    }
    let modified = state.filesystem.modified().into_iter();
    Report {
        usage: Usage {
            peak_memory_bytes: state.limiter.peak(),
            bytes_read: state.filesystem.bytes_read(),
            bytes_written: state.filesystem.bytes_written(),
            truncated_bytes: state.messages.dropped() + stdout_dropped + stderr_dropped,
        },
        // Unescaped: the code that shows a path to a user or a model escapes it.
        files_modified: modified.map(|path| PathBuf::from(workspace.in_whole(path))).collect(),
        files_unlisted: state.filesystem.modified_unlisted(),
        stopped: None,
    }
}
