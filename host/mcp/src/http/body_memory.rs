//! The memory of request bodies: reserved in the account of the request before it is allocated, and
//! shared out among the client addresses.

use super::client_address::ClientAddress;
use super::rejection::Rejection;
use super::request_body;
use super::response_body::guarded_bytes;
use bytes::Bytes;
use palisade::internal::{Account, Charge, ClientShares, Grant, Pool, address_space_limit};
use palisade::sandbox::limits::Limits;
use palisade::tool::Digest;
use palisade::tool::budget::Exhausted;

/// The memory of all long bodies together, in bytes. An address may take more of it only while it
/// holds no more than is free, so that it gets at most half.
const LONG_BODIES: u64 = 256 << 20;
/// The unit in which the memory of long bodies is shared out, in bytes. A body up to this size is
/// short: the limit on connections bounds the memory of all short ones.
const UNIT: usize = 64 << 10;

/// The memory for the bodies of a server's requests.
#[derive(Debug)]
pub(super) struct BodyMemory {
    limits: Limits,
    long: Pool,
}

impl BodyMemory {
    /// Creates the memory of a server whose requests count against these limits.
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, long: Pool::new(LONG_BODIES / UNIT as u64) }
    }

    /// Creates an account that belongs to no client.
    pub(super) fn account(&self) -> Account {
        self.limits.account()
    }

    /// Creates the account of a request of this client.
    pub(super) fn account_of(&self, client: ClientShares) -> Account {
        Account::of_client(self.limits.of_memory(), client)
    }

    /// Creates an empty buffer for the body of a request from this address.
    pub(super) fn buffer(&self, client: ClientAddress, account: &Account) -> BodyBuffer<'_> {
        let account = account.clone();
        BodyBuffer { memory: self, client, account, bytes: Vec::new(), reserved: None }
    }

    fn reserve(
        &self,
        client: ClientAddress,
        account: &Account,
        bytes: usize,
    ) -> Result<Reserved, Rejection> {
        let long = match bytes {
            0..=UNIT => None,
            _ => {
                let units = bytes.div_ceil(UNIT) as u64;
                let share = self.long.share(owner(client));
                Some(share.try_take(units).map_err(|_| Rejection::BodiesFull)?)
            }
        };
        let charge = account.charge(bytes as u64).map_err(Rejection::NoMemory)?;
        Ok(Reserved { _charge: charge, _long: long })
    }
}

/// The reservations of one body, released on drop.
#[derive(Debug)]
struct Reserved {
    _charge: Charge,
    _long: Option<Grant>,
}

/// A body that is being read. Its capacity is reserved before it is allocated.
#[derive(Debug)]
pub(super) struct BodyBuffer<'a> {
    memory: &'a BodyMemory,
    client: ClientAddress,
    account: Account,
    bytes: Vec<u8>,
    reserved: Option<Reserved>,
}

