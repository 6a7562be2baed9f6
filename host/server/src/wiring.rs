//! The parts of a server that its host needs: they are made before the host.

use crate::confirmations::{Attached, OperatorConfirmer};
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::recorder::{Recorder, RecorderSettings};
use palisade::HostBuilder;
use std::sync::Arc;

/// The parts of a server that its host needs: the journal with its recorder, the confirmer and the
/// metrics. Clones share them.
#[derive(Clone)]
pub struct Wiring {
    journal: Journal,
    recorder: Arc<Recorder>,
    pub(crate) confirmer: Arc<OperatorConfirmer>,
    pub(crate) metrics: Metrics,
}

impl Wiring {
    /// Creates the parts.
    #[must_use]
    pub fn new(journal: Journal, recording: RecorderSettings, attached: Attached) -> Self {
        let recorder = Recorder::new(journal.clone(), recording);
        let confirmer = OperatorConfirmer::new(attached).recording(recorder.clone());
        Self { journal, recorder, confirmer: Arc::new(confirmer), metrics: Metrics::default() }
    }

    /// Gives a host these parts: its confirmer, its recorder, and subscribers of its events.
    #[must_use]
    pub fn wire(&self, host: HostBuilder) -> HostBuilder {
        host.confirmer(self.confirmer.clone())
            .subscriber(self.recorder.clone())
            .subscriber(self.confirmer.clone())
            .recorder(self.metrics.counting(self.recorder.clone()))
    }

    /// Returns the journal.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns the recorder.
    #[must_use]
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// Returns the confirmer.
    #[must_use]
    pub fn confirmer(&self) -> &Arc<OperatorConfirmer> {
        &self.confirmer
    }
}

impl std::fmt::Debug for Wiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wiring").field("confirmer", &self.confirmer).finish_non_exhaustive()
    }
}
