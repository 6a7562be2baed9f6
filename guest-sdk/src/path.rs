//! Workspace paths that the host has checked.

use std::fmt;
use std::ops::Deref;
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Defines a path type with its schema.
macro_rules! path_type {
    ($(#[$about:meta])* $name:ident, $schema:tt) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Returns the path as text. An argument is always valid text, because it comes from
            /// JSON.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(path: String) -> Self {
                Self(path)
            }
        }

        impl From<&str> for $name {
            fn from(path: &str) -> Self {
                Self(path.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(path: $name) -> Self {
                path.0
            }
        }

        impl From<&$name> for String {
            fn from(path: &$name) -> Self {
                path.0.clone()
            }
        }

        impl Deref for $name {
            type Target = Path;

            fn deref(&self) -> &Path {
                Path::new(&self.0)
            }
        }

        impl AsRef<Path> for $name {
            fn as_ref(&self) -> &Path {
                self
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

path_type! {
    /// A path of the workspace, as an argument of a tool. Use [`ReadPath`] or [`WritePath`] where
    /// it is clear what the tool does with the file.
    ///
    /// Its schema has `"format": "workspace-path"`, by which the host checks the value before the
    /// call: it may be relative or absolute, and a path that leaves the workspace is refused. The
    /// tool always receives a relative path and can open it as it is. If the tool can change files,
    /// a question to the user lists the file as changed.
    ///
    /// The type itself checks nothing: in a test any string is accepted, and in the sandbox no path
    /// can leave the workspace.
    ///
    /// ```
    /// use palisade_guest::{Result, WorkspacePath, tool};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Args {
    ///     /// The file to measure.
    ///     path: WorkspacePath,
    /// }
    ///
    /// /// Says how many bytes a file has.
    /// #[tool(side_effects = "read")]
    /// fn size(args: Args) -> Result<String> {
    ///     let bytes = std::fs::metadata(&args.path)?.len();
    ///     Ok(format!("{} has {bytes} bytes", args.path))
    /// }
    /// ```
    WorkspacePath,
    { "type": "string", "format": "workspace-path" }
}

path_type! {
    /// A [`WorkspacePath`] that the tool only reads: a question to the user does not list the file
    /// as changed. The schema says so with `"x-access": "read"`.
    ///
    /// ```
    /// use palisade_guest::{Output, ReadPath, Result, WritePath, tool};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Args {
    ///     /// The file to copy.
    ///     from: ReadPath,
    ///     /// The file to create.
    ///     to: WritePath,
    /// }
    ///
    /// /// Copies a file.
    /// #[tool(side_effects = "write")]
    /// fn copy(args: Args) -> Result<Output> {
    ///     std::fs::copy(&args.from, &args.to)?;
    ///     Ok(Output::text("copied").modified(args.to))
    /// }
    /// ```
    ReadPath,
    { "type": "string", "format": "workspace-path", "x-access": "read" }
}

path_type! {
    /// A [`WorkspacePath`] of a file that the tool creates, changes or removes. The schema says so
    /// with `"x-access": "write"`.
    WritePath,
    { "type": "string", "format": "workspace-path", "x-access": "write" }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn workspace_path_derefs_to_path_and_str() {
        let path = WorkspacePath::from("src/lib.rs");
        assert_eq!(path.as_str(), "src/lib.rs");
        assert_eq!(path.extension().unwrap(), "rs");
        assert_eq!(format!("{path:>12}"), "  src/lib.rs");
        assert_eq!(
            (String::from(&path), String::from(path.clone())),
            ("src/lib.rs".to_owned(), "src/lib.rs".to_owned())
        );
        assert_eq!(AsRef::<Path>::as_ref(&path), Path::new("src/lib.rs"));
    }

    #[test]
    fn in_json_it_is_a_string() {
        let path: WorkspacePath = serde_json::from_str("\"a/b\"").unwrap();
        assert_eq!(serde_json::to_string(&path).unwrap(), "\"a/b\"");
        assert!(serde_json::from_str::<WorkspacePath>("1").is_err());
    }
}
