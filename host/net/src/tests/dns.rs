//! Names that change between two lookups, with a name server of the tests' own.

use super::server::{Server, Wire, ok};
use super::{Call, grants};
use crate::Network;
use crate::Resolver;
use crate::limits;
use palisade::{BoxFuture, SideEffects};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// A name server that answers each question for an IPv4 address with the next of its addresses,
/// again and again, and has no others.
struct Names {
    address: SocketAddr,
    asked: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Names {
    async fn start(addresses: &[[u8; 4]]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked: Arc<Mutex<usize>> = Arc::default();
        let (count, addresses) = (asked.clone(), addresses.to_vec());
        let task = tokio::spawn(async move {
            let mut question = [0; 512];
            loop {
                let (length, from) = socket.recv_from(&mut question).await.unwrap();
                let answer = answer(&question[..length], || {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    addresses[(*count - 1) % addresses.len()]
                });
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        Self { address, asked, task }
    }

    /// Returns the networks that ask this server.
    fn networks(&self) -> Vec<Network> {
        let networks = vec![Network::new(Arc::new(Asking(self.address)), Vec::new())];
        #[cfg(feature = "hickory")]
        let networks = {
            let server = crate::NameServer::new(self.address).unwrap();
            [networks, vec![Network::new(Arc::new(server), Vec::new())]].concat()
        };
        networks
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A resolver that asks a name server for IPv4 addresses.
#[derive(Debug)]
struct Asking(SocketAddr);

impl Resolver for Asking {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut question = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            for label in name.split('.') {
                question.push(u8::try_from(label.len()).unwrap());
                question.extend(label.as_bytes());
            }
            question.extend([0, 0, 1, 0, 1]);
            let socket = UdpSocket::bind("127.0.0.1:0").await?;
            socket.send_to(&question, self.0).await?;
            let mut answer = [0; 512];
            let length = socket.recv(&mut answer).await?;
            let address: [u8; 4] = answer[length - 4..length].try_into().unwrap();
            Ok(vec![IpAddr::from(address)])
        })
    }
}

/// Returns the answer to a question: an address that expires at once, or none.
fn answer(question: &[u8], address: impl FnOnce() -> [u8; 4]) -> Vec<u8> {
    let name_ends = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap();
    let asked = &question[12..name_ends + 5];
    let is_v4 = question[name_ends + 1..name_ends + 3] == [0, 1];
    let mut answer = question[..2].to_vec();
    answer.extend([0x84, 0x00, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
    answer.extend(asked);
    if is_v4 {
        // The name of the question, type A, class IN, no time to live, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address());
    }
    answer
}

#[tokio::test]
async fn name_is_looked_up_once_and_the_checked_address_is_connected_to() {
    let first = Server::echo().await;
    let port = first.port();
    let second_ip = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let echo = Arc::new(|_: &str| Wire::Bytes(ok(b"second")));
    let second = Server::start_at(second_ip, port, echo).await;
    let rule = format!("GET http://rebind.test:{port} private");
    let names = Names::start(&[[127, 0, 0, 1], [127, 0, 0, 2]]).await;
    let mut call = Call::with_rules(&names.networks()[0], &[&rule]);
    call.get(&format!("http://rebind.test:{port}/")).await.unwrap();
    assert_eq!((first.heads().len(), second.heads().len()), (1, 0));
    assert_eq!(*names.asked.lock().unwrap(), 1);
    // The next request looks the name up again.
    call.get(&format!("http://rebind.test:{port}/")).await.unwrap();
    assert_eq!((first.heads().len(), second.heads().len()), (1, 1));
}

#[tokio::test]
async fn name_that_moves_to_this_machine_is_never_reached() {
    let server = Server::echo().await;
    let port = server.port();
    let moves = [[127, 0, 0, 1], [169, 254, 169, 254], [10, 0, 0, 1], [0, 0, 0, 0]];
    let names = Names::start(&moves).await;
    let networks = names.networks();
    for network in &networks {
        for attempt in 0..20 {
            let mut call = Call::with_rules(network, &[&format!("GET http://rebind.test:{port}")]);
            assert!(call.get(&format!("http://rebind.test:{port}/")).await.is_err(), "{attempt}");
            assert_eq!(call.refusal(), "address_refused", "{attempt}");
        }
    }
    assert_eq!(server.heads(), Vec::<String>::new());
    assert_eq!(*names.asked.lock().unwrap(), 20 * networks.len());
}

/// A resolver that never answers, but for one name.
#[derive(Debug, Default)]
struct Silent {
    /// The look-ups that were begun.
    begun: AtomicU64,
}

impl Resolver for Silent {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            if name != "server.test" {
                self.begun.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        })
    }
}

#[tokio::test]
async fn lookups_of_dropped_requests_leave_some_to_another_plugin() {
    let server = Server::start(Arc::new(|_| Wire::Bytes(ok(b"hello")))).await;
    let resolver = Arc::new(Silent::default());
    let network = Network::new(resolver.clone(), Vec::new());
    let rules = grants(&["GET https://*.silent.test"]);
    let mut call = Call::of(&network, rules, SideEffects::Read, b"a plugin");
    for index in 0..3 * limits::LOOKUPS {
        let url = format!("https://name{index}.silent.test/");
        let sent = tokio::time::timeout(Duration::from_millis(20), call.get(&url)).await;
        assert!(sent.is_err(), "it has no answer: {sent:?}");
    }
    let begun = resolver.begun.load(Ordering::SeqCst);
    assert_eq!(begun, limits::LOOKUPS / 2, "one plugin gets half, until they are answered");
    let url = format!("http://server.test:{}/", server.port());
    let rules = grants(&[&format!("GET {url} private")]);
    let mut other = Call::of(&network, rules, SideEffects::Read, b"another plugin");
    assert_eq!(other.get(&url).await.unwrap().body, b"hello");
}
