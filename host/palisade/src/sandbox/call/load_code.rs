//! Loading of a plugin's code at its first call.

use super::failure::Failure;
use crate::execution::blocking::{BlockingError, run_blocking};
use crate::execution::{ToolContext, enter_queue};
use crate::sandbox::load::{CodeError, Prepared};
use crate::sandbox::run::{ExitReason, Linked};
use crate::tool::{ErrorKind, ExecutionKind};
use std::sync::Arc;

/// Returns the code of a plugin, and loads it at the first call. The call's own clock is not
/// running yet. Loading goes on if the call ends first, and a later call uses its result.
pub(super) async fn load_code<'a>(
    plugin: &'a Arc<Prepared>,
    context: &ToolContext,
) -> Result<&'a Linked, Failure> {
    let owner = context.shares().unwrap_or(&plugin.owner);
    let _waiting = enter_queue(&owner.queue)?;
    let own = plugin.clone();
    let loading = async {
        let lock = own.code.lock().await;
        if own.code.get().is_some() {
            return Ok(());
        }
        run_blocking(move || own.code.load(own.digest, lock)).await?
    };
    let loaded = tokio::select! {
        biased;
        () = context.cancel().cancelled() => return Err(ExitReason::Cancelled.into()),
        loaded = tokio::time::timeout(context.times().queue, loading) => loaded,
    };
    let error = match loaded {
        Ok(Ok(())) => match plugin.code.get() {
            Some(linked) => return Ok(linked),
            None => CodeError::Gone,
        },
        Ok(Err(error)) => error,
        Err(_) => CodeError::Slow,
    };
    Err(not_loaded(error).into())
}

/// Returns the error of a plugin whose code cannot be loaded. The message is for the operator.
fn not_loaded(error: CodeError) -> ErrorKind {
    if let CodeError::NotRun(BlockingError::NoThread(error)) = error {
        return ErrorKind::no_thread(error);
    }
    ErrorKind::Execution {
        kind: ExecutionKind::Internal,
        message: format!("the plugin cannot be loaded any more: {error}"),
        field: None,
        advice: None,
        source: Some(Arc::new(error)),
    }
}
