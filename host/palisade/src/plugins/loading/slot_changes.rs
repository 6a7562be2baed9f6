//! The changes of one slot between two scans.

use super::slot::Slot;
use crate::plugins::changes::Rescan;
use crate::plugins::plugin::is_same_code;

/// Records the changes of one slot.
pub(super) fn note_changes(rescan: &mut Rescan, before: Option<&Slot>, after: Option<&Slot>) {
    let stood = before.and_then(|slot| slot.standing.as_ref());
    match (stood, after.and_then(|slot| slot.standing.as_ref())) {
        (None, Some(new)) => rescan.loaded.push(new.clone()),
        (Some(old), Some(new)) if !is_same_code(old, new) => rescan.changed.push(new.clone()),
        (Some(old), None) => rescan.removed.push(old.clone()),
        _ => {}
    }
    let Some((after, rejected)) = after.and_then(|slot| Some((slot, slot.rejected.as_ref()?)))
    else {
        return;
    };
    let known = before.is_some_and(|before| {
        let other_bytes =
            before.latest.digest.zip(after.latest.digest).is_some_and(|(then, now)| then != now);
        before.rejected.as_ref() == Some(rejected) && !other_bytes
    });
    if !known {
        rescan.rejected.push(rejected.clone());
    }
}
