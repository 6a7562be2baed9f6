//! Spellings of this machine and of metadata services, as hosts and as addresses of a name.

use super::server::Server;
use super::{Call, network};

/// Hosts that some resolver or library reads as loopback or as a metadata service.
const HOSTS: [&str; 34] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "127.127.127.127",
    "0.0.0.0",
    "0",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "00000177.1",
    "127.0.0.01",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "ip6-localhost",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "[::ffff:169.254.169.254]",
    "[fd00:ec2::254]",
    "metadata.google.internal",
    "100.100.100.200",
];

/// Addresses that a hostile name has.
const ADDRESSES: [&str; 16] = [
    "127.0.0.1",
    "127.0.0.2",
    "::1",
    "::",
    "0.0.0.0",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "2002:7f00:1::",
    "169.254.169.254",
    "fd00:ec2::254",
    "10.0.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "fe80::1",
];

#[tokio::test]
async fn no_spelling_of_this_machine_is_reached_without_its_own_rule() {
    let server = Server::echo().await;
    let port = server.port();
    let names = ["localhost", "a.localhost", "ip6-localhost", "metadata.google.internal"];
    let names: Vec<(&str, &[&str])> =
        names.into_iter().map(|name| (name, &["127.0.0.1"][..])).collect();
    let network = network(&[&names[..], &[("server.test", &["127.0.0.1"][..])]].concat());
    let granted = format!("GET http://server.test:{port} private");
    for host in HOSTS {
        let mut call = Call::with_rules(&network, &[&granted, "GET http://*.example.org"]);
        let url = format!("http://{host}:{port}/");
        assert!(call.get(&url).await.is_err(), "{host}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
    let mut call = Call::with_rules(&network, &[&granted]);
    assert!(call.get(&format!("http://server.test:{port}/")).await.is_ok(), "the legitimate twin");
}

#[tokio::test]
async fn no_rule_for_a_public_host_reaches_this_machine() {
    let server = Server::echo().await;
    let port = server.port();
    for host in HOSTS {
        // A rule for the very host, without `private`, where there can be one.
        let rule = format!("GET http://{host}:{port}");
        if rule.parse::<crate::NetRule>().is_err() {
            continue;
        }
        let network = network(&[("localhost", &["127.0.0.1"]), ("a.localhost", &["::1"])]);
        let mut call = Call::with_rules(&network, &[&rule]);
        assert!(call.get(&format!("http://{host}:{port}/")).await.is_err(), "{host}");
    }
    for address in ADDRESSES {
        let network = network(&[("hostile.test", &[address])]);
        let mut call = Call::with_rules(&network, &[&format!("GET http://hostile.test:{port}")]);
        assert!(call.get(&format!("http://hostile.test:{port}/")).await.is_err(), "{address}");
        assert_eq!(call.refusal(), "address_refused", "{address}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn private_rule_reaches_no_metadata_service() {
    for host in ["169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "[::ffff:127.0.0.1]"] {
        let mut call = Call::with_rules(&network(&[]), &[&format!("GET http://{host} private")]);
        assert!(call.get(&format!("http://{host}/")).await.is_err(), "{host}");
        assert_eq!(call.refusal(), "address_refused", "{host}");
    }
}
