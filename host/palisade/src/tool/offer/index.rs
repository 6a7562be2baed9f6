//! Finds the documents of a plugin by URI. Templates are parsed once, when the plugin is loaded.

use super::{Offer, Pattern, URI};
use std::collections::HashSet;

/// The documents of one plugin, by URI.
#[derive(Debug, Default)]
pub(crate) struct DocumentIndex {
    uris: HashSet<String>,
    patterns: Vec<Pattern>,
}

impl DocumentIndex {
    /// Indexes the documents of an offer.
    pub(crate) fn of(offer: &Offer) -> Self {
        let uris = offer.items().iter().map(|item| item.uri.clone()).collect();
        let parse = |template: &super::Template| Pattern::parse(&template.uri);
        Self { uris, patterns: offer.templates().iter().filter_map(parse).collect() }
    }

    /// Returns true if a document or template has this URI.
    pub(crate) fn has(&self, uri: &str) -> bool {
        uri.len() <= URI
            && (self.uris.contains(uri) || self.patterns.iter().any(|pattern| pattern.fits(uri)))
    }

    /// Returns the number of bytes that a search for this URI reads at most, without the templates.
    pub(crate) fn search_cost(&self, uri: &str) -> usize {
        match uri.len() {
            length @ ..=URI => length.saturating_mul(1 + self.patterns.len()),
            _ => 0,
        }
    }
}
