//! The connections to a server: opened when a call needs one, shared by its calls, and replaced
//! when they end.

use crate::connect_error::ConnectError;
use crate::connection::{Connection, opened};
use crate::name::ServerName;
use crate::offer::OfferedTool;
use crate::reach::Reach;
use crate::starts::{self, Starts};
use palisade::execution::ToolServer;
use palisade::internal::Pool;
use palisade::tool::text::elided;
use palisade::workspace::Workspace;
use palisade::{ErrorKind, ExecutionKind, PermissionReason};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::OwnedMutexGuard;

/// The most calls of one server that run at the same time. A single owner, a tool that runs for a
/// session, gets half of them at most, a session three quarters, and a caller four fifths.
const MAX_CALLS: u64 = 32;
/// The most connections of one server: one for each workspace.
const MAX_CONNECTIONS: usize = 4;

/// The connection of one workspace, once it is open.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

/// The connections to one server.
#[derive(Debug)]
pub(crate) struct Connections {
    name: ServerName,
    reach: Reach,
    calls: Pool,
    starts: Mutex<Starts>,
    /// By the root of the workspace, the latest used last.
    open: Mutex<Vec<(PathBuf, Slot)>>,
}

impl Connections {
    /// Creates the connections of a server, none of which is open.
    pub(crate) fn new(name: ServerName, reach: Reach) -> Self {
        Self {
            name,
            reach,
            calls: Pool::new(MAX_CALLS),
            starts: Mutex::default(),
            open: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns the server as rules name it: `mcp/NAME`.
    pub(crate) fn server(&self) -> ToolServer {
        ToolServer::new("mcp", self.name.as_str(), self.reach.server_place())
            .with_rights(&self.reach.rights())
    }

    /// Returns the places of concurrent calls.
    pub(crate) fn calls(&self) -> &Pool {
        &self.calls
    }

    /// Returns a connection for calls in a workspace, if the tool has the approved words there. A
    /// connection that has ended is replaced.
    ///
    /// # Errors
    ///
    /// If the server cannot be started, or offers the tool with other words.
    pub(crate) async fn for_call(
        &self,
        workspace: &Arc<Workspace>,
        approved: &OfferedTool,
    ) -> Result<Arc<Connection>, ErrorKind> {
        let connection = {
            let open = self.slot(workspace).lock_owned().await;
            match open.as_ref().filter(|connection| !connection.is_over()) {
                Some(connection) => connection.clone(),
                None => self.connect(workspace, open).await.map_err(|error| self.failed(&error))?,
            }
        };
        connection.clone().refresh().await.map_err(|error| self.failed(&error))?;
        match connection.offer().tool(&approved.name) {
            Some(offered) if offered == approved => Ok(connection),
            now => Err(self.changed(approved, now.is_some())),
        }
    }

    /// Returns the slot of a workspace. The slot that was used least recently makes room.
    fn slot(&self, workspace: &Workspace) -> Slot {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.iter().position(|(root, _)| root == workspace.root());
        let (root, slot) = match known {
            Some(at) => open.remove(at),
            None => (workspace.root().to_owned(), Slot::default()),
        };
        if open.len() >= MAX_CONNECTIONS {
            open.remove(0);
        }
        open.push((root, slot.clone()));
        slot
    }

    /// Opens a connection into its slot, also if the call does not wait for it: the next call finds
    /// it there.
    async fn connect(
        &self,
        workspace: &Arc<Workspace>,
        mut open: OwnedMutexGuard<Option<Arc<Connection>>>,
    ) -> Result<Arc<Connection>, ConnectError> {
        let counted =
            self.starts.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now());
        counted.map_err(|wait| {
            ConnectError::Ended(format!(
                "it was started {} times within {} s, and is not started again before {} s are over",
                starts::MAX,
                starts::PERIOD.as_secs(),
                wait.as_secs() + 1
            ))
        })?;
        let (reach, workspace) = (self.reach.clone(), workspace.clone());
        opened(async move {
            // The former one ends before the next one starts.
            if let Some(former) = open.take() {
                former.close().await;
            }
            let connection = Arc::new(Connection::open(reach, workspace).await?);
            *open = Some(connection.clone());
            Ok(connection)
        })
        .await
    }

    fn failed(&self, error: &ConnectError) -> ErrorKind {
        let reason = error.for_caller();
        let message = format!("the MCP server `{}` cannot be used: {reason}", self.name);
        ErrorKind::execution(ExecutionKind::Failed, message)
    }

    /// Returns the refusal of a tool that is not as it was approved.
    fn changed(&self, tool: &OfferedTool, is_there: bool) -> ErrorKind {
        let name = &self.name;
        let tool = elided(&tool.name, 64);
        let change = match is_there {
            true => format!("has other words for `{tool}` than those that were approved"),
            false => format!("no longer offers `{tool}`, which was approved"),
        };
        tracing::warn!("the MCP server `{name}` {change}");
        let text = format!("look at its words now, with `palisade mcp approve {name}`");
        ErrorKind::denied_with(
            PermissionReason::Policy,
            format!("the MCP server `{name}` {change}; use another tool"),
            palisade::Advice::new(text),
        )
    }
}
