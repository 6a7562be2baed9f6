//! Tests of the parts that need no compiler, no apt and no network.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io;
use std::path::Path;

use palisade_wasip2::sources::{Entry, mirrors, parse_lines, parse_stanzas};
use palisade_wasip2::toolchain::Version;
use palisade_wasip2::{Error, apt, command};

const RUSTC: &str = "\
rustc 1.95.0 (59807616e 2026-04-14)
binary: rustc
commit-hash: 59807616e1fa2540724bfbac14d7976d7e4a3860
host: x86_64-unknown-linux-gnu
release: 1.95.0
LLVM version: 22.1.2
";

const STANZAS: &str = "\
# A comment before the first stanza
Types: deb deb-src
# http://snapshot.example/archive
URIs: http://deb.example/debian
Suites: bookworm
 bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://deb.example/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://sources.example/debian
Suites: bookworm
Components: main
";

fn entry(uri: &str, suite: &str, component: &str, signed_by: Option<&str>) -> Entry {
    Entry {
        uris: vec![uri.to_owned()],
        suites: vec![suite.to_owned()],
        components: vec![component.to_owned()],
        signed_by: signed_by.map(str::to_owned),
    }
}

fn versions(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn compiler_is_identified_by_release_and_host() {
    let version = Version::parse(RUSTC).unwrap();
    assert_eq!(
        (version.release.as_str(), version.host.as_str()),
        ("1.95.0", "x86_64-unknown-linux-gnu")
    );
}

#[test]
fn another_build_of_a_release_has_another_key() {
    let other = RUSTC.replace("59807616e1", "59807616e2");
    let (one, two) = (Version::parse(RUSTC).unwrap(), Version::parse(&other).unwrap());
    assert!(one.key.starts_with("1.95.0-"), "{}", one.key);
    assert_ne!(one.key, two.key);
    assert_eq!(one, Version::parse(RUSTC).unwrap());
}

#[test]
fn missing_release_line_is_named() {
    let refusal = Version::parse("rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\n").unwrap_err();
    assert_eq!(refusal.to_string(), "`rustc -vV` does not say its release");
}

#[test]
fn debian_version_matches_its_release_exactly() {
    for (offered, matches) in [
        ("1.95.0+dfsg1-1~bpo13+1", true),
        ("1:1.95.0-2", true),
        ("1.95.0", true),
        ("1.95.0~beta.2+dfsg1-1", false),
        ("1.95.01-1", false),
        ("1.95.1+dfsg1-1", false),
        ("11.95.0-1", false),
        ("1.95-1", false),
    ] {
        assert_eq!(
            apt::matching(&versions(&[offered]), "1.95.0"),
            matches.then_some(offered),
            "{offered}"
        );
    }
}

#[test]
fn first_of_several_matching_versions_is_used() {
    let offered = versions(&["1.96.1+dfsg1-2", "1.95.0+dfsg1-2~bpo13+1", "1.95.0+dfsg1-1~bpo13+1"]);
    assert_eq!(apt::matching(&offered, "1.95.0"), Some("1.95.0+dfsg1-2~bpo13+1"));
}

#[test]
fn one_line_sources_are_parsed() {
    let text = "# deb http://off.example/debian bookworm main\n\
                deb http://deb.example/debian bookworm main contrib # ours\n\
                deb [arch=amd64 signed-by=/k/vendor.gpg] https://vendor.example/apt stable main\n\
                deb-src http://deb.example/debian bookworm main\n\
                \n\
                deb\n\
                debian nonsense\n";
    let read = parse_lines(text);
    let [debian, vendor] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(debian.uris, ["http://deb.example/debian"]);
    assert_eq!(debian.suites, ["bookworm"]);
    assert_eq!(debian.components, ["main", "contrib"]);
    assert_eq!(debian.signed_by, None);
    assert_eq!(
        *vendor,
        entry("https://vendor.example/apt", "stable", "main", Some("/k/vendor.gpg"))
    );
}

#[test]
fn deb822_sources_are_parsed() {
    let read = parse_stanzas(STANZAS);
    let [debian, security] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(debian.uris, ["http://deb.example/debian"]);
    assert_eq!(debian.suites, ["bookworm", "bookworm-updates"]);
    assert_eq!(debian.signed_by.as_deref(), Some("/usr/share/keyrings/debian-archive-keyring.gpg"));
    assert_eq!(security.uris, ["http://deb.example/debian-security"]);
}

#[test]
fn security_archive_is_not_a_mirror() {
    assert_eq!(mirrors(&parse_stanzas(STANZAS)), ["http://deb.example/debian"]);
    assert!(
        mirrors(&[entry("http://deb.example/debian", "bookworm-security", "main", None)])
            .is_empty()
    );
}

#[test]
fn foreign_or_partial_repositories_are_not_mirrors() {
    let others = [
        entry(
            "https://vendor.example/debian",
            "bookworm",
            "main",
            Some("/usr/share/keyrings/vendor.gpg"),
        ),
        entry("https://packages.example/apt", "cloud", "stable", None),
        entry("cdrom:[Debian]", "bookworm", "main", None),
    ];
    assert!(mirrors(&others).is_empty());
}

#[test]
fn mirrors_are_unique_ordered_and_bounded() {
    let mut entries = vec![
        entry("http://inside.example/packages", "bookworm", "main", None),
        entry("http://deb.example/debian/", "bookworm", "main", None),
        entry("http://deb.example/debian", "bookworm-updates", "main", None),
    ];
    assert_eq!(mirrors(&entries), ["http://deb.example/debian", "http://inside.example/packages"]);
    entries
        .extend((0..40).map(|number| {
            entry(&format!("http://{number}.example/apt"), "bookworm", "main", None)
        }));
    assert_eq!(mirrors(&entries).len(), 4);
}

#[test]
fn outer_build_variables_are_removed() {
    for name in [
        "CARGO",
        "CARGO_BUILD_TARGET",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_FEATURE_DEFAULT",
        "CARGO_INCREMENTAL",
        "CARGO_LLVM_COV",
        "CARGO_PROFILE_RELEASE_LTO",
        "CARGO_TARGET_DIR",
        "CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS",
        "CLIPPY_ARGS",
        "LLVM_PROFILE_FILE",
        "OUT_DIR",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "RUSTFLAGS",
        "TARGET",
    ] {
        assert!(command::is_foreign(name), "{name}");
    }
}

#[test]
fn user_registry_proxy_and_jobserver_are_kept() {
    for name in [
        "CARGO_HOME",
        "CARGO_HTTP_PROXY",
        "CARGO_MAKEFLAGS",
        "CARGO_NET_OFFLINE",
        "CARGO_REGISTRIES_INSIDE_INDEX",
        "CARGO_SOURCE_CRATES_IO_REPLACE_WITH",
        "HTTPS_PROXY",
        "PATH",
        "RUSTUP_TOOLCHAIN",
        "TARGET_CC",
    ] {
        assert!(!command::is_foreign(name), "{name}");
    }
}

#[test]
fn missing_target_error_is_one_line_with_advice() {
    let offered = versions(&["1.96.1+dfsg1-2", "1.94.1+dfsg1-1"]);
    let fallback = Error::NoSource { release: "1.95.0".to_owned(), offered };
    assert_eq!(
        Error::NoTarget { fallback: Box::new(fallback) }.to_string(),
        "the target wasm32-wasip2 is not installed: run `rustup target add wasm32-wasip2` (making it from Debian's packages \
         failed: the mirror has no rust-src 1.95.0, only 1.96.1+dfsg1-2, 1.94.1+dfsg1-1)"
    );
}

#[test]
fn failed_program_is_quoted_briefly() {
    let said = "Get:1 http://deb.example\nE: Failed to fetch http://deb.example  404\nE: Some index files failed\n";
    let refusal = Error::command("apt-get update", said).to_string();
    assert_eq!(refusal, "apt-get update failed: E: Failed to fetch http://deb.example  404");
    assert!(Error::command("rustc", &"x".repeat(100_000)).to_string().len() < 300);
    assert_eq!(Error::command("rustc", "\n \n").to_string(), "rustc failed: it said nothing");
}

#[test]
fn every_refusal_is_one_line() {
    let refusals = [
        Error::NoProgram { program: "apt-get".to_owned() },
        Error::NoMirror,
        Error::NoKeyring,
        Error::NoSource { release: "1.95.0".to_owned(), offered: Vec::new() },
        Error::Incomplete { what: "C library".to_owned() },
        Error::command("dpkg", "one\ntwo"),
        Error::io("create", Path::new("guests"), io::ErrorKind::PermissionDenied.into()),
    ];
    for refusal in
        refusals.map(|fallback| Error::NoTarget { fallback: Box::new(fallback) }.to_string())
    {
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
        assert!(refusal.contains("rustup target add wasm32-wasip2"), "{refusal}");
    }
}
