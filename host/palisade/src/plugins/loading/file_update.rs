//! The update of one file in a scan: the plugins that claim its names, and the result.

use super::slot::{Latest, Slot};
use crate::plugins::candidate::Candidate;
use crate::plugins::plugin::{Plugin, is_same_code};
use crate::plugins::rejected::{RegistrationError, Rejected};
use crate::registry::{ClaimOutcome, NameClaim};

/// The end of a rejection's reason if the previous plugin stays.
const STAYS: &str = "; the one loaded before stays";

/// The new and the previous state of a file.
pub(super) struct FileUpdate {
    pub(super) candidate: Candidate,
    pub(super) before: Option<Slot>,
    pub(super) latest: Latest,
    /// The new plugin, or the reason why there is none.
    pub(super) new: Result<Plugin, RegistrationError>,
    /// The previous plugin, if it can stay.
    pub(super) standing: Option<Plugin>,
    /// The reason why the previous plugin cannot stay.
    pub(super) lost: Option<String>,
}

impl FileUpdate {
    fn stays(&self) -> bool {
        matches!((&self.new, &self.standing), (Ok(new), Some(standing)) if is_same_code(new, standing))
    }

    pub(super) fn plugins(&self) -> impl Iterator<Item = &Plugin> {
        self.new.iter().filter(|_| !self.stays()).chain(&self.standing)
    }

    /// Returns the claims of the file, the new plugin first.
    pub(super) fn claims(&self) -> Vec<NameClaim<'_>> {
        let new =
            self.new.iter().filter(|_| !self.stays()).map(|plugin| NameClaim::New(&plugin.tools));
        new.chain(self.standing.iter().map(|plugin| NameClaim::Standing(&plugin.tools))).collect()
    }

    pub(super) fn end(self, outcome: &ClaimOutcome) -> (Option<Slot>, Slot) {
        let standing = outcome.granted.and_then(|number| self.plugins().nth(number)).cloned();
        let reason = match &self.new {
            Err(reason) => Some(reason.clone()),
            Ok(new) if standing.as_ref().is_some_and(|standing| is_same_code(new, standing)) => {
                None
            }
            Ok(_) => outcome.refused.first().map(RegistrationError::name_taken),
        };
        let nameless = outcome.refused.last().filter(|_| self.standing.is_some() && !self.stays());
        let end = match (&standing, self.lost.clone().or(nameless.map(ToString::to_string))) {
            (Some(_), _) => STAYS.to_owned(),
            (None, Some(lost)) => format!("; the one loaded before cannot stay: {lost}"),
            (None, None) => String::new(),
        };
        let file = self.candidate.file();
        let rejected = reason.map(|RegistrationError { reason, cause }| Rejected {
            file,
            reason: reason + &end,
            cause,
        });
        (self.before, Slot { candidate: self.candidate, latest: self.latest, standing, rejected })
    }
}
