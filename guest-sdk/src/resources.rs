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

/// What a plugin offers. The lists are asked for once, when the plugin is loaded, and are always the same; reading runs as a tool of class `read` does.
pub trait Resources {
    /// The documents that each have a name of their own.
    #[must_use]
    fn items() -> Vec<Item> {
        Vec::new()
    }

    /// Those whose names are made by a pattern.
    #[must_use]
    fn templates() -> Vec<Template> {
        Vec::new()
    }

    /// Reads a document that is listed, or that fits a template. The host writes its name into the answer.
    ///
    /// # Errors
    /// [`Error::not_found`](crate::Error::not_found) where there is none of this name.
    fn read(uri: &str) -> Result<Vec<EmbeddedResource>>;
}

impl Item {
    /// A document of this name.
    #[must_use]
    pub fn new(uri: &str, name: &str) -> Self {
        let (uri, name) = (uri.to_owned(), name.to_owned());
        Self { uri, name, title: None, description: None, mime_type: None, size: None }
    }

    /// With its media type.
    #[must_use]
    pub fn with_mime_type(self, mime_type: &str) -> Self {
        Self { mime_type: Some(mime_type.to_owned()), ..self }
    }

    /// With what it is.
    #[must_use]
    pub fn with_description(self, description: &str) -> Self {
        Self { description: Some(description.to_owned()), ..self }
    }
}

impl Template {
    /// Documents whose names this pattern makes, such as `note://{name}`.
    #[must_use]
    pub fn new(uri_template: &str, name: &str) -> Self {
        let (uri_template, name) = (uri_template.to_owned(), name.to_owned());
        Self { uri_template, name, title: None, description: None, mime_type: None }
    }

    /// With the media type that all have.
    #[must_use]
    pub fn with_mime_type(self, mime_type: &str) -> Self {
        Self { mime_type: Some(mime_type.to_owned()), ..self }
    }

    /// With what they are.
    #[must_use]
    pub fn with_description(self, description: &str) -> Self {
        Self { description: Some(description.to_owned()), ..self }
    }
}

/// Contents that are text.
#[must_use]
pub fn text(mime_type: &str, text: &str) -> EmbeddedResource {
    EmbeddedResource { uri: String::new(), mime: Some(mime_type.to_owned()), body: ResourceBody::Text(text.to_owned()) }
}

/// Contents that are bytes.
#[must_use]
pub fn bytes(mime_type: &str, bytes: Vec<u8>) -> EmbeddedResource {
    EmbeddedResource { uri: String::new(), mime: Some(mime_type.to_owned()), body: ResourceBody::Bytes(bytes) }
}

/// Makes a plugin that offers the documents of a type that implements [`Resources`](crate::resources::Resources). Call it once, beside
/// [`export!`](crate::export).
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
