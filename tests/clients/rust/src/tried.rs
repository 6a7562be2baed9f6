//! One connection, all that goes over it, and what the person in front of the client says.

use crate::person::Person;
use crate::server::{Server, Way, processor_time};
use crate::wire::{Books, Wire};
use crate::{Era, Kept, PATIENCE, Wrong, need};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResult, LoggingLevel, RequestMetaObject};
use rmcp::service::{ClientServiceExt as _, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::process::Command;

/// A client that is connected.
pub(crate) struct Tried {
    pub(crate) era: Era,
    pub(crate) person: Person,
    pub(crate) books: Books,
    pub(crate) client: RunningService<RoleClient, Person>,
    workspace: PathBuf,
    process: u32,
}

impl Tried {
    pub(crate) async fn connect(server: &Server, era: Era) -> Kept<Self> {
        let (person, books) = (Person::default(), Books::default());
        let (process, client) = match &server.way {
            Way::Http { url, process } => {
                let wire = Wire::new(StreamableHttpClientTransport::from_uri(url.as_str()), books.clone());
                (*process, person.clone().serve_with_lifecycle(wire, era.lifecycle()).await?)
            }
            Way::Lines { program, words } => {
                let mut command = Command::new(program);
                command.args(words);
                let child = TokioChildProcess::new(command)?;
                let process = child.id().ok_or_else(|| Wrong("the server has ended at once".to_owned()))?;
                let wire = Wire::new(child, books.clone());
                (process, person.clone().serve_with_lifecycle(wire, era.lifecycle()).await?)
            }
        };
        let version = client.peer_info().map(|info| info.protocol_version.clone());
        need(version == Some(era.version()), format!("the server speaks {version:?}"))?;
        Ok(Self { era, person, books, client, workspace: server.workspace.clone(), process })
    }

    pub(crate) async fn close(self) -> Kept {
        self.client.cancel().await?;
        Ok(())
    }

    /// Calls a tool, and answers what is asked on the way.
    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> Kept<CallToolResult> {
        let call = self.client.call_tool(self.request(tool, arguments)?);
        match tokio::time::timeout(PATIENCE, call).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(Wrong(format!("{tool} is not answered within {} s", PATIENCE.as_secs()))),
        }
    }

    /// A client of the current revision says with each request what it wants to hear.
    pub(crate) fn request(&self, tool: &'static str, arguments: Value) -> Kept<CallToolRequestParams> {
        let mut request = CallToolRequestParams::new(tool).with_arguments(serde_json::from_value(arguments)?);
        if self.era == Era::Modern {
            request.meta.get_or_insert_with(RequestMetaObject::default).set_log_level(LoggingLevel::Info);
        }
        Ok(request)
    }

    /// What the server has computed so far.
    pub(crate) fn busy(&self) -> Kept<Duration> {
        processor_time(self.process)
    }

    /// A file of the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    /// The name of a file that no earlier run has left.
    pub(crate) fn fresh(&self, outcome: &str) -> Kept<String> {
        let name = format!("{outcome}-{}.txt", self.era.name());
        match fs::remove_file(self.path(&name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(name),
        }
    }

    /// What a file holds, if it is there.
    pub(crate) fn written(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }
}
