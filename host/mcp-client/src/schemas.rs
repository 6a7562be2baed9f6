//! The memory that the schemas of one server's tools take together, as long as a host has them.

use palisade::internal::footprint;
use palisade::tool::schema::{Building, PatternAllowance, Schema, SchemaError};
use serde_json::{Map, Value};

/// The most patterns of all schemas of a server: two for each tool of one with the most tools.
const MAX_PATTERNS: usize = 512;
/// The most bytes of the compiled patterns of all schemas of a server: those of two of the largest
/// schemas.
const MAX_PATTERN_BYTES: usize = 8 << 20;
/// The most bytes of all schemas of a server, parsed and with their validators. The largest public
/// servers have some hundred tools with 1 KB of schemas each, which take some 10 MiB.
const MAX_BYTES: u64 = 64 << 20;

/// The memory that is left for the schemas of a server.
pub(crate) struct SchemaRoom {
    patterns: PatternAllowance,
    bytes: u64,
}

impl SchemaRoom {
    /// Creates the room of a server.
    pub(crate) fn new() -> Self {
        Self { patterns: PatternAllowance::new(MAX_PATTERNS, MAX_PATTERN_BYTES), bytes: MAX_BYTES }
    }

    /// Parses the schema of an input.
    ///
    /// # Errors
    ///
    /// The reason why no host accepts it.
    pub(crate) fn input(&mut self, schema: &Map<String, Value>) -> Result<Schema, String> {
        self.parsed(schema, Schema::parse_input_within)
    }

    /// Parses the schema of an output.
    ///
    /// # Errors
    ///
    /// The reason why no host accepts it.
    pub(crate) fn output(&mut self, schema: &Map<String, Value>) -> Result<Schema, String> {
        self.parsed(schema, Schema::parse_output_within)
    }

    /// Returns the memory that is taken, in bytes.
    pub(crate) fn taken(&self) -> usize {
        usize::try_from(MAX_BYTES - self.bytes).unwrap_or(usize::MAX)
    }

    fn parsed(
        &mut self,
        schema: &Map<String, Value>,
        parse: fn(&str, Building, &mut PatternAllowance) -> Result<Schema, SchemaError>,
    ) -> Result<Schema, String> {
        let full = || {
            format!(
                "the schemas of all tools of its server take too much memory; {MAX_BYTES} bytes are accepted"
            )
        };
        // Without room, nothing more is built.
        if self.bytes == 0 {
            return Err(full());
        }
        let text = serde_json::to_string(schema).map_err(|error| error.to_string())?;
        let schema = parse(&text, Building::Now, &mut self.patterns);
        let schema = schema.map_err(|error| error.to_string())?;
        let taken = schema.validator_memory().saturating_add(footprint::of(schema.as_value()));
        match self.bytes.checked_sub(taken) {
            Some(left) => {
                self.bytes = left;
                Ok(schema)
            }
            None => {
                self.bytes = 0;
                Err(full())
            }
        }
    }
}
