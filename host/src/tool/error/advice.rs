//! What an operator can do about a refusal. A model reads none of it: it could only talk somebody into it.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a host says where nobody has told it of the operator's file.
const OWN: &str = "in your own palisade.toml";

/// What an operator can do, in plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    text: Cow<'static, str>,
    key: Option<Cow<'static, str>>,
}

impl Advice {
    /// Something that is done outside of any settings.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), key: None }
    }

    /// A change of this key; where it has to be changed is said behind the text.
    pub fn setting(text: impl Into<Cow<'static, str>>, key: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), key: Some(key.into()) }
    }

    /// The text, with the place where the key has to be changed.
    #[must_use]
    pub fn told(&self, places: &Places) -> String {
        match &self.key {
            Some(key) => format!("{} {}", self.text, places.of(key)),
            None => self.text.clone().into_owned(),
        }
    }
}

/// Where an operator changes settings: each place as it stands behind a verb, such as `in ~/.config/palisade/palisade.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    own: Option<String>,
    keys: BTreeMap<String, String>,
}

impl Places {
    /// Every key is changed here, unless it has a place of its own.
    pub fn new(own: impl Into<String>) -> Self {
        Self { own: Some(own.into()), keys: BTreeMap::new() }
    }

    /// The key was set in another place, which wins.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, place: impl Into<String>) -> Self {
        self.keys.insert(key.into(), place.into());
        self
    }

    /// The place of a key.
    #[must_use]
    pub fn of(&self, key: &str) -> &str {
        self.keys.get(key).or(self.own.as_ref()).map_or(OWN, String::as_str)
    }
}

/// What is said of a tool that is not there while plugins are compiled.
pub(super) fn still_compiling(plugins: &[String]) -> String {
    match plugins {
        [] => String::new(),
        names => format!("; it may come with what is being compiled: {}; try again later", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advice_names_the_place_that_wins_for_its_key() {
        let places = Places::new("in mine").with("limits.memory", "with PALISADE_MEMORY");
        let said = |key: &'static str| Advice::setting("raise it", key).told(&places);
        assert_eq!(said("limits.memory"), "raise it with PALISADE_MEMORY");
        assert_eq!(said("limits.timeout"), "raise it in mine");
        assert_eq!(Advice::setting("raise it", "x").told(&Places::default()), "raise it in your own palisade.toml");
        assert_eq!(Advice::new("wait").told(&places), "wait");
    }
}
