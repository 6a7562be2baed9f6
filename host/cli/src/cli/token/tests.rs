//! The names and files of tokens.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;

#[test]
fn generated_tokens_are_unique() {
    let made = || match Entry::fresh().unwrap() {
        Entry::Made { text, .. } => text,
        Entry::Given { .. } | Entry::Open => panic!("it is made"),
    };
    let one = made();
    let other = made();
    assert_eq!(one.len(), 2 * RANDOM);
    assert_ne!(one, other);
}

#[test]
fn default_token_directories_are_always_hidden() {
    let user = rustix::process::geteuid().as_raw();
    let hidden = folders();
    assert!(
        hidden.contains(&PathBuf::from(format!("/run/user/{user}/palisade/tokens"))),
        "{hidden:?}"
    );
    let home = etcetera::home_dir().unwrap();
    assert!(hidden.contains(&home.join(".local/state/palisade/tokens")), "{hidden:?}");
}

#[test]
fn host_name_leads_to_every_matching_token_file() {
    let of = |host: &str| {
        addresses(host)
            .into_iter()
            .map(|ip| name(SocketAddr::new(ip, 8080), Holder::Client))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("127.0.0.1"), ["127.0.0.1-8080.token", "0.0.0.0-8080.token", "__-8080.token"]);
    assert_eq!(of("[::1]"), ["__1-8080.token", "__-8080.token"]);
    assert_eq!(of("LOCALHOST")[..2], ["127.0.0.1-8080.token", "__1-8080.token"]);
    assert_eq!(
        of("192.0.2.1"),
        ["192.0.2.1-8080.token"],
        "a server there may be another machine's"
    );
    assert!(of("tools.example").is_empty());
}

#[test]
fn token_file_names_the_address_of_its_server() {
    for (listened, address) in [
        ("127.0.0.1:8080", Some("127.0.0.1:8080")),
        ("0.0.0.0:8080", Some("127.0.0.1:8080")),
        ("[::1]:8080", Some("[::1]:8080")),
        ("[::]:8080", Some("[::1]:8080")),
        ("192.0.2.1:8080", None),
    ] {
        let file = name(listened.parse().unwrap(), Holder::Operator);
        let expected = address.map(|it| it.parse::<SocketAddr>().unwrap());
        assert_eq!(reached(&file), expected, "{listened}");
        assert_eq!(reached(&name(listened.parse().unwrap(), Holder::Client)), None);
    }
    for other in ["127.0.0.1-8080.operator.logins", "-.operator.token", "x", ""] {
        assert_eq!(reached(other), None, "{other}");
    }
}
