//! The rate limits for each client address: one for requests, one for requests that need no token,
//! and one for requests with a missing or wrong token.

use super::client_address::ClientAddress;
use crate::rate_limit::{KeyedBuckets, Rate, TokenBucket};
use std::time::Duration;
use tokio::time::Instant;

/// The rate of requests for each remote address.
const REMOTE: Rate = Rate::per_second(200, 400);
/// The rate of requests for all local clients together, several times what this server answers: 8
/// callers of a quick tool reach more than 10,000 per second.
const LOCAL: Rate = Rate::per_second(50_000, 100_000);
/// The rate of requests without a token to public paths, for each remote address.
const REMOTE_PUBLIC: Rate = Rate::per_second(50, 200);
/// The rate of requests without a token to public paths, for all local clients together.
const LOCAL_PUBLIC: Rate = Rate::per_second(5_000, 10_000);
/// The rate of failed authentication for each remote address.
const REMOTE_FAILURES: Rate = Rate::per_second(10, 20);
/// The rate of failed authentication for all local clients together.
const LOCAL_FAILURES: Rate = Rate::per_second(500, 1_000);

/// The rate limits of a server.
#[derive(Debug)]
pub(super) struct RequestRates {
    /// The requests that the server lets in.
    pub(super) requests: AddressBuckets,
    /// The requests without a token to public paths.
    pub(super) public: AddressBuckets,
    /// The requests with a missing or wrong token.
    pub(super) failures: AddressBuckets,
}

/// The token buckets of one limit. Local clients have a higher rate, in a bucket that no number of
/// remote addresses evicts.
#[derive(Debug)]
pub(super) struct AddressBuckets {
    local: TokenBucket,
    remote: KeyedBuckets<u64>,
}

impl RequestRates {
    pub(super) fn new(now: Instant) -> Self {
        let buckets = |local, remote| AddressBuckets {
            local: TokenBucket::new(local, now),
            remote: KeyedBuckets::new(remote, now),
        };
        let requests = buckets(LOCAL, REMOTE);
        let public = buckets(LOCAL_PUBLIC, REMOTE_PUBLIC);
        Self { requests, public, failures: buckets(LOCAL_FAILURES, REMOTE_FAILURES) }
    }
}

impl AddressBuckets {
    /// Takes one token of a client. Fails with the time until the next one is available.
    pub(super) fn take(&mut self, client: ClientAddress, now: Instant) -> Result<(), Duration> {
        match client {
            ClientAddress::Local => self.local.take(now),
            ClientAddress::Remote(address) => self.remote.take(address, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE_CLIENT: ClientAddress = ClientAddress::Remote(1);
    const SECOND: Duration = Duration::from_secs(1);

    fn taken(buckets: &mut AddressBuckets, client: ClientAddress, now: Instant) -> usize {
        (0..200_000).take_while(|_| buckets.take(client, now).is_ok()).count()
    }

    #[test]
    fn each_limit_has_a_burst_and_a_rate() {
        let start = Instant::now();
        let RequestRates { mut requests, mut public, mut failures } = RequestRates::new(start);
        for (buckets, remote, local) in [
            (&mut requests, (400, 200), (100_000, 50_000)),
            (&mut public, (200, 50), (10_000, 5_000)),
            (&mut failures, (20, 10), (1_000, 500)),
        ] {
            for (client, (burst, per_second)) in
                [(REMOTE_CLIENT, remote), (ClientAddress::Local, local)]
            {
                assert_eq!(taken(buckets, client, start), burst, "{client:?}");
                assert_eq!(taken(buckets, client, start + SECOND), per_second, "{client:?}");
            }
        }
    }

    #[test]
    fn remote_clients_use_up_no_local_requests() {
        let start = Instant::now();
        let mut requests = RequestRates::new(start).requests;
        for address in 0..10_000 {
            let _ = requests.take(ClientAddress::Remote(address), start);
        }
        assert_eq!(taken(&mut requests, ClientAddress::Local, start), 100_000);
    }
}
