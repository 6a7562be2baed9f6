//! A guest that tries every WASI interface that a tool might reach.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant, SystemTime};

use palisade_guest::{Json, tool};

/// Tries every interface.
#[tool(side_effects = "none")]
fn look() -> Json<BTreeMap<&'static str, String>> {
    let mut input = Vec::new();
    let read = std::io::stdin().read_to_end(&mut input);
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(2));
    let said = std::io::stdout().write_all(b"unread");
    Json(BTreeMap::from([
        ("arguments", std::env::args().count().to_string()),
        ("environment", std::env::vars().count().to_string()),
        ("input", format!("{} bytes, {}", input.len(), outcome(&read))),
        ("stdout", outcome(&said)),
        ("clock-is-after-2020", (since_1970 > Duration::from_secs(1_577_836_800)).to_string()),
        ("time-passes", (start.elapsed() >= Duration::from_millis(2)).to_string()),
        ("connect", outcome(&TcpStream::connect("127.0.0.1:80"))),
        ("listen", outcome(&TcpListener::bind("127.0.0.1:0"))),
        ("datagram", outcome(&UdpSocket::bind("127.0.0.1:0"))),
        ("resolve", outcome(&"localhost:80".to_socket_addrs())),
        ("random-differs", (seed() != seed()).to_string()),
    ]))
}

fn outcome<T, E>(result: &Result<T, E>) -> String {
    if result.is_ok() { "done" } else { "refused" }.to_owned()
}

/// Returns a hash that depends on a random number of the host.
fn seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0)
}

palisade_guest::export!(look);
