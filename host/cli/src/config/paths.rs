//! Path rules: `[paths]`, and the same keys of a plugin.

use super::resolve::{Origin, Value};
use palisade::workspace::{Commands, PathRules};
use serde::Deserialize;

/// The table `[paths]` of a file, before its values are checked.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawPaths {
    allow: Option<Vec<String>>,
    deny: Vec<String>,
    commands: Option<String>,
}

/// The path rules of one file.
#[derive(Debug, Clone, Default)]
pub struct PathLists {
    /// The only paths that tools reach, as patterns.
    pub allow: Option<Vec<String>>,
    /// The paths that no tool reaches, as patterns.
    pub deny: Vec<String>,
    rules: PathRules,
}

/// The table `[paths]` of a file.
#[derive(Debug, Clone, Default)]
pub struct PathsConfig {
    /// The rules.
    pub lists: PathLists,
    /// Whether commands run although no rule binds them.
    pub commands: Option<Commands>,
}

/// The effective path rules.
#[derive(Debug, Clone)]
pub struct PathSettings {
    /// The rules of each file that has some. A path has to be permitted by all of them.
    pub lists: Vec<Value<PathLists>>,
    /// Whether commands run although no rule binds them.
    pub commands: Value<Commands>,
}

impl Default for PathSettings {
    fn default() -> Self {
        Self { lists: Vec::new(), commands: Value::default(Commands::Refuse) }
    }
}

impl PathsConfig {
    /// Checks the table.
    ///
    /// # Errors
    ///
    /// The key and the reason.
    pub(super) fn checked(raw: RawPaths) -> Result<Self, String> {
        let commands = raw.commands.as_deref().map(str::parse).transpose();
        let commands = commands.map_err(|error| format!("`paths.commands`: {error}"))?;
        Ok(Self { lists: PathLists::checked("paths", raw.allow, raw.deny)?, commands })
    }
}

impl PathLists {
    /// Checks the lists of a table.
    ///
    /// # Errors
    ///
    /// The key and the reason.
    pub(super) fn checked(
        table: &str,
        allow: Option<Vec<String>>,
        deny: Vec<String>,
    ) -> Result<Self, String> {
        let named = |key: &str, error| format!("`{table}.{key}`: {error}");
        let allowed = PathRules::new(allow.as_deref(), &[]).map_err(|e| named("allow", e))?;
        let denied = PathRules::new(None, &deny).map_err(|e| named("deny", e))?;
        Ok(Self { rules: allowed.and(&denied), allow, deny })
    }

    /// Returns the rules, compiled.
    #[must_use]
    pub fn rules(&self) -> &PathRules {
        &self.rules
    }

    /// Returns the lists as `config show` prints them.
    #[must_use]
    pub fn shown(&self) -> [(&'static str, Option<String>); 2] {
        let deny = Some(self.deny.join(", ")).filter(|deny| !deny.is_empty());
        [("allow", self.allow.as_ref().map(|allow| allow.join(", "))), ("deny", deny)]
    }
}

impl PathSettings {
    /// Adds the rules of a file. They never loosen those that are there.
    pub(super) fn apply(&mut self, config: PathsConfig, origin: impl Fn() -> Origin) {
        self.commands.set(config.commands, &origin);
        if !config.lists.rules.is_empty() {
            self.lists.push(Value { value: config.lists, origin: origin() });
        }
    }
}
