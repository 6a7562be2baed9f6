//! The scheduler of a pool: the holdings, the queues and the order of service.

use crate::tool::Digest;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Returns the most that an owner may hold while this much is free; at least `floor`.
pub(crate) fn threshold(free: u64, floor: u64) -> u64 {
    free.max(floor)
}

/// The error of a pool without units for this owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bound} units are held, and no more is free for this owner")]
pub struct Full {
    /// The units that the owner holds if it reached its threshold, or the pool's capacity if the
    /// pool is empty.
    pub(crate) bound: u64,
}

/// The units of a pool and the queued requests for them. `S` is the share that an owner holds.
#[derive(Debug)]
pub(super) struct Scheduler<S> {
    capacity: u64,
    held: u64,
    shares: HashMap<Digest, Weak<S>>,
    owners: Vec<OwnerQueue>,
    /// The indices in `owners` without a share.
    vacant: Vec<usize>,
    /// The owners with queued requests, in the order of service.
    ring: VecDeque<usize>,
    next: u64,
    /// Units granted to requests that have not taken them yet, each with its lease.
    granted: HashMap<u64, Option<u64>>,
    /// The leases, in a pool of leases.
    leases: Option<HashMap<u64, Lease>>,
    /// Returns true while owners compete; the threshold applies only then. `None`: always.
    is_contended: Option<fn() -> bool>,
}

#[derive(Debug, Default)]
struct OwnerQueue {
    held: u64,
    queue: VecDeque<Request>,
}

#[derive(Debug)]
struct Request {
    id: u64,
    units: u64,
    waker: Waker,
}

