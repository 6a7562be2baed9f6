//! The limit on open connections: of the server, and of each client address.

use super::client_address::ClientAddress;
use super::rejection::Rejection;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of connections of a server.
const MOST: usize = 512;
/// The maximum number of connections of one address. An agent framework opens 20 to 50 in parallel,
/// and several run on one machine, or behind one proxy.
const MOST_PER_ADDRESS: usize = 256;
/// The file descriptors of one connection: the socket, and its duplicate that detects a disconnect.
const DESCRIPTORS: usize = 2;

/// The maximum number of connections that only the operator of a server can have. Each further tab
/// of the console, `palisade watch` and a request beside them need one.
const OF_OPERATOR: usize = 16;

/// Counts the open connections.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    most: usize,
    most_per_address: usize,
    all: Arc<Semaphore>,
    /// The connections of each address that has any.
    addresses: Mutex<HashMap<ClientAddress, Weak<Semaphore>>>,
}

/// The right to one connection, returned on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    _of_all: OwnedSemaphorePermit,
    _of_address: OwnedSemaphorePermit,
}

impl ConnectionLimit {
    /// Creates the limit for a process in which connections may hold this many file descriptors.
    pub(super) fn with_descriptors(descriptors: u64) -> Self {
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let most = (descriptors / DESCRIPTORS).clamp(1, MOST);
        // A tenth stays for other addresses.
        Self::new(most, (most - most / 10).min(MOST_PER_ADDRESS))
    }

    /// Returns a limit on the connections of clients, for a server with an operator: it leaves some
    /// connections of each address for the operator.
    pub(super) fn of_clients(&self) -> Self {
        let reserved = (self.most_per_address / 8).min(OF_OPERATOR);
        Self::new(self.most - reserved, self.most_per_address - reserved)
    }

    /// Creates a limit on all connections, and on those of one address.
    pub(super) fn new(most: usize, most_per_address: usize) -> Self {
        let all = Arc::new(Semaphore::new(most));
        Self { most, most_per_address, all, addresses: Mutex::default() }
    }

    /// Reserves a connection from this address.
    ///
    /// # Errors
    ///
    /// [`Rejection::ServerFull`] or [`Rejection::AddressFull`].
    pub(super) fn acquire(&self, from: IpAddr) -> Result<ConnectionPermit, Rejection> {
        let of_all = self.all.clone().try_acquire_owned();
        let of_all = of_all.map_err(|_| Rejection::ServerFull(self.most))?;
        let of_address = self.address(from.into()).try_acquire_owned();
        let of_address = of_address.map_err(|_| Rejection::AddressFull(self.most_per_address))?;
        Ok(ConnectionPermit { _of_all: of_all, _of_address: of_address })
    }

    /// Returns the semaphore of an address, which its connections share.
    fn address(&self, client: ClientAddress) -> Arc<Semaphore> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = addresses.get(&client).and_then(Weak::upgrade) {
            return known;
        }
        addresses.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(self.most_per_address));
        addresses.insert(client, Arc::downgrade(&semaphore));
        semaphore
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn address_at_its_limit_is_rejected_and_others_are_not() {
        let limit = ConnectionLimit::new(4, 2);
        let first = limit.acquire(address(1)).unwrap();
        let _second = limit.acquire(address(1)).unwrap();
        assert_eq!(limit.acquire(address(1)).unwrap_err(), Rejection::AddressFull(2));
        assert!(limit.acquire(address(2)).is_ok());
        drop(first);
        assert!(limit.acquire(address(1)).is_ok());
    }

    #[test]
    fn full_server_rejects_every_address() {
        let limit = ConnectionLimit::new(2, 2);
        let first = limit.acquire(address(1)).unwrap();
        let _second = limit.acquire(address(2)).unwrap();
        assert_eq!(limit.acquire(address(3)).unwrap_err(), Rejection::ServerFull(2));
        drop(first);
        assert!(limit.acquire(address(3)).is_ok());
    }

    #[test]
    fn rejected_connection_holds_nothing() {
        let limit = ConnectionLimit::new(2, 1);
        let _first = limit.acquire(address(1)).unwrap();
        assert!((0..10).all(|_| limit.acquire(address(1)).is_err()));
        assert!(limit.acquire(address(2)).is_ok());
    }

    #[test]
    fn addresses_without_connections_are_forgotten() {
        let limit = ConnectionLimit::new(100, 100);
        let permits: Vec<_> = (0..100).map(|last| limit.acquire(address(last)).unwrap()).collect();
        drop(permits);
        let _other = limit.acquire(address(200)).unwrap();
        assert_eq!(limit.addresses.lock().unwrap().len(), 1);
    }

    #[test]
    fn clients_leave_connections_for_the_operator() {
        for (descriptors, most, most_per_address) in
            [(u64::MAX, 496, 240), (448, 208, 186), (16, 7, 7), (0, 1, 1)]
        {
            let clients = ConnectionLimit::with_descriptors(descriptors).of_clients();
            assert_eq!((clients.most, clients.most_per_address), (most, most_per_address));
        }
    }

    #[test]
    fn connections_keep_within_the_descriptors_of_the_process() {
        for (descriptors, most, most_per_address) in
            [(u64::MAX, 512, 256), (448, 224, 202), (16, 8, 8), (0, 1, 1)]
        {
            let limit = ConnectionLimit::with_descriptors(descriptors);
            assert_eq!((limit.most, limit.most_per_address), (most, most_per_address));
        }
    }
}
