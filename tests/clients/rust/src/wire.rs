//! Everything that is sent and received, read off the transport below the library.

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What went over a connection, each in its order.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) sent: Vec<Value>,
    pub(crate) received: Vec<Value>,
}

impl Book {
    /// The request that has last called this tool.
    pub(crate) fn call(&self, tool: &str) -> Value {
        let is_call = |sent: &&Value| sent["method"] == "tools/call" && sent["params"]["name"] == tool;
        self.sent.iter().rfind(is_call).cloned().unwrap_or_default()
    }
}

/// A book that is written while it is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books(Arc<Mutex<Book>>);

impl Books {
    pub(crate) fn open(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transport whose messages are written down.
pub(crate) struct Wire<T> {
    transport: T,
    books: Books,
}

impl<T> Wire<T> {
    pub(crate) fn new(transport: T, books: Books) -> Self {
        Self { transport, books }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Wire<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.books.open().sent.push(read(&message));
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await?;
        self.books.open().received.push(read(&message));
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

fn read(message: &impl serde::Serialize) -> Value {
    serde_json::to_value(message).unwrap_or_else(|error| Value::String(format!("not JSON: {error}")))
}
