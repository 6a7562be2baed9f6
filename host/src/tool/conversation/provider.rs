//! The providers whose replies are read, by the names that the export formats have.

use crate::tool::nearest_names;
use std::fmt;
use std::str::FromStr;

/// An interface of a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI's Chat Completions, and whoever imitates them.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

impl Provider {
    /// All providers, in the order in which they are listed to people.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The media types that a tool message of the provider may carry beside text.
    pub(super) fn media(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &[],
            Self::OpenAiResponses | Self::Anthropic => &["image/jpeg", "image/png", "image/gif", "image/webp"],
            // Of the third generation on; no older one is known to take parts in a function's response.
            Self::Gemini => &["image/jpeg", "image/png", "image/webp", "application/pdf"],
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that no provider has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no provider is called {name:?}; there are openai, openai-responses, anthropic and gemini{}", suggestion(*.nearest))]
pub struct UnknownProvider {
    /// The name that was given, cut at 64 bytes.
    pub name: String,
    /// The provider whose name is nearest to it, if one is near.
    pub nearest: Option<Provider>,
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let known = Self::ALL.into_iter().find(|provider| provider.as_str() == name);
        known.ok_or_else(|| {
            let name = crate::tool::text::cut(name, 64);
            UnknownProvider { name: name.to_owned(), nearest: nearest(name) }
        })
    }
}

fn nearest(name: &str) -> Option<Provider> {
    let names = nearest_names(name, Provider::ALL.into_iter().map(Provider::as_str));
    names.first().and_then(|name| Provider::ALL.into_iter().find(|provider| provider.as_str() == name))
}

fn suggestion(nearest: Option<Provider>) -> String {
    nearest.map(|provider| format!("; did you mean {provider}?")).unwrap_or_default()
}
