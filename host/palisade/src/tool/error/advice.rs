//! Advice for the operator about a refusal. Models never see it, so that they cannot talk a user
//! into weakening a setting.

use crate::tool::text::toml_key;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Advice for the operator in plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    text: Cow<'static, str>,
    subject: Subject,
    in_code: Option<Cow<'static, str>>,
}

/// The subject of advice.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    /// None that has a location.
    Plain,
    /// A key of the operator's settings.
    Key(Cow<'static, str>),
    /// The tools that there are.
    Tools,
}

impl Advice {
    /// Creates advice that does not involve a setting.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), subject: Subject::Plain, in_code: None }
    }

    /// Creates advice to change this key of an operator's settings; the key's location is appended
    /// to the text. A host without such settings gives it only in the form of
    /// [`in_code`](Self::in_code).
    pub fn setting(text: impl Into<Cow<'static, str>>, key: impl Into<Cow<'static, str>>) -> Self {
        Self { subject: Subject::Key(key.into()), ..Self::new(text) }
    }

    /// Creates advice to look at the list of tools.
    pub(super) fn tools() -> Self {
        Self { subject: Subject::Tools, ..Self::new("") }
            .in_code("`Host::definitions` lists the tools there are")
    }

    /// Sets the advice for a host without settings of an operator, whose code decides.
    #[must_use]
    pub fn in_code(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.in_code = Some(text.into());
        self
    }

    /// Returns true if a host can give this advice: a host without an operator's settings knows no
    /// keys.
    pub(super) fn is_for(&self, places: &Places) -> bool {
        places.are_known() || self.in_code.is_some() || !matches!(self.subject, Subject::Key(_))
    }

    /// Renders the text, with the location where the key has to be changed.
    #[must_use]
    pub fn told(&self, places: &Places) -> String {
        match (&self.subject, &self.in_code) {
            (_, Some(in_code)) if !places.are_known() => in_code.clone().into_owned(),
            (Subject::Plain, _) => self.text.clone().into_owned(),
            (Subject::Key(key), _) => format!("{} {}", self.text, places.of(key)),
            (Subject::Tools, _) => format!("`{}` shows the tools there are", places.tools()),
        }
    }
}

/// The locations of the operator's settings, each as a phrase such as `in
/// ~/.config/palisade/palisade.toml`. The default has none: advice then names functions of this
/// library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    own: Option<String>,
    keys: BTreeMap<String, String>,
    tools: Option<String>,
}

impl Places {
    /// Creates the set with a default location for all keys.
    pub fn new(own: impl Into<String>) -> Self {
        Self { own: Some(own.into()), ..Self::default() }
    }

    /// Sets the location of a key whose value comes from elsewhere.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, place: impl Into<String>) -> Self {
        self.keys.insert(key.into(), place.into());
        self
    }

    /// Sets the command that lists the tools. Default: `palisade list`.
    #[must_use]
    pub fn with_tools(mut self, command: impl Into<String>) -> Self {
        self.tools = Some(command.into());
        self
    }

    /// Returns the locations for the calls of a plugin that has a memory limit of its own.
    pub(crate) fn of_limited_plugin(self: &Arc<Self>, plugin: &str) -> Arc<Self> {
        if !self.are_known() {
            return self.clone();
        }
        let key = format!("plugins.{plugin}.memory");
        let shown = format!("plugins.{}.memory", toml_key(plugin));
        let place = format!("as `{shown}`, which holds for this plugin, {}", self.of(&key));
        Arc::new(Self::clone(self).with("limits.memory", place))
    }

    /// Returns the location of a key.
    #[must_use]
    pub fn of(&self, key: &str) -> &str {
        self.keys.get(key).or(self.own.as_ref()).map_or(OWN, String::as_str)
    }

    /// Returns true if the host was told of settings of an operator.
    fn are_known(&self) -> bool {
        self.own.is_some() || !self.keys.is_empty()
    }

    fn tools(&self) -> &str {
        self.tools.as_deref().unwrap_or("palisade list")
    }
}

/// The location in use if only other keys have one.
const OWN: &str = "in your own settings";

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
        let in_code = Advice::setting("raise it", "x").in_code("call `raise`");
        assert_eq!(in_code.told(&Places::default()), "call `raise`");
        let key = Advice::setting("raise it", "x");
        assert!(!key.is_for(&Places::default()) && key.is_for(&places));
        assert!(in_code.is_for(&Places::default()) && Advice::new("wait").is_for(&places));
        assert_eq!(in_code.told(&places), "raise it in mine");
        assert_eq!(
            Advice::tools().told(&places.clone().with_tools("palisade list --plugins p")),
            "`palisade list --plugins p` shows the tools there are"
        );
        assert_eq!(
            Advice::tools().told(&Places::default()),
            "`Host::definitions` lists the tools there are"
        );
        assert_eq!(Advice::new("wait").told(&places), "wait");
    }
}
