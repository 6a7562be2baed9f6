//! The rule by which pools and memory are shared out.

use super::group::GroupKind;

/// Returns the most that an owner may hold while this much is free; at least `floor`.
fn threshold(free: u64, floor: u64) -> u64 {
    free.max(floor)
}

/// Returns the most that an owner may hold while this much is free, within its groups. `groups`
/// yields what each of them would hold. An owner, or a group, that would hold at most `floor` gets
/// it.
///
/// # Errors
///
/// The amount that a group would hold, if it is more than the threshold of the group.
pub(crate) fn most_within(
    groups: impl Iterator<Item = (GroupKind, u64)>,
    free: u64,
    floor: u64,
) -> Result<u64, u64> {
    let mut most = threshold(free, floor);
    // A group within the floor bounds no owner, because none of its owners holds more than the
    // group.
    for (kind, held) in groups.filter(|(_, held)| *held > floor) {
        let of_group = kind.most(free);
        if held > of_group {
            return Err(held);
        }
        // Twice what the group has left, so that a later owner finds some of it.
        let left = of_group.saturating_sub(held).saturating_mul(2);
        most = most.min(threshold(left, floor));
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_alone_in_its_groups_gets_all_that_is_free() {
        let kinds =
            [GroupKind::CallerOfPlugin, GroupKind::Session, GroupKind::Caller, GroupKind::Plugin];
        let alone = |held: u64| kinds.into_iter().map(move |kind| (kind, held));
        assert_eq!(most_within(alone(50), 50, 1), Ok(50));
        assert_eq!(most_within(std::iter::empty(), 50, 60), Ok(60));
    }

    #[test]
    fn group_at_its_threshold_refuses_all_but_the_floor() {
        let plugin = |held: u64| std::iter::once((GroupKind::Plugin, held));
        assert_eq!(most_within(plugin(80), 20, 1), Ok(1), "a first unit");
        assert_eq!(most_within(plugin(81), 20, 1), Err(81));
        assert_eq!(most_within(plugin(81), 20, 81), Ok(81));
        assert_eq!(most_within(plugin(75), 20, 1), Ok(10), "twice what is left");
    }
}
