//! The documents and prompts that a plugin offers besides tools: data only, with validation.

mod index;
mod template;

use super::text::{elided, visible};
use super::uri::leads_to_a_file;
pub(crate) use index::DocumentIndex;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use template::Pattern;

/// The most entries of a plugin: documents, templates and prompts together.
const ENTRIES: usize = 256;
/// The most parts of all templates together: variables, and texts between them.
const PARTS: usize = 1 << 10;
/// The longest JSON form of an offer, in bytes.
const BYTES: usize = 256 << 10;
/// The longest URI, in bytes.
const URI: usize = 2 << 10;
/// The longest name of a document or title, in characters.
const NAME: usize = 256;
/// The longest media type, in bytes.
const MIME: usize = 255;
/// The longest name of a prompt or of an argument.
const PLAIN: usize = 64;
/// The most arguments of a prompt.
const ARGUMENTS: usize = 32;
/// Well-known schemes that a plugin's document may not use, because clients would take it for
/// something else. URIs that lead to a file are refused as well.
const FOREIGN: [&str; 6] = ["file", "http", "https", "data", "javascript", "view-source"];

/// The offer of one plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The documents, if the plugin exports their interface.
    pub documents: Option<Documents>,
    /// The prompts, if the plugin exports their interface.
    pub prompts: Option<Vec<Prompt>>,
}

/// The documents of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Documents {
    /// Documents with a fixed URI.
    pub items: Vec<Item>,
    /// Documents whose URI matches a template.
    pub templates: Vec<Template>,
}

/// One document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The document's URI.
    pub uri: String,
    /// The document's name.
    pub name: String,
    /// A name for display.
    pub title: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// The media type, if known.
    pub mime: Option<String>,
    /// The size in bytes, if known.
    pub size: Option<u64>,
}

/// A family of documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// A URI template with variables.
    pub uri: String,
    /// The template's name.
    pub name: String,
    /// A name for display.
    pub title: Option<String>,
    /// A description of the documents.
    pub description: Option<String>,
    /// The media type, if all documents share it.
    pub mime: Option<String>,
}

/// One prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The prompt's name.
    pub name: String,
    /// A name for display.
    pub title: Option<String>,
    /// The prompt's purpose.
    pub description: String,
    /// The prompt's arguments.
    pub arguments: Vec<Argument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// The argument's name.
    pub name: String,
    /// The argument's meaning.
    pub description: Option<String>,
    /// True if the argument is required.
    pub required: bool,
}

/// The reason why an offer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OfferError(String);

impl Offer {
    /// Validates the offer.
    ///
    /// # Errors
    ///
    /// [`OfferError`] for the first broken rule.
    pub fn check(&self) -> Result<(), OfferError> {
        let items = self.items();
        let templates = self.templates();
        let prompts = self.prompts();
        let entries = items.len() + templates.len() + prompts.len();
        if entries > ENTRIES {
            return refused(format!(
                "it offers {entries} documents, templates and prompts; {ENTRIES} are accepted in all"
            ));
        }
        let bytes = self.length();
        if bytes > BYTES {
            return refused(format!(
                "what it offers has {bytes} bytes as JSON; {BYTES} are accepted"
            ));
        }
        items.iter().try_for_each(Item::check)?;
        templates.iter().try_for_each(Template::check)?;
        let parts = |template: &Template| Pattern::parse(&template.uri).map_or(0, |it| it.parts());
        let parts: usize = templates.iter().map(parts).sum();
        if parts > PARTS {
            return refused(format!(
                "its templates have {parts} variables and texts between them; {PARTS} are accepted in all"
            ));
        }
        prompts.iter().try_for_each(Prompt::check)?;
        let mut names = HashSet::new();
        let twice = self.claims().find(|claim| !names.insert(claim.clone()));
        twice.map_or(Ok(()), |claim| refused(format!("it offers {claim} twice")))
    }

