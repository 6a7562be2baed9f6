//! The memory account: the limits of a call and of all calls, the owner's share, and releases.

use super::super::charge::Charge;
use super::*;
use crate::execution::owner::client_shares;
use crate::execution::session_shares::SessionShares;
use crate::tool::Digest;

fn account(process: &'static Counter) -> Account {
    let limits = MemoryLimits { call: 90, total: 150 };
    Account::within(process, limits, 10, None, None)
}

fn charged(account: &Account, bytes: u64) -> Result<Charge, Exhausted> {
    let mut charge = account.empty_charge();
    charge.grow(bytes).map(|()| charge)
}

#[test]
fn remaining_memory_is_released_with_the_account() {
    static COUNTER: Counter = Counter::new();
    let call = account(&COUNTER);
    assert_eq!((call.reserve(40), call.reserve(50)), (Ok(()), Ok(())));
    call.release(50);
    call.owe(200);
    let charge = call.empty_charge();
    assert_eq!(COUNTER.get(), 240);
    drop(call);
    assert_eq!(COUNTER.get(), 240, "a charge holds its account");
    drop(charge);
    assert_eq!(COUNTER.get(), 0);
}

#[test]
fn nested_call_holds_memory_of_the_call_that_makes_it() {
    static COUNTER: Counter = Counter::new();
    let call = account(&COUNTER);
    let owner = Arc::new(Counter::new());
    assert_eq!(call.assign(&owner), Ok(()));
    let (one, other) = (call.nested(), call.nested());
    assert_eq!((one.reserve(60), other.reserve(30)), (Ok(()), Ok(())));
    assert_eq!((call.held(), owner.get(), COUNTER.get()), (90, 90, 90), "each byte counts once");
    assert_eq!(other.reserve(11), Err(Exhausted::CallMemory { limit: 90 }));
    assert_eq!(other.held(), 30, "nothing was reserved");
    one.release(10);
    let kept = charged(&other, 5).map(Charge::into_owed);
    assert_eq!((call.held(), COUNTER.get()), (80, 85));
    drop((one, other));
    assert_eq!((call.held(), COUNTER.get()), (0, 5));
    drop((call, kept));
    assert_eq!((owner.get(), COUNTER.get()), (0, 0));
}

#[test]
fn call_is_bounded_by_its_own_limit() {
    static COUNTER: Counter = Counter::new();
    let call = account(&COUNTER);
    let held = charged(&call, 100);
    assert!(held.is_ok());
    assert_eq!(charged(&call, 1).err(), Some(Exhausted::CallMemory { limit: 90 }));
    drop(held);
    assert!(charged(&call, 100).is_ok());
    assert_eq!((call.held(), COUNTER.get()), (0, 0));
}

#[test]
fn all_calls_are_bounded_by_the_total() {
    static COUNTER: Counter = Counter::new();
    let one = account(&COUNTER);
    let other = account(&COUNTER);
    let mut held = charged(&one, 60);
    assert!(held.as_mut().is_ok_and(|held| held.grow(40).is_ok()));
    assert_eq!(charged(&other, 51).err(), Some(Exhausted::TotalMemory { limit: 150 }));
    assert_eq!(other.held(), 0);
    drop(held);
    assert!(charged(&other, 51).is_ok());
}

/// Takes all memory that calls of this owner may hold, one byte after the other.
fn greedy(process: &'static Counter, owner: &Arc<Counter>) -> Vec<Account> {
    let mut calls = Vec::new();
    loop {
        let call = Account::within(process, MemoryLimits { call: 8, total: 100 }, 2, None, None);
        let taken = call.assign(owner).and_then(|()| call.reserve(1));
        if taken.is_err() {
            return calls;
        }
        while call.reserve(1).is_ok() {}
        calls.push(call);
    }
}

#[test]
fn one_plugin_holds_at_most_half_of_the_memory() {
    static COUNTER: Counter = Counter::new();
    let owners = [(); 4].map(|()| Arc::<Counter>::default());
    let calls = owners.each_ref().map(|owner| greedy(&COUNTER, owner));
    assert_eq!(owners.each_ref().map(|owner| owner.get()), [50, 25, 12, 10]);
    drop(calls);
    assert_eq!((owners.map(|owner| owner.get()), COUNTER.get()), ([0; 4], 0));
}

#[test]
fn earlier_memory_counts_in_the_owners_share() {
    static COUNTER: Counter = Counter::new();
    let owner = Arc::<Counter>::default();
    let call = account(&COUNTER);
    let other = account(&COUNTER);
    assert_eq!((call.reserve(40), call.assign(&owner), owner.get()), (Ok(()), Ok(()), 40));
    let charge = call.charge(20);
    call.owe(10);
    assert_eq!(owner.get(), 70);
    assert_eq!(call.assign(&Arc::default()), Ok(()), "the first owner stays");
    assert_eq!((other.reserve(70), COUNTER.get()), (Ok(()), 140));
    assert_eq!(other.assign(&owner), Err(Exhausted::TotalMemory { limit: 150 }));
    let owed = charge.map(Charge::into_owed);
    assert_eq!(
        (owner.get(), COUNTER.get()),
        (50, 140),
        "an answer that waits is no longer the owner's"
    );
    drop((call, other, owed));
    assert_eq!((owner.get(), COUNTER.get()), (0, 0));
}

