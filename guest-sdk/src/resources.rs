//! Documents that a plugin offers to clients besides its tools: `export_resources!`.
//!
//! ```
//! use palisade_guest::resources::{Item, Resources, text};
//! use palisade_guest::{EmbeddedResource, Error, Result};
//!
//! struct Notes;
//!
//! impl Resources for Notes {
//!     fn items() -> Vec<Item> {
//!         vec![Item::new("note://first", "The first note").with_mime_type("text/plain")]
//!     }
//!
//!     fn read(uri: &str) -> Result<Vec<EmbeddedResource>> {
//!         match uri {
//!             "note://first" => Ok(vec![text("text/plain", "Hello!")]),
//!             _ => Err(Error::not_found(format!("there is no note {uri}"))),
//!         }
//!     }
//! }
//!
//! palisade_guest::export_resources!(Notes);
//! # fn main() {}
//! ```

use crate::{EmbeddedResource, ResourceBody, Result};

#[doc(hidden)]
pub use crate::bindings::resourceful::exports::palisade::tool::resources::Guest as __Guest;
pub use crate::bindings::resourceful::exports::palisade::tool::resources::{Item, Template};

/// The documents of a plugin. The lists are queried once, when the plugin is loaded, and must be
/// constant; reading runs as a tool of class `read`.
pub trait Resources {
    /// Returns the documents with fixed URIs.
    #[must_use]
    fn items() -> Vec<Item> {
        Vec::new()
    }

    /// Returns the URI templates of further documents.
    #[must_use]
    fn templates() -> Vec<Template> {
        Vec::new()
    }

    /// Reads a document that is listed, or that matches a template. The host adds the URI to the
    /// answer.
    ///
    /// # Errors
    /// [`Error::not_found`](crate::Error::not_found) if there is no such document.
    fn read(uri: &str) -> Result<Vec<EmbeddedResource>>;
}

impl Item {
    /// Returns a document with this URI and name.
    #[must_use]
    pub fn new(uri: &str, name: &str) -> Self {
        let (uri, name) = (uri.to_owned(), name.to_owned());
        Self { uri, name, title: None, description: None, mime_type: None, size: None }
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_mime_type(self, mime_type: &str) -> Self {
        Self { mime_type: Some(mime_type.to_owned()), ..self }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(self, description: &str) -> Self {
        Self { description: Some(description.to_owned()), ..self }
    }
}

impl Template {
    /// Returns a template of document URIs, such as `note://{name}`.
    #[must_use]
    pub fn new(uri_template: &str, name: &str) -> Self {
        let (uri_template, name) = (uri_template.to_owned(), name.to_owned());
        Self { uri_template, name, title: None, description: None, mime_type: None }
    }

    /// Sets the media type that all documents have.
    #[must_use]
    pub fn with_mime_type(self, mime_type: &str) -> Self {
        Self { mime_type: Some(mime_type.to_owned()), ..self }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(self, description: &str) -> Self {
        Self { description: Some(description.to_owned()), ..self }
    }
}

/// Returns the content of a text document.
#[must_use]
pub fn text(mime_type: &str, text: &str) -> EmbeddedResource {
    EmbeddedResource {
        uri: String::new(),
        mime: Some(mime_type.to_owned()),
        body: ResourceBody::Text(text.to_owned()),
    }
}

/// Returns the content of a binary document.
#[must_use]
pub fn bytes(mime_type: &str, bytes: Vec<u8>) -> EmbeddedResource {
    EmbeddedResource {
        uri: String::new(),
        mime: Some(mime_type.to_owned()),
        body: ResourceBody::Bytes(bytes),
    }
}

/// Exports the documents of a type that implements [`Resources`](crate::resources::Resources).
/// Invoke it once, beside [`export!`](crate::export).
#[macro_export]
macro_rules! export_resources {
    ($resources:ty) => {
        const _: () = {
            #[allow(dead_code, reason = "only a component exports it")]
            struct Exported;

            impl $crate::resources::__Guest for Exported {
                fn describe() -> (::std::vec::Vec<$crate::resources::Item>, ::std::vec::Vec<$crate::resources::Template>) {
                    type Of = $resources;
                    (<Of as $crate::resources::Resources>::items(), <Of as $crate::resources::Resources>::templates())
                }

                fn read(
                    uri: ::std::string::String,
                ) -> ::std::result::Result<::std::vec::Vec<$crate::EmbeddedResource>, $crate::__private::ToolError> {
                    <$resources as $crate::resources::Resources>::read(&uri).map_err(::std::convert::Into::into)
                }
            }

            #[cfg(target_family = "wasm")]
            $crate::bindings::resourceful::export!(Exported with_types_in $crate::bindings::resourceful);
        };
    };
}
