//! The parts of a server for its operator: the journal, the API and the console.

use crate::cli::args::{Common, Serve as Args};
use crate::cli::exit::Failure;
use crate::cli::{journal, output, setup};
use palisade::{Host, HostBuilder};
use palisade_server::{Attached, Server, Settings, Wiring};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The parts for the operator, before the host exists.
pub(in crate::cli) struct Operated {
    wiring: Wiring,
    hidden: Vec<PathBuf>,
}

/// Opens the journal, unless neither a console nor a journal is wanted.
pub(super) fn wiring(
    common: &Common,
    args: &Args,
    has_console: bool,
) -> Result<Option<Operated>, Failure> {
    if !has_console && args.journal.is_none() {
        return Ok(None);
    }
    let settings = setup::settings(common)?.journal;
    let place = journal::Place::of(args.journal.as_deref(), &settings);
    let attached = if args.console { Attached::Always } else { Attached::WhileWatched };
    let (opened, place) = place.open(&settings)?;
    if let Some(file) = place.unusual() {
        output::note(&format!("the journal is {}: see `palisade log --journal`", file.display()));
    }
    let wiring = Wiring::new(opened, journal::recording(&settings), attached);
    Ok(Some(Operated { wiring, hidden: place.hidden() }))
}

impl Operated {
    /// Gives a host the recorder and the confirmer, and hides the journal from its tools.
    pub(in crate::cli) fn wire(&self, host: HostBuilder) -> HostBuilder {
        self.hidden.iter().fold(self.wiring.wire(host), HostBuilder::deny_read)
    }

    /// Returns the API and the console of the host, whose calls have this time at most.
    pub(super) fn server(&self, host: &Arc<Host>, call_time: Option<Duration>) -> Server {
        let settings = Settings::default().version(env!("CARGO_PKG_VERSION")).call_time(call_time);
        Server::new(host.clone(), self.wiring.clone(), settings)
    }

    /// Writes what the journal still holds in memory.
    pub(super) fn close(&self) {
        self.wiring.journal().clone().close();
    }
}
