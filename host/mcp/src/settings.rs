//! The settings of a server.

use std::time::Duration;

/// The server settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The timeout of each call, at most 600 s. Each tool's own timeout applies if `None`.
    pub timeout: Option<Duration>,
    /// How to reach the console where calls wait for an answer, such as its URL or the command that
    /// opens one. Named in the refusal of a call that nobody could be asked about.
    pub console: Option<String>,
    /// Whether tools may be added, changed and removed while clients are connected.
    pub changes: Changes,
    /// The parties that may answer the host's question before a call.
    pub confirmed_by: ConfirmedBy,
}

/// The parties that may answer the host's question before a call. A plugin's own questions (`ask`)
/// always go to the client, because their answers grant no rights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConfirmedBy {
    /// The client, with a form, and the host's confirmer. The first answer wins.
    #[default]
    ClientOrHost,
    /// The host's confirmer only. The client gets no form, and no answer of it counts.
    HostOnly,
}

/// Whether the tools of a server change while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Changes {
    /// The tools that are loaded at the start stay as they are.
    #[default]
    Never,
    /// The plugin directories are watched.
    Watched,
}