    /// Returns the length of the JSON form, in bytes.
    #[must_use]
    pub(crate) fn length(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX, |text| text.len())
    }

    /// Returns the first document, template or prompt that both plugins claim. A template claims
    /// every URI that it can expand to.
    #[must_use]
    pub(crate) fn clash(&self, other: &Self) -> Option<String> {
        let taken: HashSet<String> = other.claims().collect();
        self.claims().find(|claim| taken.contains(claim)).or_else(|| self.overlap(other))
    }

    /// Returns the first document or template for which a template of one plugin and the other
    /// plugin could both answer.
    fn overlap(&self, other: &Self) -> Option<String> {
        let (own, others) = (self.patterns(), other.patterns());
        let item = self.items().iter().find(|item| others.iter().any(|it| it.fits(&item.uri)));
        if let Some(item) = item {
            return Some(format!("the document `{}`", item.uri));
        }
        let meets = |pattern: &Pattern| {
            other.items().iter().any(|item| pattern.fits(&item.uri))
                || others.iter().any(|it| pattern.may_meet(it))
        };
        let template = self.templates().iter().zip(&own).find(|(_, pattern)| meets(pattern));
        template.map(|(template, _)| format!("the template `{}`", template.uri))
    }

    /// Returns the patterns of the templates, in their order.
    fn patterns(&self) -> Vec<Pattern> {
        // Checked templates all have one.
        self.templates().iter().filter_map(|it| Pattern::parse(&it.uri)).collect()
    }

    /// Returns the prompt of this name.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&Prompt> {
        self.prompts().iter().find(|prompt| prompt.name == name)
    }

    /// Returns the documents.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        self.documents.as_ref().map_or(&[], |documents| &documents.items)
    }

    /// Returns the document templates.
    #[must_use]
    pub fn templates(&self) -> &[Template] {
        self.documents.as_ref().map_or(&[], |documents| &documents.templates)
    }

    /// Returns the prompts.
    #[must_use]
    pub fn prompts(&self) -> &[Prompt] {
        self.prompts.as_deref().unwrap_or_default()
    }

    fn claims(&self) -> impl Iterator<Item = String> {
        let items = self.items().iter().map(|item| format!("the document `{}`", item.uri));
        let templates =
            self.templates().iter().map(|template| format!("the template `{}`", template.uri));
        items
            .chain(templates)
            .chain(self.prompts().iter().map(|prompt| format!("the prompt `{}`", prompt.name)))
    }
}

impl Item {
    fn check(&self) -> Result<(), OfferError> {
        let of = format!("its document `{}`", elided(&self.uri, 128));
        uri(&of, &self.uri)?;
        let description = self.description.as_deref();
        described(&of, &self.name, self.title.as_deref(), description, self.mime.as_deref())
    }
}

impl Template {
    fn check(&self) -> Result<(), OfferError> {
        let of = format!("its template `{}`", elided(&self.uri, 128));
        uri(&of, &self.uri)?;
        if Pattern::parse(&self.uri).is_none() {
            return refused(format!(
                "{of} is refused: a variable is a name in braces, with text before it and between two"
            ));
        }
        let description = self.description.as_deref();
        described(&of, &self.name, self.title.as_deref(), description, self.mime.as_deref())
    }
}

impl Prompt {
    fn check(&self) -> Result<(), OfferError> {
        let of = format!("its prompt `{}`", elided(&self.name, 128));
        plain(&of, &self.name)?;
        described(&of, &self.name, self.title.as_deref(), Some(&self.description), None)?;
        if self.description.trim().is_empty() || self.arguments.len() > ARGUMENTS {
            return refused(format!(
                "{of} is refused: it has a description, and at most {ARGUMENTS} arguments"
            ));
        }
        let mut names = HashSet::new();
        for argument in &self.arguments {
            plain(&of, &argument.name)?;
            shown(&of, argument.description.as_deref().unwrap_or_default())?;
            if !names.insert(&argument.name) {
                return refused(format!(
                    "{of} is refused: it has two arguments `{}`",
                    argument.name
                ));
            }
        }
        Ok(())
    }
}

fn described(
    of: &str,
    name: &str,
    title: Option<&str>,
    description: Option<&str>,
    mime: Option<&str>,
) -> Result<(), OfferError> {
    for line in [Some(name), title, mime].into_iter().flatten() {
        if line.trim().is_empty() || line.chars().count() > NAME || line.contains(char::is_control)
        {
            return refused(format!(
                "{of} is refused: names are one line of 1 to {NAME} characters"
            ));
        }
        shown(of, line)?;
    }
    if mime.is_some_and(|mime| mime.len() > MIME || !mime.contains('/')) {
        return refused(format!(
            "{of} is refused: a media type has a `/`, and at most {MIME} bytes"
        ));
    }
    shown(of, description.unwrap_or_default())
}

/// Refuses text with hidden characters, which users would not see.
fn shown(of: &str, text: &str) -> Result<(), OfferError> {
    if visible(text) == text {
        Ok(())
    } else {
        refused(format!("{of} is refused: it has hidden characters"))
    }
}

fn uri(of: &str, uri: &str) -> Result<(), OfferError> {
    let is_plain = uri.len() <= URI && uri.chars().all(|character| character.is_ascii_graphic());
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || "+.-".contains(it));
    if is_plain && is_scheme && !FOREIGN.contains(&scheme) && !leads_to_a_file(uri) {
        return Ok(());
    }
    refused(format!(
        "{of} is refused: a URI has a scheme of the plugin's own, of two letters or more and in lower case, no blanks, and at most {URI} bytes"
    ))
}

fn plain(of: &str, name: &str) -> Result<(), OfferError> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    if (1..=PLAIN).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    refused(format!("{of} is refused: names are 1 to {PLAIN} of `A-Z a-z 0-9 _ . -`"))
}

fn refused<T>(reason: String) -> Result<T, OfferError> {
    Err(OfferError(reason))
}

#[cfg(test)]
mod tests;
