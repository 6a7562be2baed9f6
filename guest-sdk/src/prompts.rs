//! Prompts that a plugin offers to the users of clients, besides its tools: `export_prompts!`.
//!
//! ```
//! use palisade_guest::prompts::{Message, Prompt, Prompts};
//! use palisade_guest::{Error, Result};
//!
//! struct Mine;
//!
//! impl Prompts for Mine {
//!     fn prompts() -> Vec<Prompt> {
//!         let review = Prompt::new("review", "Asks for a review of a file.");
//!         vec![review.with_argument("path", "The file.", true)]
//!     }
//!
//!     fn get(name: &str, arguments: &[(String, String)]) -> Result<Vec<Message>> {
//!         match (name, arguments) {
//!             ("review", [(_, path)]) => Ok(vec![Message::user(format!("Review `{path}`."))]),
//!             _ => Err(Error::not_found(format!("there is no prompt {name}"))),
//!         }
//!     }
//! }
//!
//! palisade_guest::export_prompts!(Mine);
//! # fn main() {}
//! ```

use crate::{Content, Result};

#[doc(hidden)]
pub use crate::bindings::prompting::exports::palisade::tool::prompts::Guest as __Guest;
pub use crate::bindings::prompting::exports::palisade::tool::prompts::{
    Argument, Message, Prompt, Role,
};

/// The prompts of a plugin. The list is queried once, when the plugin is loaded, and must be
/// constant; the other functions run as a tool of class `read`.
pub trait Prompts {
    /// Returns the prompts.
    #[must_use]
    fn prompts() -> Vec<Prompt>;

    /// Returns the messages of one prompt. All required arguments are present.
    ///
    /// # Errors
    /// The reason why there are no messages.
    fn get(name: &str, arguments: &[(String, String)]) -> Result<Vec<Message>>;

    /// Returns completions for an argument, at most 100.
    #[must_use]
    fn complete(prompt: &str, argument: &str, so_far: &str) -> Vec<String> {
        let _ = (prompt, argument, so_far);
        Vec::new()
    }
}

impl Prompt {
    /// Returns a prompt without arguments.
    #[must_use]
    pub fn new(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: None,
            description: description.to_owned(),
            arguments: Vec::new(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn with_argument(mut self, name: &str, description: &str, required: bool) -> Self {
        self.arguments.push(Argument {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            required,
        });
        self
    }
}

impl Message {
    /// Returns a message of the user.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: Content::Text(text.into()) }
    }

    /// Returns a message of the model.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: Content::Text(text.into()) }
    }
}

/// Exports the prompts of a type that implements [`Prompts`](crate::prompts::Prompts). Invoke it
/// once, beside [`export!`](crate::export).
#[macro_export]
macro_rules! export_prompts {
    ($prompts:ty) => {
        const _: () = {
            #[allow(dead_code, reason = "only a component exports it")]
            struct Exported;

            impl $crate::prompts::__Guest for Exported {
                fn describe() -> ::std::vec::Vec<$crate::prompts::Prompt> {
                    <$prompts as $crate::prompts::Prompts>::prompts()
                }

                fn get(
                    name: ::std::string::String,
                    arguments: ::std::vec::Vec<(::std::string::String, ::std::string::String)>,
                ) -> ::std::result::Result<::std::vec::Vec<$crate::prompts::Message>, $crate::__private::ToolError>
                {
                    <$prompts as $crate::prompts::Prompts>::get(&name, &arguments).map_err(::std::convert::Into::into)
                }

                fn complete(
                    prompt: ::std::string::String,
                    argument: ::std::string::String,
                    so_far: ::std::string::String,
                ) -> ::std::vec::Vec<::std::string::String> {
                    <$prompts as $crate::prompts::Prompts>::complete(&prompt, &argument, &so_far)
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::prompting::export!(Exported with_types_in $crate::bindings::prompting);
        };
    };
}
