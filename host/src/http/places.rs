//! The connection limit, and the eviction of idle connections above it.

use super::client_address::ClientAddress;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The maximum number of connections.
const CONNECTIONS: usize = 128;
/// The maximum number of connections per address.
const OF_ONE: usize = 32;
/// The maximum number of connections, including evicted ones that are not closed yet.
const WITH_LEAVING: usize = 2 * CONNECTIONS;

/// The connection table. When it is full, the connection that has been idle longest is evicted;
/// connections with an in-flight response are not.
#[derive(Debug, Default, Clone)]
pub(super) struct Places(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    taken: Vec<Taken>,
    next: u64,
}

#[derive(Debug)]
struct Taken {
    number: u64,
    source: ClientAddress,
    /// The number of responses being computed or written.
    answers: usize,
    /// The time of the last activity: accept, request or end of a response.
    since: Instant,
    leave: CancellationToken,
}

/// A slot for one connection, freed on drop.
#[derive(Debug)]
pub(super) struct Place {
    from: IpAddr,
    spot: Spot,
    leave: CancellationToken,
}

/// A handle to a connection's entry in the table.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    number: u64,
    places: Places,
}

/// An in-flight response. Its connection is not evicted until it is dropped.
#[derive(Debug)]
pub(super) struct Answering(Spot);

impl Places {
    /// Reserves a slot for a connection from this address, evicting an idle connection if
    /// necessary. Returns `None` if none can be evicted.
    pub(super) fn take(&self, from: IpAddr) -> Option<Place> {
        let mut book = self.book();
        let source = ClientAddress::from(from);
        book.make_room(source)?;
        book.next += 1;
        let (number, leave) = (book.next, CancellationToken::new());
        book.taken.push(Taken {
            number,
            source,
            answers: 0,
            since: Instant::now(),
            leave: leave.clone(),
        });
        Some(Place { from, spot: Spot { number, places: self.clone() }, leave })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Evicts connections of the same address first, so that a client with many connections
    /// competes with itself.
    fn make_room(&mut self, source: ClientAddress) -> Option<()> {
        let staying = || self.taken.iter().filter(|taken| !taken.leave.is_cancelled());
        let of_one = staying().filter(|taken| taken.source == source).count();
        if self.taken.len() >= WITH_LEAVING {
            return None;
        }
        if of_one < OF_ONE && staying().count() < CONNECTIONS {
            return Some(());
        }
        let idle = || staying().filter(|taken| taken.answers == 0);
        let own = idle().filter(|taken| taken.source == source).min_by_key(|taken| taken.since);
        let others = || idle().filter(|_| of_one < OF_ONE).min_by_key(|taken| taken.since);
        own.or_else(others)?.leave.cancel();
        Some(())
    }
}

impl Place {
    /// Returns the client's address.
    pub(super) fn from(&self) -> IpAddr {
        self.from
    }

    /// Returns the handle that records the connection's activity.
    pub(super) fn spot(&self) -> &Spot {
        &self.spot
    }

    /// Completes when the connection is evicted.
    pub(super) async fn wanted(&self) {
        self.leave.cancelled().await;
    }
}

impl Spot {
    /// Records the arrival of a request.
    pub(super) fn heard(&self) {
        self.note(|_| {});
    }

    /// Marks the connection as busy until the guard is dropped.
    pub(super) fn answering(&self) -> Answering {
        self.note(|taken| taken.answers += 1);
        Answering(self.clone())
    }

    fn note(&self, change: impl FnOnce(&mut Taken)) {
        let mut book = self.places.book();
        if let Some(taken) = book.taken.iter_mut().find(|taken| taken.number == self.number) {
            change(taken);
            taken.since = Instant::now();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.spot.places.book().taken.retain(|taken| taken.number != self.spot.number);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.note(|taken| taken.answers -= 1);
    }
}

#[cfg(test)]
impl Place {
    /// Returns the only slot of a table of its own.
    pub(super) fn alone(from: IpAddr) -> Self {
        Places::default().take(from).expect("the first place is free")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::time::Duration;
    use tokio::time::advance;

    fn from(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    /// Reserves slots 1 ms apart, with a new address for each [`OF_ONE`] of them.
    async fn taken(places: &Places, count: usize) -> Vec<Place> {
        let mut taken = Vec::new();
        for number in 0..count {
            advance(Duration::from_millis(1)).await;
            taken.push(places.take(from((number / OF_ONE) as u8)).unwrap());
        }
        taken
    }

    /// Returns the indices of the evicted connections.
    fn leaving(taken: &[Place]) -> Vec<usize> {
        (0..taken.len()).filter(|number| taken[*number].leave.is_cancelled()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn of_one_address_the_longest_idle_makes_room_for_the_thirty_third() {
        let places = Places::default();
        let taken = taken(&places, OF_ONE).await;
        advance(Duration::from_millis(1)).await;
        taken[0].spot().heard();
        drop(taken[1].spot().answering());
        let _busy = taken[2].spot().answering();
        let _other = places.take(from(2)).unwrap();
        assert_eq!(leaving(&taken), [0; 0], "there is room for others");
        let _more = [places.take(from(0)).unwrap(), places.take(from(0)).unwrap()];
        assert_eq!(leaving(&taken), [3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn none_that_is_being_answered_makes_room() {
        let places = Places::default();
        let taken = taken(&places, OF_ONE).await;
        let mut busy: Vec<_> = taken.iter().map(|place| place.spot().answering()).collect();
        assert!(places.take(from(0)).is_none());
        busy.pop();
        assert!(places.take(from(0)).is_some());
        assert_eq!(leaving(&taken), [OF_ONE - 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn of_all_the_longest_idle_makes_room_for_the_hundred_and_twenty_ninth_of_its_own_address_first()
     {
        let places = Places::default();
        let mut taken = taken(&places, CONNECTIONS).await;
        taken.truncate(CONNECTIONS - 1);
        let own = places.take(from(9)).unwrap();
        let busy = own.spot().answering();
        let own = [own, places.take(from(9)).unwrap()];
        assert_eq!((leaving(&taken), leaving(&own)), (vec![0], vec![]));
        advance(Duration::from_millis(1)).await;
        drop(busy);
        let _most = places.take(from(9)).unwrap();
        assert_eq!((leaving(&taken), leaving(&own)), (vec![0], vec![1]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_with_all_its_places_in_use_takes_none_of_others() {
        let places = Places::default();
        let taken = taken(&places, OF_ONE).await;
        let _busy: Vec<_> = taken.iter().map(|place| place.spot().answering()).collect();
        let idle = places.take(from(2)).unwrap();
        assert!(places.take(from(0)).is_none());
        assert!(!idle.leave.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn those_on_their_way_out_are_bounded_and_nothing_is_kept_of_those_that_have_gone() {
        let places = Places::default();
        let taken: Vec<_> = (0..WITH_LEAVING).map(|_| places.take(from(1)).unwrap()).collect();
        assert!(places.take(from(1)).is_none());
        assert_eq!(taken.iter().filter(|place| !place.leave.is_cancelled()).count(), OF_ONE);
        drop(taken);
        assert!(places.book().taken.is_empty());
    }
}
