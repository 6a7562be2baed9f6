//! A tool's definition: validated once, then read-only.

use super::schema::{Schema, SchemaError, Violations, drop_absent};
use super::text::first_deceptive;
use super::{InvalidName, SideEffects, ToolName};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The longest description, in bytes: it goes into a model's context with every request.
pub(crate) const MAX_DESCRIPTION: usize = 16 << 10;
/// The longest title, in characters.
pub(crate) const MAX_TITLE: usize = 128;
/// The metadata key of tools whose paths name directory entries: a symbolic link in the last
/// component is then not followed.
pub(crate) const KEEPS_LINKS: &str = "keeps-links";
/// The metadata key of tools for which `null` in an optional member of the input stands for its
/// absence, although the schema does not list it.
pub(crate) const NULL_IS_ABSENT: &str = "null-is-absent";

/// A tool's definition: immutable and cheap to clone.
///
/// ```
/// use palisade::{Definition, SideEffects, json};
///
/// let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required":
/// ["name"]}); let greet = Definition::new("greet", "Greets somebody by name.", SideEffects::None,
/// schema)?; assert!(greet.validate_params(&json!({"name": "Ada"})).is_ok());
/// assert!(greet.validate_params(&json!({"name": 3})).is_err());
/// # Ok::<(), palisade::DefinitionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Definition(Arc<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    name: ToolName,
    /// The name that the plugin gave the tool, if sessions see another one.
    own: Option<ToolName>,
    title: Option<String>,
    description: String,
    input: Schema,
    output: Option<Schema>,
    side_effects: SideEffects,
    idempotent: bool,
    timeout: Option<Duration>,
    metadata: Map<String, Value>,
    requests: Requests,
    calls: Calls,
}

/// Whether a tool can call others with a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    None,
    Granted,
}

/// Whether a tool can send requests to servers with a grant, beyond what its class says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requests {
    None,
    Granted,
}

impl Definition {
    /// Creates a definition from the four required parts.
    ///
    /// # Errors
    ///
    /// [`DefinitionError`] names the invalid part: the name, the description, or the schema with
    /// keyword and place.
    pub fn new(
        name: &str,
        description: &str,
        side_effects: SideEffects,
        input_schema: Value,
    ) -> Result<Self, DefinitionError> {
        Self::with_schema(
            name,
            description,
            side_effects,
            Schema::input(input_schema).map_err(DefinitionError::Input)?,
        )
    }

    /// Like [`new`](Self::new), with a schema that is already validated.
    ///
    /// # Errors
    ///
    /// [`DefinitionError`] names the invalid part.
    pub fn with_schema(
        name: &str,
        description: &str,
        side_effects: SideEffects,
        input: Schema,
    ) -> Result<Self, DefinitionError> {
        let name = ToolName::parse(name)?;
        check_text("description", description, MAX_DESCRIPTION)?;
        Ok(Self(Arc::new(Parts {
            name,
            own: None,
            title: None,
            description: description.to_owned(),
            input,
            output: None,
            side_effects,
            idempotent: matches!(side_effects, SideEffects::None | SideEffects::Read),
            timeout: None,
            metadata: Map::new(),
            requests: Requests::None,
            calls: Calls::None,
        })))
    }

    /// Sets a short name for display.
    ///
    /// # Errors
    ///
    /// [`DefinitionError::Text`] if it is blank, longer than 128 characters, has a line break or
    /// tab, or has hidden characters.
    pub fn with_title(self, title: &str) -> Result<Self, DefinitionError> {
        // No character takes more than four bytes.
        check_text("title", title, 4 * MAX_TITLE)?;
        let characters = title.chars().count();
        if characters > MAX_TITLE {
            let problem =
                format!("is {characters} characters long; at most {MAX_TITLE} are accepted");
            return Err(DefinitionError::Text { part: "title", problem });
        }
        if title.contains(['\n', '\t']) {
            let problem = "holds a line break or a tab; a title is one line".to_owned();
            return Err(DefinitionError::Text { part: "title", problem });
        }
        Ok(self.change(|parts| parts.title = Some(title.to_owned())))
    }

    /// Sets the schema of successful outputs.
    ///
    /// # Errors
    ///
    /// [`DefinitionError::Output`] names the keyword and place.
    pub fn with_output_schema(self, schema: Value) -> Result<Self, DefinitionError> {
        Ok(self.with_checked_output(Schema::output(schema).map_err(DefinitionError::Output)?))
    }

    /// Like [`with_output_schema`](Self::with_output_schema), with a schema that is already
    /// validated.
    #[must_use]
    pub fn with_checked_output(self, schema: Schema) -> Self {
        self.change(|parts| parts.output = Some(schema))
    }

    /// Declares whether a repeated call leaves the same state as a single call.
    #[must_use]
    pub fn with_idempotence(self, idempotent: Idempotence) -> Self {
        self.change(|parts| parts.idempotent = idempotent == Idempotence::Idempotent)
    }

    /// Lowers the timeout of one call.
    ///
    /// # Errors
    ///
    /// [`DefinitionError::ZeroTimeout`] if the timeout is zero.
    pub fn with_timeout(self, timeout: Duration) -> Result<Self, DefinitionError> {
        if timeout.is_zero() {
            return Err(DefinitionError::ZeroTimeout);
        }
        Ok(self.change(|parts| parts.timeout = Some(timeout)))
    }

    /// Sets metadata for which there is no field.
    #[must_use]
    pub fn with_metadata(self, metadata: Map<String, Value>) -> Self {
        self.change(|parts| parts.metadata = metadata)
    }

    /// Notes that the tool's plugin sends requests by `wasi:http`, as far as its class allows.
    #[must_use]
    pub(crate) fn with_requests(self) -> Self {
        match self.side_effects() {
            SideEffects::None => self,
            _ => self.change(|parts| parts.requests = Requests::Granted),
        }
    }

