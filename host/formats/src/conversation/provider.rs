//! The supported providers, under the names of the export formats.

use palisade_schema::nearest_names;
use palisade_schema::text::cut;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A model provider's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI's Chat Completions and compatible APIs.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic's Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Google's Gemini.
    #[serde(rename = "gemini")]
    Gemini,
}

impl Provider {
    /// All providers, in the order in which they are listed to users.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// Returns the provider's name, such as `openai-responses`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the media types that the provider's tool messages accept in addition to text.
    pub(super) fn accepted_media(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &[],
            Self::OpenAiResponses | Self::Anthropic => {
                &["image/jpeg", "image/png", "image/gif", "image/webp"]
            }
            // Gemini 3 and later; no older generation is known to accept parts in a function
            // response.
            Self::Gemini => &["image/jpeg", "image/png", "image/webp", "application/pdf"],
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An unknown provider name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("no provider is called {name:?}; there are openai, openai-responses, anthropic and gemini{}", suggestion(*.nearest))]
pub struct UnknownProvider {
    /// The given name, cut at 64 bytes.
    pub name: String,
    /// The provider with the nearest name, if one is near.
    pub nearest: Option<Provider>,
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let known = Self::ALL.into_iter().find(|provider| provider.as_str() == name);
        known.ok_or_else(|| {
            let name = cut(name, 64);
            UnknownProvider { name: name.to_owned(), nearest: nearest_provider(name) }
        })
    }
}

fn nearest_provider(name: &str) -> Option<Provider> {
    let names = nearest_names(name, Provider::ALL.into_iter().map(Provider::as_str));
    names
        .first()
        .and_then(|name| Provider::ALL.into_iter().find(|provider| provider.as_str() == name))
}

fn suggestion(nearest: Option<Provider>) -> String {
    nearest.map(|provider| format!("; did you mean {provider}?")).unwrap_or_default()
}
