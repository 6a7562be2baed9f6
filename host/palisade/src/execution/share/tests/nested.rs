//! Tests that groups of owners bound each other: of a plugin, of a caller, and of a session.

use super::*;

/// Returns the owner of a plugin for a session of a caller, each given by a number. Tests with
/// different names share no group.
pub(super) fn member(test: &str, (plugin, caller, session): (u32, u32, u32)) -> Owner {
    let name = |text: String| Digest::of(format!("{test}: {text}").as_bytes());
    let groups = [
        (GroupKind::Caller, format!("{caller}")),
        (GroupKind::Plugin, format!("{plugin}")),
        (GroupKind::Session, format!("{session} of {caller}")),
        (GroupKind::CallerOfPlugin, format!("{plugin} for {caller}")),
    ];
    let groups = groups.map(|(kind, text)| Group::named(kind, name(text)));
    Owner::new(name(format!("{plugin} for {session} of {caller}")), Groups::new(groups))
}

/// Takes all that these owners get, one after the other.
fn fill(pool: &Pool, owners: impl IntoIterator<Item = Owner>) -> Vec<Vec<Grant>> {
    owners.into_iter().map(|owner| all(&pool.share_of(&owner))).collect()
}

fn counts(held: &[Vec<Grant>]) -> Vec<usize> {
    held.iter().map(Vec::len).collect()
}

/// Returns how many units an owner finds.
fn found(pool: &Pool, owner: &Owner) -> usize {
    all(&pool.share_of(owner)).len()
}

#[test]
fn owner_alone_gets_half_whatever_its_groups() {
    let pool = Pool::new(100);
    assert_eq!(found(&pool, &member("alone", (1, 1, 1))), 50);
}

#[test]
fn plugin_of_many_callers_leaves_a_fifth_to_other_plugins() {
    let of = |plugin, caller| member("plugin", (plugin, caller, 1));
    let pool = Pool::new(1000);
    let held = fill(&pool, (0..100).map(|caller| of(1, caller)));
    assert_eq!(counts(&held[..4]), [500, 250, 45, 4]);
    assert_eq!(pool.held(), 800, "and the others a first unit each, while there are some");
    assert_eq!(found(&pool, &of(2, 200)), 100, "half of what is free");
    assert!(found(&pool, &of(2, 0)) > 10, "a caller that holds half of the pool finds some, too");
    assert_eq!(found(&pool, &of(1, 200)), 0);
}

#[test]
fn caller_of_many_plugins_and_sessions_leaves_a_fifth_to_other_callers() {
    let pool = Pool::new(1000);
    let of = |plugin, caller, session| member("caller", (plugin, caller, session));
    let held = fill(&pool, (0..100).map(|number| of(number, 1, number)));
    assert_eq!((counts(&held[..3]), pool.held()), (vec![500, 250, 45], 800));
    for plugin in [0, 1, 200] {
        assert!(found(&pool, &of(plugin, 2, 1)) > 10, "{plugin}");
    }
}

#[test]
fn caller_of_many_sessions_leaves_its_plugin_to_other_callers() {
    let pool = Pool::new(1000);
    let of = |caller, session| member("sessions", (1, caller, session));
    let held = fill(&pool, (0..100).map(|session| of(1, session)));
    assert!((700..715).contains(&pool.held()), "{}", pool.held());
    assert!(held[1].len() > 100, "a second session finds some");
    assert!(found(&pool, &of(2, 1)) > 20);
    // Nor does the caller keep its other plugins from itself.
    assert!(found(&pool, &member("sessions", (2, 1, 200))) > 20);
}

#[test]
fn session_of_many_plugins_leaves_some_to_another_session_of_its_caller() {
    let pool = Pool::new(1000);
    let of = |plugin, session| member("session", (plugin, 1, session));
    let _held = fill(&pool, (0..100).map(|plugin| of(plugin, 1)));
    assert_eq!(pool.held(), 750);
    for plugin in [0, 1, 200] {
        assert!(found(&pool, &of(plugin, 2)) > 10, "{plugin}");
    }
}

#[test]
fn refusal_names_what_the_group_holds() {
    let pool = Pool::new(100);
    let _held = fill(&pool, (0..100).map(|caller| member("refusal", (1, caller, 1))));
    let refused = pool.share_of(&member("refusal", (1, 200, 1))).try_take(1).err();
    assert_eq!(refused, Some(Full { bound: 80 }));
}

/// Queues a request of each owner, and returns the requests.
fn wait(pool: &Pool, owners: impl IntoIterator<Item = Owner>) -> Vec<Acquire> {
    let woken = Arc::new(Woken::default());
    let request = |owner| {
        let mut request = pool.share_of(&owner).take(1);
        assert!(poll(&mut request, &woken).is_pending());
        request
    };
    owners.into_iter().map(request).collect()
}

/// Returns the indices of the requests in the order in which one unit comes to each of them.
fn order(mut waits: Vec<Acquire>, unit: Grant) -> Vec<usize> {
    let woken = Arc::new(Woken::default());
    let mut order = Vec::new();
    let mut left: Vec<usize> = (0..waits.len()).collect();
    drop(unit);
    while let Some(at) = left.iter().position(|index| {
        let polled = poll(&mut waits[*index], &woken);
        polled.map(drop).is_ready()
    }) {
        order.push(left.remove(at));
    }
    order
}

#[test]
fn waiting_owner_is_served_before_those_whose_groups_were_served_since() {
    let of = |plugin, caller| member("order", (plugin, caller, 1));
    for busy in [|number| (1, number), |number| (number, 1)] {
        let pool = Pool::new(1);
        let unit = pool.share_of(&of(50, 50)).try_take(1).unwrap();
        let busy = (10..20).map(busy).map(|(plugin, caller)| of(plugin, caller));
        let waits = wait(&pool, busy.chain([of(2, 2), of(3, 3)]));
        assert_eq!(order(waits, unit)[..3], [0, 10, 11]);
    }
}

#[test]
fn callers_of_one_plugin_are_served_in_turn() {
    let of = |caller, session| member("turn", (1, caller, session));
    let pool = Pool::new(1);
    let unit = pool.share_of(&of(50, 50)).try_take(1).unwrap();
    let busy = (10..20).map(|session| of(1, session));
    let waits = wait(&pool, busy.chain([of(2, 1), of(3, 1)]));
    assert_eq!(order(waits, unit)[..3], [0, 10, 11]);
}
