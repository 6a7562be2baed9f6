//! The name of a new plugin, which is valid in every language, in every registry and for a model.

mod modules;

use crate::language::Language;
use std::fmt;
use std::str::FromStr;

/// Maximum length of a name: that of a tool's name.
const LONGEST: usize = 64;

/// Words that a language reserves, or that its package manager refuses as a name.
const RESERVED: &str = "abstract alignas alignof alloc and arguments as asm assert async auto await \
    become bool box break build case catch char class const continue core crate debugger def default \
    del delete deps do double dyn elif else enum eval except examples export extends extern false \
    final finally float fn for from function gen global goto if impl implements import in incremental \
    inline instanceof int interface is lambda let long loop macro main match mod move mut new node \
    none nonlocal not null nullptr or override package palisade pass priv private proc protected \
    public pub python raise ref register restrict return select self short signed sizeof static std \
    struct super switch test this throw trait true try type typedef typeof union unsafe unsigned \
    unsized use var virtual void volatile where while with yield";

/// The crates of a project in Rust whose names no other package can have, as identifiers: those
/// that its template names, and those of this repository that they need.
const CRATES: [&str; 5] =
    ["palisade_guest", "palisade_guest_macros", "schemars", "serde", "serde_json"];

/// A checked name: lower-case words of letters and digits, joined by `-` or `_`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginName(String);

/// The fault of a name. The message says what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It has another form.
    #[error(
        "`{name}` cannot be the name of a plugin: {LONGEST} characters at most are accepted, lower-case letters and digits in words that `-` or `_` joins, a letter first, such as `word-count`"
    )]
    Form {
        /// The name, escaped.
        name: String,
    },
    /// A language reserves the word.
    #[error("`{name}` is a reserved word; add another word, such as `{name}-tool`")]
    Reserved {
        /// The name.
        name: String,
    },
    /// A project in Rust depends on a crate of this name.
    #[error("`{name}` is a crate that the project uses; add another word, such as `{name}-tool`")]
    Crate {
        /// The name.
        name: String,
    },
    /// Python has a module of this name, and would import one of them in place of the other.
    #[error("`{name}` is the name of a module of Python; add another word, such as `{name}-tool`")]
    Module {
        /// The name.
        name: String,
    },
}

impl PluginName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name with `_` for `-`: the name of the tool, of its function and of the plugin.
    #[must_use]
    pub fn identifier(&self) -> String {
        self.0.replace('-', "_")
    }

    /// Returns the name if a project in this language can have it.
    ///
    /// # Errors
    ///
    /// [`NameError::Module`] for the name of a module that every plugin in Python has, and
    /// [`NameError::Crate`] for that of a crate that the project of a plugin in Rust names.
    pub fn for_language(self, language: Language) -> Result<Self, NameError> {
        match language {
            Language::Python if modules::is_taken(&self.identifier()) => {
                Err(NameError::Module { name: self.0 })
            }
            Language::Rust if CRATES.contains(&self.identifier().as_str()) => {
                Err(NameError::Crate { name: self.0 })
            }
            Language::Python | Language::Rust | Language::Js | Language::C => Ok(self),
        }
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for PluginName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let is_word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
        if name.len() > LONGEST || !begins || !name.split(['-', '_']).all(is_word) {
            let name = palisade::tool::text::elided(name, LONGEST);
            return Err(NameError::Form { name });
        }
        if RESERVED.split_whitespace().any(|word| word == name) {
            return Err(NameError::Reserved { name: name.to_owned() });
        }
        Ok(Self(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_every_language_are_accepted() {
        for name in ["greet", "word-count", "word_count", "a1", "x", &"a".repeat(64)] {
            assert_eq!(name.parse::<PluginName>().map(|it| it.to_string()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn other_names_are_refused_with_what_is_accepted() {
        for name in [
            "",
            "Greet",
            "1st",
            "-a",
            "a-",
            "a--b",
            "a-_b",
            "über",
            "a b",
            "a/b",
            "../a",
            "a.b",
            "a\nb",
            &"a".repeat(65),
        ] {
            let refused = name.parse::<PluginName>().map_err(|error| error.to_string());
            let message = refused.expect_err(name);
            assert!(
                message.contains("such as `word-count`") && !message.contains('\n'),
                "{message}"
            );
        }
        for name in ["fn", "class", "test", "def", "palisade"] {
            let refused = name.parse::<PluginName>().map_err(|error| error.to_string());
            assert!(refused.is_err_and(|it| it.contains("reserved")), "{name}");
        }
    }

    #[test]
    fn name_of_a_python_module_is_refused_in_python_alone() {
        for name in ["json", "sre-parse", "palisade-guest"] {
            let name: PluginName = name.parse().expect("it is accepted");
            let refused = name.clone().for_language(Language::Python);
            assert_eq!(refused, Err(NameError::Module { name: name.to_string() }));
            assert_eq!(name.clone().for_language(Language::Js), Ok(name));
        }
        let name: PluginName = "json-tool".parse().expect("it is accepted");
        assert_eq!(name.clone().for_language(Language::Python), Ok(name));
    }

    #[test]
    fn name_of_a_crate_of_the_project_is_refused_in_rust_alone() {
        for name in ["serde", "serde-json", "palisade-guest"] {
            let name: PluginName = name.parse().expect("it is accepted");
            let refused = name.clone().for_language(Language::Rust);
            assert_eq!(refused, Err(NameError::Crate { name: name.to_string() }));
            assert_eq!(name.clone().for_language(Language::C), Ok(name));
        }
    }

    #[test]
    fn identifier_is_a_tool_name() {
        let name: PluginName = "word-count-2".parse().expect("it is accepted");
        assert_eq!(name.identifier(), "word_count_2");
    }
}
