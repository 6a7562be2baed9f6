//! The errors of finding or making the target. Each message is one line with advice.

use std::fmt;
use std::io;
use std::path::Path;

/// Maximum length of a quote from another program's output, in characters.
const QUOTE: usize = 240;

/// An error of finding or making the target.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The toolchain lacks the target, and the fallback failed.
    NoTarget {
        /// The error of the fallback.
        fallback: Box<Error>,
    },
    /// The fallback needs a Debian tool that is not installed.
    NoProgram {
        /// The missing program.
        program: String,
    },
    /// No apt source of this machine is a Debian mirror.
    NoMirror,
    /// Debian's archive keyring is not installed, so that no mirror can be verified.
    NoKeyring,
    /// The mirror has no `rust-src` of this compiler's version.
    NoSource {
        /// The version of the compiler, such as `1.95.0`.
        release: String,
        /// The versions that the mirror offers.
        offered: Vec<String>,
    },
    /// A Debian package lacks an expected file.
    Incomplete {
        /// The missing file.
        what: String,
    },
    /// The output of `rustc -vV` cannot be parsed.
    Compiler {
        /// The missing field.
        missing: &'static str,
    },
    /// Another program failed.
    Command {
        /// The purpose of the program.
        what: String,
        /// The most relevant line of its output.
        said: String,
    },
    /// A file operation failed.
    Io {
        /// The operation.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

impl Error {
    /// Returns the error of a file operation; `doing` is a verb such as `create`.
    #[must_use]
    pub fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { what: format!("cannot {doing} {}", path.display()), source }
    }

    /// Returns the error of a failed program, with the most relevant line of its `output`.
    #[must_use]
    pub fn command(what: &str, output: &str) -> Self {
        Self::Command { what: what.to_owned(), said: telling_line(output) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTarget { fallback } => write!(
                f,
                "the target wasm32-wasip2 is not installed: run `rustup target add wasm32-wasip2` \
                 (making it from Debian's packages failed: {fallback})"
            ),
            Self::NoProgram { program } => write!(f, "there is no {program} on this machine"),
            Self::NoMirror => f.write_str("no apt source of this machine is a Debian mirror"),
            Self::NoKeyring => {
                f.write_str("Debian's archive keyring (debian-archive-keyring) is not installed")
            }
            Self::NoSource { release, offered } if offered.is_empty() => {
                write!(f, "the mirror has no rust-src, and {release} is needed")
            }
            Self::NoSource { release, offered } => {
                write!(f, "the mirror has no rust-src {release}, only {}", offered.join(", "))
            }
            Self::Incomplete { what } => write!(f, "Debian's packages hold no {what}"),
            Self::Compiler { missing } => write!(f, "`rustc -vV` does not say its {missing}"),
            Self::Command { what, said } => write!(f, "{what} failed: {said}"),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoTarget { fallback } => Some(fallback.as_ref()),
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Returns the first line that announces an error, or else the last line that is not blank, cut to
/// [`QUOTE`].
fn telling_line(output: &str) -> String {
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    let announced = lines().find(|line| line.starts_with("E: ") || line.starts_with("error"));
    let line = announced.or_else(|| lines().next_back()).unwrap_or("it said nothing");
    line.chars().take(QUOTE).collect()
}