#[test]
fn memory_outliving_its_call_counts_in_the_total_only() {
    static COUNTER: Counter = Counter::new();
    let call = account(&COUNTER);
    let owed = call.charge(60).map(Charge::into_owed);
    assert_eq!((owed.is_ok(), call.held(), COUNTER.get()), (true, 0, 60));
    drop(call);
    assert_eq!(COUNTER.get(), 60);
    drop(owed);
    assert_eq!(COUNTER.get(), 0);
}

#[test]
fn one_client_holds_at_most_half_of_the_memory() {
    static COUNTER: Counter = Counter::new();
    let clients = ["one", "other"].map(|name| client_shares(Digest::of(name.as_bytes()), None));
    let limits = MemoryLimits { call: 8, total: 100 };
    let held = clients.each_ref().map(|client| {
        let mut calls = Vec::new();
        loop {
            let call = Account::within(&COUNTER, limits, 2, Some(client.clone()), None);
            if call.reserve(1).is_err() {
                return calls;
            }
            while call.reserve(1).is_ok() {}
            calls.push(call);
        }
    });
    assert_eq!(clients.each_ref().map(|client| client.memory().get()), [50, 25]);
    drop(held);
    assert_eq!((clients.map(|client| client.memory().get()), COUNTER.get()), ([0; 2], 0));
}

#[test]
fn memory_of_a_client_counts_for_its_plugin_as_well() {
    static COUNTER: Counter = Counter::new();
    let client = client_shares(Digest::of(b"a client with a plugin"), None);
    let plugin = Arc::<Counter>::default();
    let limits = MemoryLimits { call: 90, total: 150 };
    let call = Account::within(&COUNTER, limits, 10, Some(client.clone()), None);
    let counts = || (client.memory().get(), plugin.get(), COUNTER.get());
    assert_eq!((call.reserve(40), call.assign(&plugin), counts()), (Ok(()), Ok(()), (40, 40, 40)));
    call.owe(20);
    call.release(10);
    let charge = call.charge(10);
    assert_eq!(counts(), (60, 60, 60));
    let owed = charge.map(Charge::into_owed);
    assert_eq!(counts(), (50, 50, 60));
    let other = Account::within(&COUNTER, limits, 10, Some(client.clone()), None);
    assert_eq!(other.reserve(60), Err(Exhausted::TotalMemory { limit: 150 }));
    assert_eq!(counts(), (50, 50, 60), "a refusal leaves all counters as they were");
    drop((call, other, owed));
    assert_eq!(counts(), (0, 0, 0));
}

#[test]
fn memory_of_a_call_is_charged_to_the_client_that_it_is_kept_for() {
    static COUNTER: Counter = Counter::new();
    // Until a message without a session is parsed, nothing tells the clients of one sender apart.
    let sender = client_shares(Digest::of(b"the sender of messages without a session"), None);
    let plugin = Digest::of(b"the plugin of messages without a session");
    let (one, other) = (SessionShares::new(), SessionShares::new());
    let limits = MemoryLimits { call: 8, total: 100 };
    let message = || Account::within(&COUNTER, limits, 2, Some(sender.clone()), None);
    let mut unread = Vec::new();
    loop {
        let call = message();
        if call.assign(&one.of(plugin).memory).and_then(|()| call.reserve(1)).is_err() {
            break;
        }
        while call.reserve(1).is_ok() {}
        let held = call.held();
        call.release(held);
        unread.extend(call.charge(held).map(Charge::into_owed));
    }
    assert_eq!((sender.memory().get(), one.of(plugin).memory.get()), (0, 50));
    let next = message();
    assert_eq!(next.reserve(12), Err(Exhausted::CallMemory { limit: 8 }));
    assert_eq!((next.reserve(10), sender.memory().get()), (Ok(()), 10));
    assert_eq!(next.assign(&one.of(plugin).memory), Err(Exhausted::TotalMemory { limit: 100 }));
    assert_eq!(next.assign(&other.of(plugin).memory), Ok(()));
    assert_eq!((sender.memory().get(), other.of(plugin).memory.get()), (0, 10));
    drop((next, unread));
    assert_eq!((one.of(plugin).memory.get(), COUNTER.get()), (0, 0));
}

#[test]
fn stack_of_a_nested_call_raises_the_limit_of_its_caller_until_it_ends() {
    static COUNTER: Counter = Counter::new();
    let call = account(&COUNTER);
    let nested = call.nested();
    nested.allow_whole(20);
    assert_eq!((nested.reserve(120), call.held()), (Ok(()), 120));
    assert_eq!(nested.reserve(1), Err(Exhausted::CallMemory { limit: 90 }));
    drop(nested);
    assert_eq!((call.reserve(100), COUNTER.get()), (Ok(()), 100));
    assert_eq!(call.reserve(1), Err(Exhausted::CallMemory { limit: 90 }));
}
