//! Records all sent and received messages, at the transport below the library.

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The messages of a connection, in the order of each direction.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) sent: Vec<Value>,
    pub(crate) received: Vec<Value>,
}

impl Messages {
    /// Returns the last request that called this tool.
    pub(crate) fn call(&self, tool: &str) -> Value {
        let is_call =
            |sent: &&Value| sent["method"] == "tools/call" && sent["params"]["name"] == tool;
        self.sent.iter().rfind(is_call).cloned().unwrap_or_default()
    }
}

/// A log of messages that can be read during the connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageLog(Arc<Mutex<Messages>>);

impl MessageLog {
    pub(crate) fn open(&self) -> MutexGuard<'_, Messages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transport that records its messages.
pub(crate) struct Wire<T> {
    transport: T,
    log: MessageLog,
}

impl<T> Wire<T> {
    pub(crate) fn new(transport: T, log: MessageLog) -> Self {
        Self { transport, log }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Wire<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.log.open().sent.push(read(&message));
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        self.log.open().received.push(read(&message));
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

fn read(message: &impl serde::Serialize) -> Value {
    serde_json::to_value(message)
        .unwrap_or_else(|error| Value::String(format!("not JSON: {error}")))
}
