//! Advice for the operator about a refusal. Models never see it, so that they cannot talk a user
//! into weakening a setting.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The location in use if the host was not told the operator's configuration file.
const OWN: &str = "in your own palisade.toml";

/// Advice for the operator in plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    text: Cow<'static, str>,
    key: Option<Cow<'static, str>>,
}

impl Advice {
    /// Creates advice that does not involve a setting.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), key: None }
    }

    /// Creates advice to change this key; the key's location is appended to the text.
    pub fn setting(text: impl Into<Cow<'static, str>>, key: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), key: Some(key.into()) }
    }

    /// Renders the text, with the location where the key has to be changed.
    #[must_use]
    pub fn told(&self, places: &Places) -> String {
        match &self.key {
            Some(key) => format!("{} {}", self.text, places.of(key)),
            None => self.text.clone().into_owned(),
        }
    }
}

/// The locations of the operator's settings, each as a phrase such as `in
/// ~/.config/palisade/palisade.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    own: Option<String>,
    keys: BTreeMap<String, String>,
}

impl Places {
    /// Creates the set with a default location for all keys.
    pub fn new(own: impl Into<String>) -> Self {
        Self { own: Some(own.into()), keys: BTreeMap::new() }
    }

    /// Sets the location of a key whose value comes from elsewhere.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, place: impl Into<String>) -> Self {
        self.keys.insert(key.into(), place.into());
        self
    }

    /// Returns the location of a key.
    #[must_use]
    pub fn of(&self, key: &str) -> &str {
        self.keys.get(key).or(self.own.as_ref()).map_or(OWN, String::as_str)
    }
}

/// Returns the hint for an unknown tool while plugins are compiled.
pub(super) fn still_compiling(plugins: &[String]) -> String {
    match plugins {
        [] => String::new(),
        names => format!(
            "; it may come with what is being compiled: {}; try again later",
            names.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_place_with_precedence() {
        let places = Places::new("in mine").with("limits.memory", "with PALISADE_MEMORY");
        let said = |key: &'static str| Advice::setting("raise it", key).told(&places);
        assert_eq!(said("limits.memory"), "raise it with PALISADE_MEMORY");
        assert_eq!(said("limits.timeout"), "raise it in mine");
        assert_eq!(
            Advice::setting("raise it", "x").told(&Places::default()),
            "raise it in your own palisade.toml"
        );
        assert_eq!(Advice::new("wait").told(&places), "wait");
    }
}
