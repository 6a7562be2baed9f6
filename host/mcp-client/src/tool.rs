//! A tool of a server, as a host registers and runs it.

use crate::connection::ServerCall;
use crate::connections::Connections;
use crate::name::{self, ServerName};
use crate::offer::OfferedTool;
use crate::output::Form;
use crate::reach::Reach;
use crate::schemas::SchemaRoom;
use palisade::execution::ToolServer;
use palisade::tool::Idempotence;
use palisade::{
    BoxFuture, Definition, ErrorKind, Factory, SideEffects, Tool, ToolContext, ToolOutput,
    ValidInput,
};
use serde_json::Value;
use std::sync::Arc;

/// The metadata key of the name of a tool's server.
const SERVER: &str = "mcp-server";
/// The metadata key of what holds its calls.
const SANDBOX: &str = "sandbox";

/// Returns the name of the server that a tool is one of, if it is a tool of a server.
#[must_use]
pub fn server_of(definition: &Definition) -> Option<&str> {
    definition.metadata().get(SERVER)?.as_str()
}

/// Returns what holds the calls of a tool of a server, for a person.
#[must_use]
pub fn sandbox_of(definition: &Definition) -> Option<&str> {
    definition.metadata().get(SERVER).and(definition.metadata().get(SANDBOX))?.as_str()
}

/// Returns the definition of an approved tool. Rules name it as the server does. A title that no
/// host accepts is left out.
///
/// # Errors
///
/// The reason why no host accepts it.
pub(crate) fn definition(
    server: &ServerName,
    tool: &OfferedTool,
    class: SideEffects,
    reach: &Reach,
    room: &mut SchemaRoom,
) -> Result<Definition, String> {
    let name = server.of_tool(&tool.name).map_err(|error| error.to_string())?;
    let description = tool.description.as_deref().map(|text| text.replace("\r\n", "\n"));
    let description = description.filter(|text| !text.trim().is_empty());
    let description = description.or_else(|| tool.title.clone());
    let description =
        description.unwrap_or_else(|| format!("The tool `{}` of `{server}`.", tool.name));
    let refused = |reason: String| format!("the input schema is refused: {reason}");
    let schema = room.input(&tool.input).map_err(refused)?;
    let own = name::own(&tool.name);
    let own = own.as_ref().unwrap_or(&name).as_str();
    let defined = Definition::with_schema(own, &description, class, schema);
    let defined = defined.map_err(|error| error.to_string())?;
    // A tool whose output has a schema that is not accepted returns text, as one without a schema.
    let defined = match tool.output.as_ref().map(|schema| room.output(schema)) {
        Some(Ok(schema)) => defined.with_checked_output(schema),
        Some(Err(_)) | None => defined,
    };
    let titled = tool.title.as_deref().and_then(|title| defined.clone().with_title(title).ok());
    let origin = [(SERVER, server.as_str()), (SANDBOX, reach.sandbox())];
    let origin = origin.map(|(key, value)| (key.to_owned(), value.into()));
    let defined = titled.unwrap_or(defined).with_metadata(origin.into_iter().collect());
    // Nothing holds the server to its class, so that no hint promises what only a sandbox could.
    let defined = defined.with_open_world().with_idempotence(Idempotence::NotIdempotent);
    Ok(defined.shown_as(name))
}

/// Returns a factory for registering the tool.
pub(crate) fn factory(
    definition: Definition,
    approved: OfferedTool,
    connections: Arc<Connections>,
) -> Factory {
    let approved = Arc::new(approved);
    Arc::new(move || {
        Box::new(McpTool {
            definition: definition.clone(),
            approved: approved.clone(),
            connections: connections.clone(),
        })
    })
}

/// One call of a tool.
struct McpTool {
    definition: Definition,
    approved: Arc<OfferedTool>,
    connections: Arc<Connections>,
}

impl McpTool {
    async fn run(&self, input: Value, context: &ToolContext) -> Result<ToolOutput, ErrorKind> {
        let place = context.share_of(self.connections.calls()).acquire().await;
        let connection = self.connections.for_call(context.workspace(), &self.approved).await?;
        let Value::Object(input) = input else {
            return Err(ErrorKind::internal("the input of a tool is no object"));
        };
        let (name, sink) = (self.approved.name.clone(), context.sink().clone());
        let form = match self.definition.output_schema() {
            Some(_) => Form::Structured,
            None => Form::Blocks,
        };
        let call = ServerCall { tool: name, input, form };
        connection.call(call, sink, context.cancel(), place).await.map_err(|error| match error {
            ErrorKind::Execution { kind, message, field, advice, source } => {
                let message = format!("`{}`: {message}", self.connections.name());
                ErrorKind::Execution { kind, message, field, advice, source }
            }
            other => other,
        })
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn server(&self) -> Option<ToolServer> {
        Some(self.connections.server())
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = context.cancelled() => Err(ErrorKind::Cancelled),
                ended = self.run(input.value().clone(), context) => ended,
            }
        })
    }
}
