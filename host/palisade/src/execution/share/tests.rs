//! Tests of the pool's fairness, in small cases and in random order.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod nested;

use super::*;
use crate::tool::Digest;
use nested::member;
use std::collections::HashMap;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

fn owner(number: usize) -> Digest {
    Digest::of(&number.to_le_bytes())
}

/// Takes single units until the share is exhausted.
fn all(share: &Arc<Share>) -> Vec<Grant> {
    std::iter::from_fn(|| share.try_take(1).ok()).collect()
}

/// A waker that counts its wake-ups.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(request: &mut Acquire, waker: &Arc<Woken>) -> Poll<Grant> {
    Pin::new(request).poll(&mut Context::from_waker(&Waker::from(waker.clone())))
}

#[test]
fn first_request_may_take_all_free_units() {
    let pool = Pool::new(10);
    let one = pool.share(owner(1));
    let other = pool.share(owner(2));
    let held = (one.try_take(3).unwrap(), other.try_take(6).unwrap());
    assert!(other.try_take(1).is_err() && one.try_take(2).is_err());
    drop(held);
}

#[test]
fn one_owner_takes_half_of_the_pool() {
    for (greedy, free) in [(1, 50), (2, 34), (3, 25), (9, 10)] {
        let pool = Pool::new(100);
        let shares: Vec<_> = (0..greedy).map(|number| pool.share(owner(number))).collect();
        let mut held: Vec<Vec<Grant>> = shares.iter().map(|_| Vec::new()).collect();
        // One unit each, round-robin, until no share gets more.
        let mut take = || -> usize {
            let taken = shares.iter().zip(&mut held).filter_map(|(share, held)| {
                held.push(share.try_take(1).ok()?);
                Some(())
            });
            taken.count()
        };
        while take() > 0 {}
        assert!(100 - pool.held() >= free, "{greedy} owners left {}", 100 - pool.held());
        let later = pool.share(owner(100));
        assert!(later.try_take(1).is_ok(), "an owner that comes later finds some");
    }
}

#[test]
fn successive_greedy_owners_each_leave_half() {
    let pool = Pool::new(100);
    let held: Vec<Vec<Grant>> = (0..3).map(|number| all(&pool.share(owner(number)))).collect();
    assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [50, 25, 12]);
    assert!(pool.share(owner(3)).try_take(1).is_ok());
}

#[test]
fn refusal_names_the_bound() {
    let pool = Pool::new(4);
    let one = pool.share(owner(1));
    let other = pool.share(owner(2));
    let third = pool.share(owner(3));
    let first = all(&one);
    let second = all(&other);
    let last = all(&third);
    assert_eq!((first.len(), second.len(), last.len()), (2, 1, 1));
    assert_eq!(pool.share(owner(4)).try_take(1).err(), Some(Full { bound: 4 }));
    drop(last);
    assert_eq!(one.try_take(1).err(), Some(Full { bound: 2 }));
}

#[test]
fn last_unit_is_kept_for_an_owner_without_any() {
    let pool = Pool::new(1);
    let one = pool.share(owner(1));
    let other = pool.share(owner(2));
    let held = one.try_take(1);
    assert!(held.is_ok() && other.try_take(1).is_err());
    drop(held);
    assert!(other.try_take(1).is_ok());
}

#[test]
fn owner_at_its_threshold_waits_in_its_own_queue() {
    let pool = Pool::new(4);
    let woken = Arc::new(Woken::default());
    let greedy = pool.share(owner(1));
    let other = pool.share(owner(2));
    let mut held = all(&greedy);
    let mut waits: Vec<_> = (0..3).map(|_| greedy.take(1)).collect();
    assert!(waits.iter_mut().all(|request| poll(request, &woken).is_pending()));
    assert_eq!(greedy.waiting(), 3);
    let mut latecomer = other.take(1);
    let granted = poll(&mut latecomer, &woken);
    assert!(granted.is_ready(), "it waits behind none of them");
    drop(granted);
    assert!(woken.0.load(Ordering::SeqCst) == 0 && poll(&mut waits[0], &woken).is_pending());
    held.pop();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1, "one has become free, and one is woken");
    assert!(greedy.try_take(1).is_err(), "none overtakes those that wait");
    assert!(poll(&mut waits[1], &woken).is_pending() && poll(&mut waits[0], &woken).is_ready());
}

#[test]
fn dropped_request_passes_its_grant_on() {
    let pool = Pool::new(1);
    let woken = Arc::new(Woken::default());
    let share = pool.share(owner(1));
    let held = share.try_take(1).unwrap();
    let mut first = share.take(1);
    let mut second = share.take(1);
    let mut third = share.take(1);
    assert!(
        [&mut first, &mut second, &mut third]
            .into_iter()
            .all(|request| poll(request, &woken).is_pending())
    );
    drop(second);
    drop(held);
    drop(first);
    assert_eq!(woken.0.load(Ordering::SeqCst), 2);
    assert!(poll(&mut third, &woken).is_ready());
    assert_eq!((pool.held(), share.waiting()), (0, 0));
}

#[test]
fn inactive_owners_leave_nothing() {
    let pool = Pool::new(10);
    for number in 0..1000 {
        drop(pool.share(owner(number)).try_take(3));
    }
    let share = pool.share(owner(0));
    let held = share.try_take(2);
    drop(share);
    assert_eq!(
        pool.share(owner(0)).try_take(4).err(),
        Some(Full { bound: 2 }),
        "what it holds keeps its share"
    );
    drop(held);
    assert_eq!(pool.held(), 0);
}

