//! Why no guests came out: one enum, every refusal a single line that says what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The longest piece of another program's output that is quoted in a refusal, in characters.
const QUOTE: usize = 240;

/// Everything that can go wrong while guests are built.
#[derive(Debug)]
pub(crate) enum Error {
    /// The toolchain lacks the target, and making it here failed as well.
    NoTarget {
        /// What stopped the fallback.
        fallback: Box<Error>,
    },
    /// The fallback works with Debian's tools and this program is not there.
    NoProgram {
        /// The program that was looked for.
        program: String,
    },
    /// No apt source of this machine is a Debian mirror.
    NoMirror,
    /// Debian's archive keyring is not installed, so nothing from a mirror can be trusted.
    NoKeyring,
    /// The mirror has no `rust-src` of this compiler's version.
    NoSource {
        /// The version of the compiler, such as `1.95.0`.
        release: String,
        /// The versions the mirror offers.
        offered: Vec<String>,
    },
    /// A Debian package does not hold what it must.
    Incomplete {
        /// What was expected and not found.
        what: String,
    },
    /// `rustc -vV` says nothing that can be understood.
    Compiler {
        /// What is missing in its answer.
        missing: &'static str,
    },
    /// Another program failed.
    Command {
        /// What it was run for.
        what: String,
        /// The line of its output that explains it best.
        said: String,
    },
    /// The guests themselves do not compile; cargo has said why on standard error.
    Guests {
        /// The packages or examples that were asked for.
        names: Vec<String>,
    },
    /// Cargo succeeded, but a guest is not where it must be.
    Missing {
        /// Where the guest was expected.
        path: PathBuf,
    },
    /// The published package must carry the plugins, and this one does not.
    NoPlugins {
        /// Where they were expected.
        folder: PathBuf,
    },
    /// A file could not be read, written or moved.
    Io {
        /// What was being done.
        what: String,
        /// The system's own reason.
        source: io::Error,
    },
}

impl Error {
    /// The error of a file operation, `doing` being a verb such as `create`.
    pub(crate) fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { what: format!("cannot {doing} {}", path.display()), source }
    }

    /// The error of a program that ended badly; the line worth quoting is picked from its `output`.
    pub(crate) fn command(what: &str, output: &str) -> Self {
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
            Self::NoKeyring => f.write_str("Debian's archive keyring (debian-archive-keyring) is not installed"),
            Self::NoSource { release, offered } if offered.is_empty() => {
                write!(f, "the mirror has no rust-src, and {release} is needed")
            }
            Self::NoSource { release, offered } => {
                write!(f, "the mirror has no rust-src {release}, only {}", offered.join(", "))
            }
            Self::Incomplete { what } => write!(f, "Debian's packages hold no {what}"),
            Self::Compiler { missing } => write!(f, "`rustc -vV` does not say its {missing}"),
            Self::Command { what, said } => write!(f, "{what} failed: {said}"),
            Self::Guests { names } => {
                write!(f, "these guests do not compile for wasm32-wasip2, see below: {}", names.join(", "))
            }
            Self::Missing { path } => write!(
                f,
                "cargo built the guests but {} is missing: a guest is a library of crate type cdylib",
                path.display()
            ),
            Self::NoPlugins { folder } => {
                write!(f, "neither the sources of the plugins nor built ones are there: {} is empty", folder.display())
            }
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

/// The first line that announces an error, else the last line that says anything, cut to [`QUOTE`].
fn telling_line(output: &str) -> String {
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    let announced = lines().find(|line| line.starts_with("E: ") || line.starts_with("error"));
    let line = announced.or_else(|| lines().next_back()).unwrap_or("it said nothing");
    line.chars().take(QUOTE).collect()
}
