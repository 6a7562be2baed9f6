//! A response as text: decoded, converted, and cut into parts.

mod decode;
mod markdown;
mod part;
mod tree;

use crate::address::Address;
use crate::exchange::{End, Response};
use decode::{Media, decoded};
use palisade_guest::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use part::Part;

/// The form of the text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// HTML becomes Markdown; other text stays as it is.
    #[default]
    Markdown,
    /// All text stays as it is.
    Source,
}

impl Format {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A page as text.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) title: Option<String>,
}

/// Returns the text of a response.
pub(crate) fn text(response: &Response, address: &Address, format: Format) -> Result<Page> {
    let media = Media::of(response.header("content-type"));
    if let Some(encoding) = response.header("content-encoding").filter(|name| *name != "identity") {
        return Err(Error::failed(format!(
            "{} is compressed with {encoding:?}, although the request asked for none",
            address.as_str()
        )));
    }
    let text = decoded(&response.body, &media).map_err(|reason| {
        Error::failed(format!("{} is no text, but {reason}", address.as_str()))
    })?;
    let page = match format {
        Format::Markdown if media.is_html() || (media.is_unknown() && begins_as_html(&text)) => {
            markdown::convert(&text, address)?
        }
        Format::Markdown | Format::Source => Page { text, title: None },
    };
    Ok(page)
}

fn begins_as_html(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(14).collect();
    let start = start.to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Returns the first line of an output: the status, the address, the type and the title. Nothing
/// after it is the tool's, so that no page can speak for the tool.
pub(crate) fn summary(response: &Response, address: &Address, title: Option<&str>) -> String {
    let media = Media::of(response.header("content-type"));
    let media = media.shown().map(|media| format!(", {media}")).unwrap_or_default();
    let title = title.map(|title| format!(", {title:?}")).unwrap_or_default();
    let end = match response.end {
        End::Reached => String::new(),
        End::Beyond => format!(", longer than the {} bytes that are read", response.body.len()),
    };
    format!("{} {}{media}{title}{end}", response.status, address.as_str())
}