#[test]
fn written_off_lease_releases_its_units_once() {
    let pool = Pool::leased(2);
    let share = pool.share(owner(1));
    let held = share.try_take(1).unwrap();
    let lease = held.lease().unwrap();
    assert!(share.try_take(1).is_err());
    assert!(pool.abandon(lease) && pool.abandon(lease));
    let other = share.try_take(1);
    assert_eq!((other.is_ok(), pool.held()), (true, 1));
    drop(held);
    assert_eq!(pool.held(), 1, "what was abandoned does not come back twice");
    assert!(!pool.abandon(lease), "it has ended");
}

/// A seeded pseudo-random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn accounts_stay_exact_in_any_order_of_operations() {
    accounts_stay_exact(|pool| (0..4).map(|number| pool.share(owner(number))).collect());
}

#[test]
fn accounts_of_groups_stay_exact_in_any_order_of_operations() {
    let of = |plugin, caller| member("random", (plugin, caller, plugin));
    accounts_stay_exact(|pool| {
        let owners = [of(1, 1), of(1, 2), of(2, 1), of(2, 2)];
        owners.iter().map(|owner| pool.share_of(owner)).collect()
    });
}

/// In random order, the holdings match the books and no grantable request stays queued.
fn accounts_stay_exact(shares: impl Fn(&Pool) -> Vec<Arc<Share>>) {
    for seed in 1..400 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let pool = Pool::leased(1 + seed % 9);
        let shares = shares(&pool);
        let mut held: Vec<Grant> = Vec::new();
        let mut waits: Vec<(Acquire, Arc<Woken>)> = Vec::new();
        for _ in 0..300 {
            let share = &shares[dice.below(shares.len())];
            match dice.below(6) {
                0 => held.extend(share.try_take(1)),
                1 => waits.push((share.take(1), Arc::default())),
                2 if !held.is_empty() => drop(held.swap_remove(dice.below(held.len()))),
                3 if !waits.is_empty() => drop(waits.swap_remove(dice.below(waits.len()))),
                4 if !held.is_empty() && dice.below(4) == 0 => {
                    pool.abandon(held[dice.below(held.len())].lease().unwrap());
                }
                _ if !waits.is_empty() => {
                    let at = dice.below(waits.len());
                    let (request, woken) = &mut waits[at];
                    if let Poll::Ready(granted) = poll(request, woken) {
                        held.push(granted);
                        drop(waits.swap_remove(at));
                    }
                }
                _ => {}
            }
            let scheduler = pool.scheduler();
            scheduler.check();
            assert!(pool.capacity() >= scheduler.held());
        }
        held.clear();
        // Every waiting request is woken once its predecessors are gone, or was never polled.
        while !waits.is_empty() {
            let left = waits.len();
            let ready =
                |(request, woken): &mut (Acquire, Arc<Woken>)| poll(request, woken).is_pending();
            waits.retain_mut(ready);
            assert!(waits.len() < left, "seed {seed}: {left} wait for ever");
        }
        assert_eq!(pool.held(), 0, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_are_all_granted() {
    const CAPACITY: u64 = 3;
    let pool = Pool::new(CAPACITY);
    let most = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let share = pool.share(owner(number % 5));
            let most = most.clone();
            let pool = pool.clone();
            tokio::spawn(async move {
                let mut dice = Dice(number as u64 + 7);
                for _ in 0..200 {
                    if dice.below(5) == 0 {
                        let given_up = tokio::time::timeout(Duration::ZERO, share.take(1)).await;
                        drop(given_up);
                        continue;
                    }
                    let one = share.take(1).await;
                    most.fetch_max(pool.held(), Ordering::Relaxed);
                    if dice.below(2) == 0 {
                        tokio::task::yield_now().await;
                    }
                    drop(one);
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(60), task)
            .await
            .expect("no wakeup is lost")
            .unwrap();
    }
    assert_eq!(pool.held(), 0);
    assert!((1..=CAPACITY).contains(&most.load(Ordering::Relaxed)));
    let names: HashMap<_, _> =
        (0..5).map(|number| (number, pool.share(owner(number)).waiting())).collect();
    assert!(names.values().all(|waiting| *waiting == 0));
}

#[test]
fn uncontended_owner_takes_the_whole_leased_pool() {
    static CONTENDED: AtomicBool = AtomicBool::new(false);
    let pool = Pool::leased_while(2, || CONTENDED.load(Ordering::Relaxed));
    let one = pool.share(owner(1));
    let other = pool.share(owner(2));
    let both = [one.try_take(1).unwrap(), one.try_take(1).unwrap()];
    assert!(other.try_take(1).is_err(), "none is free");
    CONTENDED.store(true, Ordering::Relaxed);
    drop(both);
    let first = one.try_take(1).unwrap();
    assert!(one.try_take(1).is_err(), "the second is kept for the other");
    assert!(other.try_take(1).is_ok());
    drop(first);
}

#[test]
fn blocking_request_is_served_in_turn() {
    let pool = Pool::new(1);
    let one = pool.share(owner(1));
    let other = pool.share(owner(2));
    let order = Arc::<Mutex<Vec<&str>>>::default();
    let note = |name| {
        let order = order.clone();
        move |grant: Grant| {
            order.lock().unwrap().push(name);
            drop(grant);
        }
    };
    one.take_then(1, note("at once"));
    let taken = one.try_take(1).unwrap();
    for (share, name) in [(&one, "first"), (&one, "second"), (&other, "other")] {
        share.take_then(1, note(name));
    }
    assert_eq!(*order.lock().unwrap(), ["at once"]);
    drop(taken);
    assert_eq!(*order.lock().unwrap(), ["at once", "first", "other", "second"]);
    assert_eq!((pool.held(), one.waiting()), (0, 0));
}
