//! What a tool says of itself, checked and then read-only.

use super::formats::ToolView;
use super::schema::{Schema, SchemaError, Violations};
use super::text::first_deceptive;
use super::{InvalidName, SideEffects, ToolName};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The longest description, in bytes: it goes into a model's context with every request.
pub const MAX_DESCRIPTION: usize = 16 << 10;
/// The longest title, in characters.
pub const MAX_TITLE: usize = 128;
/// The metadata key by which a tool says that its paths name directory entries: a last component that is a symbolic link is then not followed.
pub const KEEPS_LINKS: &str = "keeps-links";

/// A tool's definition. Cheap to clone; never changes.
///
/// ```
/// use palisade::{Definition, SideEffects, json};
///
/// let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
/// let greet = Definition::new("greet", "Greets somebody by name.", SideEffects::None, schema)?;
/// assert!(greet.validate_params(&json!({"name": "Ada"})).is_ok());
/// assert!(greet.validate_params(&json!({"name": 3})).is_err());
/// # Ok::<(), palisade::DefinitionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Definition(Arc<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    name: ToolName,
    title: Option<String>,
    description: String,
    input: Schema,
    output: Option<Schema>,
    side_effects: SideEffects,
    idempotent: bool,
    timeout: Option<Duration>,
    metadata: Map<String, Value>,
}

impl Definition {
    /// Checks the four things that every tool has.
    ///
    /// # Errors
    ///
    /// [`DefinitionError`] names the part that is wrong: the name, the description, or the schema with keyword and place.
    pub fn new(
        name: &str,
        description: &str,
        side_effects: SideEffects,
        input_schema: Value,
    ) -> Result<Self, DefinitionError> {
        Self::with_schema(name, description, side_effects, Schema::input(input_schema).map_err(DefinitionError::Input)?)
    }

    /// As [`new`](Self::new), with a schema that has been checked.
    ///
    /// # Errors
    ///
    /// [`DefinitionError`] names the part that is wrong.
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
            title: None,
            description: description.to_owned(),
            input,
            output: None,
            side_effects,
            idempotent: matches!(side_effects, SideEffects::None | SideEffects::Read),
            timeout: None,
            metadata: Map::new(),
        })))
    }

    /// Adds a short name for people.
    ///
    /// # Errors
    ///
    /// [`DefinitionError::Text`] where it is blank, longer than 128 characters, or hides something.
    pub fn with_title(self, title: &str) -> Result<Self, DefinitionError> {
        check_text("title", title, MAX_TITLE)?;
        if title.contains(['\n', '\t']) {
            let problem = "holds a line break or a tab; a title is one line".to_owned();
            return Err(DefinitionError::Text { part: "title", problem });
        }
        Ok(self.change(|parts| parts.title = Some(title.to_owned())))
    }

    /// Adds the schema that a successful output conforms to.
    ///
    /// # Errors
    ///
    /// [`DefinitionError::Output`] names keyword and place.
    pub fn with_output_schema(self, schema: Value) -> Result<Self, DefinitionError> {
        Ok(self.with_checked_output(Schema::output(schema).map_err(DefinitionError::Output)?))
    }

    /// As [`with_output_schema`](Self::with_output_schema), with a schema that has been checked.
    #[must_use]
    pub fn with_checked_output(self, schema: Schema) -> Self {
        self.change(|parts| parts.output = Some(schema))
    }

    /// Says whether calling twice leaves the same state as calling once.
    #[must_use]
    pub fn with_idempotence(self, idempotent: Idempotence) -> Self {
        self.change(|parts| parts.idempotent = idempotent == Idempotence::Idempotent)
    }

    /// Lowers the time that one call gets.
    ///
    /// # Errors
    ///
    /// [`DefinitionError::ZeroTimeout`] for no time at all.
    pub fn with_timeout(self, timeout: Duration) -> Result<Self, DefinitionError> {
        if timeout.is_zero() {
            return Err(DefinitionError::ZeroTimeout);
        }
        Ok(self.change(|parts| parts.timeout = Some(timeout)))
    }

    /// Adds what the record has no field for.
    #[must_use]
    pub fn with_metadata(self, metadata: Map<String, Value>) -> Self {
        self.change(|parts| parts.metadata = metadata)
    }

    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        &self.0.name
    }

    /// A short name for people, if it has one.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.0.title.as_deref()
    }

    /// What the model reads to decide whether to call it.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// The JSON Schema of its input.
    #[must_use]
    pub fn parameters(&self) -> &Value {
        self.0.input.as_value()
    }

    /// The compiled form of [`parameters`](Self::parameters).
    #[must_use]
    pub fn input_schema(&self) -> &Schema {
        &self.0.input
    }

    /// The schema of its output, if it promises one.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Schema> {
        self.0.output.as_ref()
    }

    /// Its class.
    #[must_use]
    pub fn side_effects(&self) -> SideEffects {
        self.0.side_effects
    }

    /// Whether it says that calling twice leaves the same state as calling once.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.0.idempotent
    }

    /// The time it asks for, which can only be less than its class gets.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.0.timeout
    }

    /// Everything else it says.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.0.metadata
    }

    /// Whether its paths name directory entries, so that a link at the end of a path is not followed.
    #[must_use]
    pub fn keeps_links(&self) -> bool {
        self.0.metadata.get(KEEPS_LINKS) == Some(&Value::Bool(true))
    }

    /// Checks an input against the schema without running anything.
    ///
    /// # Errors
    ///
    /// [`Violations`] lists up to ten fields with the reason for each.
    pub fn validate_params(&self, input: &Value) -> Result<(), Violations> {
        self.0.input.validate(input)
    }

    /// The plain form that every adapter understands: `{"name", "description", "parameters"}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"name": self.name().as_str(), "description": self.description(), "parameters": self.parameters()})
    }

    /// What the exporters to other formats need of it.
    #[must_use]
    pub fn view(&self) -> ToolView<'_> {
        ToolView {
            name: self.name().as_str(),
            title: self.title(),
            description: self.description(),
            input_schema: self.parameters(),
            output_schema: self.output_schema().map(Schema::as_value),
            side_effects: self.side_effects().as_str(),
            idempotent: self.is_idempotent(),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

/// Whether calling twice leaves the same state as calling once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idempotence {
    /// It does.
    Idempotent,
    /// It may not.
    NotIdempotent,
}

/// Why a definition is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name breaks the pattern.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A text is blank, too long, or holds characters that hide what it says.
    #[error("the {part} {problem}")]
    Text {
        /// Which text.
        part: &'static str,
        /// What is wrong with it, and what would be accepted.
        problem: String,
    },
    /// The input schema is outside the accepted subset.
    #[error("the input schema is refused: {0}")]
    Input(#[source] SchemaError),
    /// The output schema is outside the accepted subset.
    #[error("the output schema is refused: {0}")]
    Output(#[source] SchemaError),
    /// A timeout of zero would refuse every call.
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