impl BodyBuffer<'_> {
    /// Makes room for a body of this length, which is at most [`request_body::MAX`].
    ///
    /// # Errors
    ///
    /// [`Rejection::NoMemory`] and [`Rejection::BodiesFull`].
    pub(super) fn announce(&mut self, length: usize) -> Result<(), Rejection> {
        if length <= self.bytes.capacity() {
            return Ok(());
        }
        // The former reservation ends after the allocation, which may copy the bytes.
        let reserved = self.memory.reserve(self.client, &self.account, length)?;
        let limit = || Exhausted::AddressSpace { limit: address_space_limit().unwrap_or(u64::MAX) };
        let allocated = self.bytes.try_reserve_exact(length - self.bytes.len());
        allocated.map_err(|_| Rejection::NoMemory(limit()))?;
        self.reserved = Some(reserved);
        Ok(())
    }

    /// Appends a part of the body. A body of unknown length doubles its capacity as it grows.
    ///
    /// # Errors
    ///
    /// [`Rejection::TooLong`], and the errors of [`announce`](Self::announce).
    pub(super) fn append(&mut self, part: &[u8]) -> Result<(), Rejection> {
        if part.len() > request_body::MAX - self.bytes.len() {
            return Err(Rejection::TooLong(request_body::MAX));
        }
        let length = self.bytes.len() + part.len();
        if length > self.bytes.capacity() {
            self.announce(length.next_power_of_two().min(request_body::MAX))?;
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Returns the whole body, which holds the reservations until it is dropped.
    pub(super) fn finish(self) -> Bytes {
        match self.reserved {
            Some(reserved) => guarded_bytes(self.bytes, reserved),
            None => Bytes::new(),
        }
    }
}

/// Returns the owner by which the shares of an address are told from those of others.
fn owner(client: ClientAddress) -> Digest {
    match client {
        ClientAddress::Local => Digest::of(b"local"),
        ClientAddress::Remote(network) => Digest::of(&network.to_be_bytes()),
    }
}

#[cfg(test)]
impl BodyMemory {
    /// Creates the memory of a server without limits.
    pub(super) fn unlimited() -> Self {
        Self::new(Limits { total_memory: u64::MAX, ..Limits::default() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const LONGEST: u64 = request_body::MAX as u64;
    const HERE: ClientAddress = ClientAddress::Local;

    #[test]
    fn reservation_lives_as_long_as_the_bytes() {
        let memory = BodyMemory::unlimited();
        let account = memory.account();
        let mut buffer = memory.buffer(HERE, &account);
        buffer.announce(request_body::MAX).unwrap();
        assert_eq!((account.held(), buffer.bytes.capacity()), (LONGEST, request_body::MAX));
        buffer.append(b"whole").unwrap();
        let body = buffer.finish();
        assert_eq!((&body[..], account.held()), (&b"whole"[..], LONGEST));
        let part = body.slice(..1);
        drop(body);
        assert_eq!(account.held(), LONGEST);
        drop(part);
        assert_eq!(account.held(), 0);
        drop(memory.buffer(HERE, &account).announce(100));
        assert_eq!(account.held(), 0, "a body that never ends");
    }

    #[test]
    fn growing_body_never_exceeds_its_reservation() {
        let memory = BodyMemory::unlimited();
        let account = memory.account();
        let mut buffer = memory.buffer(HERE, &account);
        for _ in 0..request_body::MAX / 1000 {
            buffer.append(&[b'x'; 1000]).unwrap();
            assert_eq!(account.held(), buffer.bytes.capacity() as u64);
            assert!(buffer.bytes.capacity() <= request_body::MAX);
        }
        assert_eq!(
            buffer.append(&[b'x'; 1000]).unwrap_err(),
            Rejection::TooLong(request_body::MAX)
        );
    }

    #[test]
    fn body_without_memory_is_rejected_before_it_is_read() {
        let memory = BodyMemory::new(Limits { total_memory: 100, ..Limits::default() });
        let account = memory.account();
        let mut buffer = memory.buffer(HERE, &account);
        assert!(matches!(
            buffer.announce(request_body::MAX).unwrap_err(),
            Rejection::NoMemory(Exhausted::TotalMemory { limit: 100 })
        ));
        assert_eq!((account.held(), buffer.bytes.capacity()), (0, 0));
    }

    #[test]
    fn address_gets_half_of_the_memory_and_others_find_some() {
        let memory = BodyMemory::unlimited();
        let full = |client: ClientAddress| {
            let read = || {
                let mut buffer = memory.buffer(client, &memory.account());
                buffer.announce(request_body::MAX).map(|()| buffer.finish())
            };
            std::iter::repeat_with(read).map_while(Result::ok).collect::<Vec<_>>()
        };
        let held = full(HERE);
        assert_eq!(held.len() as u64, LONG_BODIES / LONGEST / 2);
        assert!(!full(ClientAddress::Remote(1)).is_empty());
        let mut short = memory.buffer(HERE, &memory.account());
        assert!(short.announce(UNIT).is_ok(), "short bodies need no share");
        drop(held);
        assert_eq!(full(HERE).len() as u64, LONG_BODIES / LONGEST / 2);
    }
}
