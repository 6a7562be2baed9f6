//! The scheduler of a pool: the holdings, the queues and the order of service.

use super::group::Groups;
use super::rule::most_within;
use crate::tool::Digest;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The error of a pool without units for this owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bound} units are held, and no more is free for this owner")]
pub struct Full {
    /// The units that the owner holds, or the group, if it reached its threshold; or the pool's
    /// capacity if the pool is empty.
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
    /// The groups of the owners, by their numbers.
    groups: Vec<Tally>,
    /// The owners with queued requests, in the order in which they were served or began to wait.
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
    tally: Tally,
    groups: Groups,
    queue: VecDeque<Request>,
}

/// The books of an owner or a group.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    held: u64,
    /// The number of the latest grant to a queued request; 0 before the first one.
    served: u64,
}

/// The most tallies of an owner: its own and those of its groups.
const TALLIES: usize = 5;

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
            groups: Vec::new(),
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

    /// Adds an owner of these groups, and returns its index.
    pub(super) fn enter(&mut self, groups: Groups) -> usize {
        let count = groups.iter().map(|group| group.number() + 1).max().unwrap_or_default();
        if count > self.groups.len() {
            self.groups.resize(count, Tally::default());
        }
        let owner = OwnerQueue { groups, ..OwnerQueue::default() };
        let index = self.vacant.pop().unwrap_or(self.owners.len());
        match self.owners.get_mut(index) {
            Some(vacant) => *vacant = owner,
            None => self.owners.push(owner),
        }
        index
    }

    pub(super) fn name(&mut self, owner: Digest, share: &Arc<S>) {
        self.shares.insert(owner, Arc::downgrade(share));
    }

    /// Removes a dropped share. It holds nothing and has no queued requests, because grants and
    /// requests reference their share.
    pub(super) fn leave(&mut self, owner: &Digest, index: usize) {
        self.vacant.push(index);
        if let Some(left) = self.owners.get_mut(index) {
            left.groups = Groups::NONE;
        }
        // A new share may have taken this name in the meantime.
        if self.shares.get(owner).is_some_and(|share| share.strong_count() == 0) {
            self.shares.remove(owner);
        }
    }

    /// Takes units for an owner without queued requests.
    pub(super) fn take(&mut self, index: usize, units: u64) -> Result<Option<u64>, Full> {
        match self.owners.get(index) {
            Some(owner) if owner.queue.is_empty() => self.fits(owner, units)?,
            owner => {
                let is_empty = self.capacity - self.held < units;
                let held = owner.map_or(0, |owner| owner.tally.held);
                return Err(Full { bound: if is_empty { self.capacity } else { held } });
            }
        }
        Ok(self.hold(index, units))
    }

    /// Returns an error if an owner may not take this many units. The first grant of an owner, and
    /// of a group, is exempt from its threshold.
    fn fits(&self, owner: &OwnerQueue, units: u64) -> Result<(), Full> {
        let Some(free) = (self.capacity - self.held).checked_sub(units) else {
            return Err(Full { bound: self.capacity });
        };
        let own = owner.tally.held.saturating_add(units);
        let most = match self.is_contended {
            Some(is_contended) if !is_contended() => return Ok(()),
            // Units that return within moments are shared out to groups by the order of service, so
            // that none stays unused.
            Some(_) => most_within(std::iter::empty(), free, units),
            None => {
                let held = self.tallies(&owner.groups).map(|tally| tally.held + units);
                let kinds = owner.groups.iter().map(|group| group.kind());
                most_within(kinds.zip(held), free, units)
            }
        };
        match most {
            Ok(most) if own <= most => Ok(()),
            Ok(_) => Err(Full { bound: owner.tally.held }),
            Err(of_group) => Err(Full { bound: of_group - units }),
        }
    }

    fn tallies(&self, groups: &Groups) -> impl Iterator<Item = Tally> {
        groups.iter().map(|group| self.groups.get(group.number()).copied().unwrap_or_default())
    }

    /// Changes the tallies of an owner and its groups.
    fn change(&mut self, index: usize, change: impl Fn(&mut Tally)) {
        let Some(owner) = self.owners.get_mut(index) else { return };
        change(&mut owner.tally);
        for group in owner.groups.iter() {
            if let Some(tally) = self.groups.get_mut(group.number()) {
                change(tally);
            }
        }
    }

    fn hold(&mut self, index: usize, units: u64) -> Option<u64> {
        self.held += units;
        self.change(index, |tally| tally.held += units);
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
        self.change(index, |tally| tally.held -= units);
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

    /// Grants queued requests until no owner may take more.
    pub(super) fn serve(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(index) = self.next_to_serve().and_then(|place| self.ring.remove(place)) {
            woken.extend(self.grant_first(index));
            if self.owners.get(index).is_some_and(|owner| !owner.queue.is_empty()) {
                self.ring.push_back(index);
            }
        }
        woken
    }

    /// Returns the place in the ring of the owner to serve next: of those whose first request fits,
    /// the one whose groups were left unserved for longest.
    fn next_to_serve(&self) -> Option<usize> {
        if self.held >= self.capacity {
            return None;
        }
        let waiting = self.ring.iter().enumerate().filter_map(|(place, index)| {
            let owner = self.owners.get(*index)?;
            let first = owner.queue.front()?;
            self.fits(owner, first.units).ok()?;
            Some((self.latest_grants(owner), place))
        });
        waiting.min().map(|(_, place)| place)
    }

    /// Returns the latest grants to an owner and to its groups, the latest first. So an owner of a
    /// plugin that is served all the time comes after an owner of another plugin, whichever caller
    /// it belongs to, and the same holds for callers. Owners of one plugin are told apart by their
    /// callers.
    fn latest_grants(&self, owner: &OwnerQueue) -> [u64; TALLIES] {
        let mut served = [0; TALLIES];
        let tallies = std::iter::once(owner.tally).chain(self.tallies(&owner.groups));
        served.iter_mut().zip(tallies).for_each(|(served, tally)| *served = tally.served);
        served.sort_unstable_by(|one, other| other.cmp(one));
        served
    }

    /// Grants an owner's first request.
    fn grant_first(&mut self, index: usize) -> Option<Waker> {
        let request = self.owners.get_mut(index)?.queue.pop_front()?;
        let lease = self.hold(index, request.units);
        let now = self.number();
        self.change(index, |tally| tally.served = now);
        self.granted.insert(request.id, lease);
        Some(request.waker)
    }

    /// Asserts that the sums match their parts and that no grantable request is queued.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert_eq!(self.held, self.owners.iter().map(|owner| owner.tally.held).sum::<u64>());
        for (number, group) in self.groups.iter().enumerate() {
            let is_in = |owner: &&OwnerQueue| owner.groups.iter().any(|one| one.number() == number);
            let parts = self.owners.iter().filter(is_in).map(|owner| owner.tally.held);
            assert_eq!(group.held, parts.sum::<u64>());
        }
        for (index, owner) in self.owners.iter().enumerate() {
            let entries = self.ring.iter().filter(|waiting| **waiting == index).count();
            assert_eq!(entries, usize::from(!owner.queue.is_empty()));
            let first = owner.queue.front();
            assert!(first.is_none_or(|first| self.fits(owner, first.units).is_err()));
        }
    }
}
