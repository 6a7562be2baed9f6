//! The names that sessions see of a plugin's tools, in place of those that the plugin gave them.

use super::error::PluginSettingsError;
use crate::tool::{Definition, InvalidName, ToolName};
use std::collections::{BTreeMap, BTreeSet};

/// The longest prefix, in bytes: the other half of a name is left to the tool.
const MAX_PREFIX: usize = 32;

/// The names for the tools of a plugin.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    prefix: String,
    /// The new names by the tools' own.
    renamed: BTreeMap<ToolName, ToolName>,
}

/// The reason why the tools of a plugin cannot have the names that its settings give them.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum UnusableNames {
    #[error(
        "its settings give its tool `{own}` an invalid name, with the prefix `{prefix}`: {source}; give the tool another name under `rename`, or the plugin a shorter prefix"
    )]
    Invalid { own: ToolName, prefix: String, source: InvalidName },
    #[error(
        "its settings give the name `{0}` to two of its tools; give each a name of its own under `rename`"
    )]
    Twice(ToolName),
}

impl Names {
    /// Sets the prefix.
    pub(super) fn with_prefix(self, prefix: &str) -> Result<Self, PluginSettingsError> {
        match prefix.len() <= MAX_PREFIX && ToolName::parse(prefix).is_ok() {
            true => Ok(Self { prefix: prefix.to_owned(), ..self }),
            false => Err(PluginSettingsError::Prefix(prefix.chars().take(MAX_PREFIX).collect())),
        }
    }

    /// Sets the name of one tool, which gets no prefix then.
    pub(super) fn with_renamed(
        mut self,
        own: &str,
        new: &str,
    ) -> Result<Self, PluginSettingsError> {
        self.renamed.insert(ToolName::parse(own)?, ToolName::parse(new)?);
        Ok(self)
    }

    /// Returns whether any tool may get another name.
    pub(super) fn change_anything(&self) -> bool {
        !self.prefix.is_empty() || !self.renamed.is_empty()
    }

    /// Returns the names of a plugin's tools, in their order.
    pub(super) fn of(&self, tools: &[Definition]) -> Result<Vec<ToolName>, UnusableNames> {
        let mut taken = BTreeSet::new();
        let named = |tool: &Definition| {
            let name = self.of_tool(tool.name())?;
            match taken.insert(name.clone()) {
                true => Ok(name),
                false => Err(UnusableNames::Twice(name)),
            }
        };
        tools.iter().map(named).collect()
    }

    fn of_tool(&self, own: &ToolName) -> Result<ToolName, UnusableNames> {
        match self.renamed.get(own) {
            Some(new) => Ok(new.clone()),
            None if self.prefix.is_empty() => Ok(own.clone()),
            None => ToolName::parse(&format!("{}{own}", self.prefix)).map_err(|source| {
                let prefix = self.prefix.clone();
                UnusableNames::Invalid { own: own.clone(), prefix, source }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test whose definition is invalid has failed")]
    use super::*;
    use crate::tool::SideEffects;
    use serde_json::json;

    fn tools(names: &[&str]) -> Vec<Definition> {
        let tool = |name: &&str| {
            let schema = json!({"type": "object"});
            Definition::new(name, "A tool.", SideEffects::None, schema).unwrap()
        };
        names.iter().map(tool).collect()
    }

    fn names_of(names: &Names, own: &[&str]) -> Result<Vec<String>, String> {
        let names = names.of(&tools(own));
        let names = names.map(|names| names.iter().map(ToString::to_string).collect());
        names.map_err(|error| error.to_string())
    }

    #[test]
    fn prefix_stands_before_every_name_that_is_not_renamed() {
        let names = Names::default().with_prefix("left_").unwrap();
        let names = names.with_renamed("search", "find").unwrap();
        assert_eq!(names_of(&names, &["search", "list"]).unwrap(), ["find", "left_list"]);
        assert!(names.change_anything() && !Names::default().change_anything());
    }

    #[test]
    fn tools_that_swap_their_names_do_not_collide() {
        let names =
            Names::default().with_renamed("a", "b").unwrap().with_renamed("b", "a").unwrap();
        assert_eq!(names_of(&names, &["a", "b"]).unwrap(), ["b", "a"]);
    }

    #[test]
    fn name_of_two_tools_is_refused() {
        let names = Names::default().with_renamed("a", "b").unwrap();
        assert!(names_of(&names, &["a", "b"]).unwrap_err().contains("`b` to two of its tools"));
        assert!(names_of(&names, &["a", "c"]).is_ok());
    }

    #[test]
    fn name_with_its_prefix_has_at_most_64_characters() {
        let names = Names::default().with_prefix("left_").unwrap();
        assert!(names_of(&names, &[&"a".repeat(59)]).is_ok());
        let error = names_of(&names, &[&"a".repeat(60)]).unwrap_err();
        assert!(error.contains("`left_`") && error.contains("{0,63}"), "{error}");
    }

    #[test]
    fn prefix_and_new_name_have_the_form_of_a_name() {
        for prefix in ["", "Left", "_", "left.", "9", &"a".repeat(33)] {
            assert!(Names::default().with_prefix(prefix).is_err(), "{prefix}");
        }
        assert!(Names::default().with_prefix(&"a".repeat(32)).is_ok());
        for [own, new] in [["a", ""], ["a", "A"], ["A", "a"], ["a", "p/b"]] {
            assert!(Names::default().with_renamed(own, new).is_err(), "{own} {new}");
        }
    }
}