    /// Notes that the tool may reach servers beyond this machine, whatever its class: it does not
    /// run in a sandbox of this library, such as the tool of an MCP server.
    #[must_use]
    pub fn with_open_world(self) -> Self {
        self.change(|parts| parts.requests = Requests::Granted)
    }

    /// Notes that the tool's plugin calls other tools.
    #[must_use]
    pub(crate) fn with_tool_calls(self) -> Self {
        self.change(|parts| parts.calls = Calls::Granted)
    }

    /// Returns true if the tool calls other tools with a grant, so that a call of it may have every
    /// effect that those have. Each of their calls is decided and asked about by itself.
    #[must_use]
    pub fn calls_tools(&self) -> bool {
        self.0.calls == Calls::Granted
    }

    /// Returns true if the tool reaches servers beyond this machine, with a grant or outside of the
    /// sandbox, whatever its class.
    #[must_use]
    pub fn sends_requests(&self) -> bool {
        self.0.requests == Requests::Granted
    }

    /// Returns the tool's name.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        &self.0.name
    }

    /// Returns the name that the plugin or the server gave the tool. Sessions see another
    /// [`name`](Self::name) if the settings of the plugin rename it, and if it is of a server.
    #[must_use]
    pub fn own_name(&self) -> &ToolName {
        self.0.own.as_ref().unwrap_or(&self.0.name)
    }

    /// Returns the definition under the name that sessions see, which keeps its own name for rules.
    #[must_use]
    pub fn shown_as(&self, name: ToolName) -> Self {
        if *self.name() == name {
            return self.clone();
        }
        let own = self.own_name().clone();
        self.clone().change(|parts| {
            parts.own = Some(own);
            parts.name = name;
        })
    }

    /// Adds a sentence of the host to the description.
    pub(crate) fn with_note(self, note: &str) -> Self {
        self.change(|parts| parts.description = format!("{}\n\n{note}", parts.description))
    }

    /// Returns the short name for display, if there is one.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.0.title.as_deref()
    }

    /// Returns the description that a model reads to decide whether to call the tool.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// Returns the JSON Schema of the input.
    #[must_use]
    pub fn parameters(&self) -> &Value {
        self.0.input.as_value()
    }

    /// Returns the compiled form of [`parameters`](Self::parameters).
    #[must_use]
    pub fn input_schema(&self) -> &Schema {
        &self.0.input
    }

    /// Returns the schema of the output, if the tool promises one.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Schema> {
        self.0.output.as_ref()
    }

    /// Returns the tool's side-effect class.
    #[must_use]
    pub fn side_effects(&self) -> SideEffects {
        self.0.side_effects
    }

    /// Returns true if the tool declares that a repeated call leaves the same state as a single
    /// call.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.0.idempotent
    }

    /// Returns the timeout that the tool asks for; it can only lower that of its class.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.0.timeout
    }

    /// Returns the metadata.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.0.metadata
    }

    /// Returns true if the tool's paths name directory entries, so that a link at the end of a path
    /// is not followed.
    #[must_use]
    pub fn keeps_links(&self) -> bool {
        self.0.metadata.get(KEEPS_LINKS) == Some(&Value::Bool(true))
    }

    /// Returns true if the tool takes `null` in an optional member of its input for the absence of
    /// that member. A caller may then send `null` there, although the schema does not list it, and
    /// the tool receives an input without it.
    #[must_use]
    pub fn takes_null_as_absent(&self) -> bool {
        self.0.metadata.get(NULL_IS_ABSENT) == Some(&Value::Bool(true))
    }

    /// Validates an input against the schema without running the tool.
    ///
    /// # Errors
    ///
    /// [`Violations`] lists up to ten fields with a reason for each.
    pub fn validate_params(&self, input: &Value) -> Result<(), Violations> {
        match self.0.input.validate(input) {
            Err(_) if self.takes_null_as_absent() => {
                let mut input = input.clone();
                drop_absent(self.parameters(), &mut input);
                self.0.input.validate(&input)
            }
            verdict => verdict,
        }
    }

    /// Returns the generic form that every adapter understands: `{"name", "description",
    /// "parameters"}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"name": self.name().as_str(), "description": self.description(), "parameters": self.parameters()})
    }

    fn change(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

/// The effect of a repeated call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idempotence {
    /// A repeated call leaves the same state as a single call.
    Idempotent,
    /// A repeated call may change the state again.
    NotIdempotent,
}

/// The reason why a definition is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name does not match the pattern.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A text is blank, too long, or has hidden characters.
    #[error("the {part} {problem}")]
    Text {
        /// The name of the text.
        part: &'static str,
        /// The problem, with the accepted form.
        problem: String,
    },
    /// The input schema is outside the accepted subset.
    #[error("the input schema is refused: {0}")]
    Input(#[source] SchemaError),
    /// The output schema is outside the accepted subset.
    #[error("the output schema is refused: {0}")]
    Output(#[source] SchemaError),
    /// The timeout is zero, which would fail every call.
    #[error("the timeout is zero; leave it out for the default, or give at least one millisecond")]
    ZeroTimeout,
}

fn check_text(part: &'static str, text: &str, max: usize) -> Result<(), DefinitionError> {
    let problem = if text.trim().is_empty() {
        "is blank; say in a sentence what the tool does".to_owned()
    } else if text.len() > max {
        format!("is {} bytes long; at most {max} are accepted", text.len())
    } else if let Some(c) = first_deceptive(text) {
        format!(
            "holds the hidden character U+{:04X}; only visible characters, tab and newline are accepted",
            u32::from(c)
        )
    } else {
        return Ok(());
    };
    Err(DefinitionError::Text { part, problem })
}
