//! Assigns names to plugins: each plugin gets its names when it is ready and loses them to an
//! earlier file that claims them later. The final result does not depend on timing.

use super::slot::{Latest, Slot};
use super::{Outcome, Work, lock, note};
use crate::plugins::candidate::{Candidate, Refused};
use crate::plugins::{Plugin, Refusal, Rescan, reserved};
use crate::registry::{Offer, Place};

impl Work {
    /// Registers the outcome of one candidate.
    pub(super) fn decide(&self, index: usize, candidate: &Candidate, outcome: Outcome) {
        let latest = match outcome {
            Ok(prepared) => Latest::from_plugin(self.plugin(candidate, prepared)),
            Err(Refused { reason, digest }) => {
                Latest { file_digest: None, digest, plugin: Err(reason) }
            }
        };
        let _settling = lock(&self.settling);
        let registered = match &latest.plugin {
            Ok(plugin) => self.register(index, candidate, plugin),
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
    ) -> Result<(), Refusal> {
        let registry = &self.task.registry;
        {
            // As with tools, the first plugin keeps a document or prompt.
            let decided = lock(&self.decided);
            check_offer(plugin, decided.values().filter_map(|slot| slot.standing.as_ref()))?;
        }
        let place = if candidate.is_shipped() {
            Place::Shipped(index)
        } else {
            reserved::check(self.task.sources.shipped, plugin.definitions(), registry)?;
            Place::File(index)
        };
        registry.register_plugin(place, &plugin.tools).map(|_| ()).map_err(Refusal::taken)
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
        let claims: Vec<Option<Result<Plugin, Refusal>>> = (0..self.candidates.len())
            .map(|index| {
                let slot = before.get(&index).filter(|slot| !slot.candidate.is_shipped())?;
                let claim = self.claim(slot, &claiming);
                claiming.extend(claim.as_ref().ok().cloned());
                Some(claim)
            })
            .collect();
        let offers: Vec<Vec<Offer<'_>>> = claims
            .iter()
            .enumerate()
            .map(|(index, claim)| offers(claim.as_ref(), before.get(&index)))
            .collect();
        let granted = self.task.registry.set_files(&offers);
        drop(offers);
        let mut changes = Rescan::default();
        let mut after = before.clone();
        for (index, (claim, granted)) in claims.into_iter().zip(granted).enumerate() {
            let (Some(claim), Some(slot)) = (claim, after.get_mut(&index)) else { continue };
            let registered = match (claim, granted.offer, granted.refused.first()) {
                (Err(reason), ..) => Err(reason),
                (Ok(_), None, Some(duplicate)) => Err(Refusal::taken(duplicate)),
                (Ok(_), ..) => Ok(()),
            };
            *slot = Slot::new(&slot.candidate.clone(), slot.latest.clone(), registered);
            note(&mut changes, before.get(&index).filter(|_| index != new), Some(slot));
        }
        *lock(&self.decided) = after;
        changes.plugin_changes().for_each(|change| (self.task.on_change)(change));
    }

    /// Returns the plugin that a file claims names for, or the reason why it cannot.
    fn claim(&self, slot: &Slot, before: &[Plugin]) -> Result<Plugin, Refusal> {
        let plugin = slot.latest.plugin.clone().map_err(Refusal::from)?;
        reserved::check(self.task.sources.shipped, plugin.definitions(), &self.task.registry)?;
        check_offer(&plugin, before.iter())?;
        Ok(plugin)
    }
}

/// Returns the offers of a file. Unregistered tools of a standing plugin do not return.
fn offers<'a>(claim: Option<&'a Result<Plugin, Refusal>>, slot: Option<&Slot>) -> Vec<Offer<'a>> {
    let Some(Ok(plugin)) = claim else { return Vec::new() };
    match slot.is_some_and(|slot| slot.standing.is_some()) {
        true => vec![Offer::Standing(&plugin.tools)],
        false => vec![Offer::New(&plugin.tools)],
    }
}

/// Returns an error if another plugin already has one of the plugin's documents or prompts.
pub(super) fn check_offer<'a>(
    plugin: &Plugin,
    mut others: impl Iterator<Item = &'a Plugin>,
) -> Result<(), Refusal> {
    let clash = |other: &Plugin| {
        Some((
            plugin.offer().clash(other.offer())?,
            other.name().to_owned(),
            other.file().to_owned(),
        ))
    };
    match others.find_map(clash) {
        Some((claim, owner, file)) => Err(Refusal::taken(format_args!(
            "it offers {claim}, which the plugin `{owner}` does already, in {file}"
        ))),
        None => Ok(()),
    }
}
