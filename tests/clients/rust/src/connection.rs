//! A connection with its message log and its user.

use crate::server::{Server, Transport, processor_time};
use crate::user::User;
use crate::wire::{MessageLog, Wire};
use crate::{Broken, Era, Outcome, PATIENCE, ensure};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResult, LoggingLevel, RequestMetaObject};
use rmcp::service::{ClientServiceExt as _, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::process::Command;

/// A connected client.
pub(crate) struct Connection {
    pub(crate) era: Era,
    pub(crate) user: User,
    pub(crate) log: MessageLog,
    pub(crate) client: RunningService<RoleClient, User>,
    workspace: PathBuf,
    process: u32,
}

impl Connection {
    pub(crate) async fn connect(server: &Server, era: Era) -> Outcome<Self> {
        let (user, log) = (User::default(), MessageLog::default());
        let (process, client) = match &server.transport {
            Transport::Http { url, process } => {
                let wire =
                    Wire::new(StreamableHttpClientTransport::from_uri(url.as_str()), log.clone());
                (*process, user.clone().serve_with_lifecycle(wire, era.lifecycle()).await?)
            }
            Transport::Stdio { program, words } => {
                let mut command = Command::new(program);
                command.args(words);
                let child = TokioChildProcess::new(command)?;
                let process =
                    child.id().ok_or_else(|| Broken("the server has ended at once".to_owned()))?;
                let wire = Wire::new(child, log.clone());
                (process, user.clone().serve_with_lifecycle(wire, era.lifecycle()).await?)
            }
        };
        let version = client.peer_info().map(|info| info.protocol_version.clone());
        ensure(version == Some(era.version()), format!("the server speaks {version:?}"))?;
        Ok(Self { era, user, log, client, workspace: server.workspace.clone(), process })
    }

    pub(crate) async fn close(self) -> Outcome {
        self.client.cancel().await?;
        Ok(())
    }

    /// Calls a tool, and answers questions during the call.
    pub(crate) async fn call(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Outcome<CallToolResult> {
        let call = self.client.call_tool(self.request(tool, arguments)?);
        match tokio::time::timeout(PATIENCE, call).await {
            Ok(result) => Ok(result?),
            Err(_) => {
                Err(Broken(format!("{tool} is not answered within {} s", PATIENCE.as_secs())))
            }
        }
    }

    /// Returns the request of a call. In the current revision each request selects its log level.
    pub(crate) fn request(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Outcome<CallToolRequestParams> {
        let mut request =
            CallToolRequestParams::new(tool).with_arguments(serde_json::from_value(arguments)?);
        if self.era == Era::Modern {
            request
                .meta
                .get_or_insert_with(RequestMetaObject::default)
                .set_log_level(LoggingLevel::Info);
        }
        Ok(request)
    }

    /// Returns the processor time of the server so far.
    pub(crate) fn processor_time(&self) -> Outcome<Duration> {
        processor_time(self.process)
    }

    /// Returns the path of a file in the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    /// Returns the name of a file, and removes a file of that name from an earlier run.
    pub(crate) fn fresh_name(&self, outcome: &str) -> Outcome<String> {
        let name = format!("{outcome}-{}.txt", self.era.name());
        match fs::remove_file(self.path(&name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(name),
        }
    }

    /// Returns the contents of a file, if it exists.
    pub(crate) fn contents(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }
}
