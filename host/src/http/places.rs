//! The places for connections: how many there are, and who makes room for others.

use super::rates::Source;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The most connections at once.
const CONNECTIONS: usize = 128;
/// The most connections at once of one address.
const OF_ONE: usize = 32;
/// The most with those that are on their way out.
const WITH_LEAVING: usize = 2 * CONNECTIONS;

/// All places. Where none is free, the connection that has been idle for the longest makes room; none that is being answered does.
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
    source: Source,
    /// How many answers are being made and written.
    answers: usize,
    /// When it came, or was last heard, or answered.
    since: Instant,
    leave: CancellationToken,
}

/// A place for one connection. Free again when dropped.
#[derive(Debug)]
pub(super) struct Place {
    from: IpAddr,
    spot: Spot,
    leave: CancellationToken,
}

/// Which place it is.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    number: u64,
    places: Places,
}

/// An answer that is being made or written. Until it is dropped, its connection makes room for nobody.
#[derive(Debug)]
pub(super) struct Answering(Spot);

impl Places {
    /// A place for a connection from this address; `None` where all are being answered.
    pub(super) fn take(&self, from: IpAddr) -> Option<Place> {
        let mut book = self.book();
        let source = Source::of(from);
        book.make_room(source)?;
        book.next += 1;
        let (number, leave) = (book.next, CancellationToken::new());
        book.taken.push(Taken { number, source, answers: 0, since: Instant::now(), leave: leave.clone() });
        Some(Place { from, spot: Spot { number, places: self.clone() }, leave })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Of the same address first: whoever takes many places takes them from itself.
    fn make_room(&mut self, source: Source) -> Option<()> {
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
    /// Whose it is.
    pub(super) fn from(&self) -> IpAddr {
        self.from
    }

    /// What notes what is done on the connection.
    pub(super) fn spot(&self) -> &Spot {
        &self.spot
    }

    /// Returns once it is to make room.
    pub(super) async fn wanted(&self) {
        self.leave.cancelled().await;
    }
}

impl Spot {
    /// A request has begun to come.
    pub(super) fn heard(&self) {
        self.note(|_| {});
    }

    /// A request is answered from now on.
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
    /// The only one of its kind.
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

    /// Connections that came one after the other, of as many addresses as that takes.
    async fn taken(places: &Places, count: usize) -> Vec<Place> {
        let mut taken = Vec::new();
        for number in 0..count {
            advance(Duration::from_millis(1)).await;
            taken.push(places.take(from((number / OF_ONE) as u8)).unwrap());
        }
        taken
    }

    /// Which of them are to leave.
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
    async fn of_all_the_longest_idle_makes_room_for_the_hundred_and_twenty_ninth_of_its_own_address_first() {
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