#[derive(Debug)]
struct Lease {
    owner: usize,
    units: u64,
    since: Instant,
    state: LeaseState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseState {
    Held,
    Abandoned,
}

impl<S> Scheduler<S> {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            held: 0,
            shares: HashMap::new(),
            owners: Vec::new(),
            vacant: Vec::new(),
            ring: VecDeque::new(),
            next: 0,
            granted: HashMap::new(),
            leases: None,
            is_contended: None,
        }
    }

    pub(super) fn with_leases(self) -> Self {
        Self { leases: Some(HashMap::new()), ..self }
    }

    pub(super) fn shared_while(self, is_contended: fn() -> bool) -> Self {
        Self { is_contended: Some(is_contended), ..self }
    }

    pub(super) fn held(&self) -> u64 {
        self.held
    }

    pub(super) fn known(&self, owner: &Digest) -> Option<Arc<S>> {
        self.shares.get(owner)?.upgrade()
    }

    pub(super) fn enter(&mut self) -> usize {
        self.vacant.pop().unwrap_or_else(|| {
            self.owners.push(OwnerQueue::default());
            self.owners.len() - 1
        })
    }

    pub(super) fn name(&mut self, owner: Digest, share: &Arc<S>) {
        self.shares.insert(owner, Arc::downgrade(share));
    }

    /// Removes a dropped share. It holds nothing and has no queued requests, because grants and
    /// requests reference their share.
    pub(super) fn leave(&mut self, owner: &Digest, index: usize) {
        self.vacant.push(index);
        // A new share may have taken this name in the meantime.
        if self.shares.get(owner).is_some_and(|share| share.strong_count() == 0) {
            self.shares.remove(owner);
        }
    }

    /// Takes units for an owner without queued requests.
    pub(super) fn take(&mut self, index: usize, units: u64) -> Result<Option<u64>, Full> {
        let owner = self.owners.get(index);
        let held = owner.map_or(0, |owner| owner.held);
        if owner.is_some_and(|owner| owner.queue.is_empty()) && self.fits(held, units) {
            return Ok(self.hold(index, units));
        }
        let is_empty = self.capacity - self.held < units;
        Err(Full { bound: if is_empty { self.capacity } else { held } })
    }

    /// Returns true if an owner may take this many units. The first grant is exempt from the
    /// threshold.
    fn fits(&self, held: u64, units: u64) -> bool {
        let Some(free) = (self.capacity - self.held).checked_sub(units) else { return false };
        if self.is_contended.is_some_and(|is_contended| !is_contended()) {
            return true;
        }
        held.checked_add(units).is_some_and(|sum| sum <= threshold(free, units))
    }

    fn hold(&mut self, index: usize, units: u64) -> Option<u64> {
        self.held += units;
        if let Some(owner) = self.owners.get_mut(index) {
            owner.held += units;
        }
        let number = self.number();
        let leases = self.leases.as_mut()?;
        leases.insert(
            number,
            Lease { owner: index, units, since: Instant::now(), state: LeaseState::Held },
        );
        Some(number)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns units. Those of an abandoned lease were returned before.
    pub(super) fn release(&mut self, index: usize, units: u64, lease: Option<u64>) {
        let lease = lease.and_then(|lease| self.leases.as_mut()?.remove(&lease));
        if lease.is_none_or(|lease| lease.state == LeaseState::Held) {
            self.free(index, units);
        }
    }

    fn free(&mut self, index: usize, units: u64) {
        self.held -= units;
        if let Some(owner) = self.owners.get_mut(index) {
            owner.held -= units;
        }
    }

    pub(super) fn abandon(&mut self, lease: u64) -> bool {
        let Some(lease) = self.leases.as_mut().and_then(|leases| leases.get_mut(&lease)) else {
            return false;
        };
        if lease.state == LeaseState::Held {
            lease.state = LeaseState::Abandoned;
            let owner = lease.owner;
            let units = lease.units;
            self.free(owner, units);
        }
        true
    }

    pub(super) fn abandon_older_than(&mut self, age: Duration) {
        let Some(leases) = &self.leases else { return };
        let is_old = |lease: &Lease| lease.state == LeaseState::Held && lease.since.elapsed() > age;
        let old: Vec<u64> =
            leases.iter().filter(|(_, lease)| is_old(lease)).map(|(number, _)| *number).collect();
        for lease in old {
            self.abandon(lease);
        }
    }

    /// Queues a request and returns its id.
    pub(super) fn queue(&mut self, index: usize, units: u64, waker: &Waker) -> u64 {
        let id = self.number();
        if let Some(owner) = self.owners.get_mut(index) {
            if owner.queue.is_empty() {
                self.ring.push_back(index);
            }
            owner.queue.push_back(Request { id, units, waker: waker.clone() });
        }
        id
    }

    /// Returns the lease of a granted request, or registers the waker for a later grant.
    pub(super) fn granted(&mut self, index: usize, id: u64, waker: &Waker) -> Option<Option<u64>> {
        if let Some(lease) = self.granted.remove(&id) {
            return Some(lease);
        }
        let queue = self.owners.get_mut(index).map(|owner| &mut owner.queue)?;
        if let Some(request) = queue.iter_mut().find(|request| request.id == id) {
            request.waker.clone_from(waker);
        }
        None
    }

    /// Removes a request. A granted request returns its units.
    pub(super) fn withdraw(&mut self, index: usize, id: u64, units: u64) {
        if let Some(lease) = self.granted.remove(&id) {
            return self.release(index, units, lease);
        }
        let Some(owner) = self.owners.get_mut(index) else { return };
        owner.queue.retain(|request| request.id != id);
        if owner.queue.is_empty() {
            self.ring.retain(|waiting| *waiting != index);
        }
    }

    /// Grants queued requests round-robin until no owner may take more.
    pub(super) fn serve(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        let mut skipped = 0;
        while skipped < self.ring.len()
            && let Some(index) = self.ring.pop_front()
        {
            match self.serve_owner(index) {
                Some(waker) => {
                    woken.push(waker);
                    skipped = 0;
                }
                None => skipped += 1,
            }
            if self.owners.get(index).is_some_and(|owner| !owner.queue.is_empty()) {
                self.ring.push_back(index);
            }
        }
        woken
    }

    /// Grants an owner's first request if it fits.
    fn serve_owner(&mut self, index: usize) -> Option<Waker> {
        let owner = self.owners.get(index)?;
        let held = owner.held;
        let units = owner.queue.front()?.units;
        if !self.fits(held, units) {
            return None;
        }
        let request = self.owners.get_mut(index)?.queue.pop_front()?;
        let lease = self.hold(index, units);
        self.granted.insert(request.id, lease);
        Some(request.waker)
    }

    /// Asserts that the sums match their parts and that no grantable request is queued.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert_eq!(self.held, self.owners.iter().map(|owner| owner.held).sum::<u64>());
        for (index, owner) in self.owners.iter().enumerate() {
            let entries = self.ring.iter().filter(|waiting| **waiting == index).count();
            assert_eq!(entries, usize::from(!owner.queue.is_empty()));
            assert!(owner.queue.front().is_none_or(|first| !self.fits(owner.held, first.units)));
        }
    }
}
