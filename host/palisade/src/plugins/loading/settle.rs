//! Assigns names to plugins: each plugin gets its names when it is ready and loses them to an
//! earlier file that claims them later. The final result does not depend on timing.

use super::claims::check_offer;
use super::slot::{Latest, Slot};
use super::slot_changes::note_changes;
use super::work::{Outcome, Work, lock};
use crate::plugins::candidate::Candidate;
use crate::plugins::changes::Rescan;
use crate::plugins::plugin::Plugin;
use crate::plugins::rejected::RegistrationError;
use crate::plugins::reserved;
use crate::registry::{ListingPosition, NameClaim};

impl Work {
    /// Registers the outcome of one candidate.
    pub(super) fn decide(&self, index: usize, candidate: &Candidate, outcome: Outcome) {
        let latest = match outcome {
            Ok(prepared) => Latest::from_plugin(self.plugin(candidate, prepared)),
            Err(error) => {
                let reason = self.task.rejection(candidate, &error);
                Latest {
                    file_digest: None,
                    digest: error.lasting_digest(None),
                    plugin: Err(reason),
                }
            }
        };
        let _settling = lock(&self.settling);
        // The approval may have been revoked since the plugin was made.
        let latest = self.renewed(candidate, latest);
        let registered = match &latest.plugin {
            Ok(plugin) => {
                plugin.check_offered().and_then(|()| self.register(index, candidate, plugin))
            }
            Err(reason) => Err(reason.clone().into()),
        };
        // No other plugin can claim the names of shipped plugins.
        let clashes = latest.plugin.is_ok() && registered.is_err() && !candidate.is_shipped();
        let slot = Slot::new(candidate, latest, registered);
        lock(&self.decided).insert(index, slot.clone());
        if clashes && self.has_standing_behind(index) {
            self.settle(index);
        } else {
            slot.plugin_changes().for_each(|change| (self.task.on_change)(change));
        }
    }

    fn register(
        &self,
        index: usize,
        candidate: &Candidate,
        plugin: &Plugin,
    ) -> Result<(), RegistrationError> {
        let registry = &self.task.registry;
        {
            // As with tools, the first plugin keeps a document or prompt.
            let decided = lock(&self.decided);
            check_offer(plugin, decided.values().filter_map(|slot| slot.standing.as_ref()))?;
        }
        let position = if candidate.is_shipped() {
            ListingPosition::Shipped(index)
        } else {
            reserved::check(self.task.sources.shipped, plugin.tools(), registry)?;
            ListingPosition::File(index)
        };
        registry
            .register_all(position, &plugin.tools)
            .map(|_| ())
            .map_err(RegistrationError::name_taken)
    }

    fn has_standing_behind(&self, index: usize) -> bool {
        lock(&self.decided).range(index..).any(|(_, slot)| slot.standing.is_some())
    }

    /// Reassigns the names of all ready files, in order and in one step. The file at `new` has not
    /// been announced yet.
    fn settle(&self, new: usize) {
        let before = lock(&self.decided).clone();
        let shipped = before.values().filter(|slot| slot.candidate.is_shipped());
        let mut claiming: Vec<Plugin> = shipped.filter_map(|slot| slot.standing.clone()).collect();
        let claims: Vec<Option<Result<Plugin, RegistrationError>>> = (0..self.candidates.len())
            .map(|index| {
                let slot = before.get(&index).filter(|slot| !slot.candidate.is_shipped())?;
                let claim = self.claim(slot, &claiming);
                claiming.extend(claim.as_ref().ok().cloned());
                Some(claim)
            })
            .collect();
        let name_claims: Vec<Vec<NameClaim<'_>>> = claims
            .iter()
            .enumerate()
            .map(|(index, claim)| name_claims(claim.as_ref(), before.get(&index)))
            .collect();
        let outcomes = self.task.registry.set_files(&name_claims);
        drop(name_claims);
        let mut changes = Rescan::default();
        let mut after = before.clone();
        for (index, (claim, outcome)) in claims.into_iter().zip(outcomes).enumerate() {
            let Some(claim) = claim else { continue };
            let Some(slot) = after.get_mut(&index) else { continue };
            let registered = match (claim, outcome.granted, outcome.refused.first()) {
                (Err(reason), ..) => Err(reason),
                (Ok(_), None, Some(duplicate)) => Err(RegistrationError::name_taken(duplicate)),
                (Ok(_), ..) => Ok(()),
            };
            *slot = Slot::new(&slot.candidate.clone(), slot.latest.clone(), registered);
            note_changes(&mut changes, before.get(&index).filter(|_| index != new), Some(slot));
        }
        *lock(&self.decided) = after;
        changes.plugin_changes().for_each(|change| (self.task.on_change)(change));
    }

    /// Returns the plugin that a file claims names for, or the reason why it cannot.
    fn claim(&self, slot: &Slot, before: &[Plugin]) -> Result<Plugin, RegistrationError> {
        let plugin = slot.latest.plugin.clone().map_err(RegistrationError::from)?;
        plugin.check_offered()?;
        reserved::check(self.task.sources.shipped, plugin.tools(), &self.task.registry)?;
        check_offer(&plugin, before.iter())?;
        Ok(plugin)
    }
}

/// Returns the claims of a file. Unregistered tools of a standing plugin do not return.
fn name_claims<'a>(
    claim: Option<&'a Result<Plugin, RegistrationError>>,
    slot: Option<&Slot>,
) -> Vec<NameClaim<'a>> {
    let Some(Ok(plugin)) = claim else { return Vec::new() };
    match slot.is_some_and(|slot| slot.standing.is_some()) {
        true => vec![NameClaim::Standing(&plugin.tools)],
        false => vec![NameClaim::New(&plugin.tools)],
    }
}
