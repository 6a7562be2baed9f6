//! Plugins that are added from web servers: https only but on this machine, with bounded redirects
//! and sizes.

use crate::server::{Reply, Server};
use crate::{add, files, keys, lock, lock_text, looks, plugin, program, signature, trust};
use palisade_tests::World;

/// Returns a server that has a plugin at `/git.wasm`, and nothing else.
fn one_file(bytes: Vec<u8>) -> impl Fn(&crate::server::Request) -> Reply {
    move |request| match request.path.as_str() {
        "/git.wasm" => Reply::new(200, bytes.clone()),
        _ => Reply::new(404, "nothing here"),
    }
}

#[test]
fn plugin_of_a_server_with_tls_is_installed() {
    let world = World::new();
    let (server, authority) = Server::secure(&world, one_file(plugin("look")));
    let url = format!("https://{}/git.wasm", server.authority());
    let ran = add(&world, &url).run().exits_with(1);
    ran.stderr_contains(&["no encrypted connection"]);
    assert!(server.requests().is_empty() && files(&world).is_empty());
    let _ = add(&world, &url).env("SSL_CERT_FILE", &authority).run().exits_with(0);
    looks(&world);
    assert!(lock_text(&world).contains(&format!("source = \"{url}\"")));
    let paths: Vec<String> = server.requests().into_iter().map(|it| it.path).collect();
    assert_eq!(paths, ["/git.wasm", "/git.wasm.minisig"]);
}

#[test]
fn run_after_an_installation_sends_no_request() {
    let world = World::new();
    let server = Server::start(one_file(plugin("look")));
    let _ = add(&world, &format!("http://{}/git.wasm", server.authority())).run().exits_with(0);
    let before = server.requests().len();
    looks(&world);
    let _ = program(&world, &["list"]).run().exits_with(0);
    assert_eq!(server.requests().len(), before);
}

#[test]
fn redirects_are_followed_within_bounds() {
    let world = World::new();
    let server = Server::start(move |request| match request.path.as_str() {
        "/real.wasm" => Reply::new(200, plugin("look")),
        path => match path.strip_prefix("/hop").and_then(|rest| rest.parse::<u32>().ok()) {
            Some(1) => Reply::new(302, "").with("location", "/real.wasm"),
            Some(more) => Reply::new(302, "").with("location", &format!("/hop{}", more - 1)),
            None => Reply::new(404, ""),
        },
    });
    let url = |hops: u32| format!("http://{}/hop{hops}", server.authority());
    let _ = add(&world, &url(5)).args(["--name", "git"]).run().exits_with(0);
    looks(&world);
    let ran = add(&world, &url(6)).args(["--name", "other"]).run().exits_with(4);
    ran.stderr_contains(&["there are more than 5 in a row"]);
}

#[test]
fn redirect_away_from_encryption_or_to_a_metadata_service_is_refused() {
    let target = Server::start(one_file(plugin("look")));
    for (to, says) in [
        (format!("http://{}/git.wasm", target.authority()), "unencrypted"),
        ("https://169.254.169.254/git.wasm".to_owned(), "no address that may be connected to"),
        ("https://user@localhost/git.wasm".to_owned(), "names a user"),
        ("file:///etc/passwd".to_owned(), "the URL is refused"),
        ("//example.org/x".to_owned(), "no whole URL or path"),
    ] {
        let world = World::new();
        let (server, authority) =
            Server::secure(&world, move |_| Reply::new(302, "").with("location", &to));
        let url = format!("https://{}/git.wasm", server.authority());
        let ran = add(&world, &url).env("SSL_CERT_FILE", &authority).run().exits_with(4);
        ran.stderr_contains(&[says]);
        assert!(files(&world).is_empty() && !lock(&world).exists());
    }
    assert!(target.requests().is_empty());
}

#[test]
fn body_that_is_too_large_ends_at_the_limit() {
    let world = World::new();
    let announced = Server::start(|_| Reply { length: Some(1 << 40), ..Reply::new(200, "x") });
    let url = format!("http://{}/git.wasm", announced.authority());
    add(&world, &url).run().exits_with(7).stderr_contains(&["more than 67108864 bytes"]);
    // The length is announced as the limit, and more comes.
    let longer =
        Server::start(|_| Reply { length: None, ..Reply::new(200, vec![0; (64 << 20) + 1]) });
    let url = format!("http://{}/git.wasm", longer.authority());
    add(&world, &url).run().exits_with(7).stderr_contains(&["more than 67108864 bytes"]);
    let cut = Server::start(|_| Reply { length: Some(1 << 20), ..Reply::new(200, plugin("look")) });
    let url = format!("http://{}/git.wasm", cut.authority());
    add(&world, &url).run().exits_with(1).stderr_contains(&["failed"]);
    let many = Server::start(|_| {
        let filled = |reply: Reply, n: u32| reply.with(&format!("x-{n}"), "y");
        (0..40_000).fold(Reply::new(200, "x"), filled)
    });
    let url = format!("http://{}/git.wasm", many.authority());
    let _ = add(&world, &url).run().exits_with(1);
    assert!(files(&world).is_empty() && !lock(&world).exists());
}

#[test]
fn failure_of_a_server_is_quoted_within_bounds() {
    let world = World::new();
    let said = format!("\u{1b}[2Jgone {}", "x".repeat(100_000));
    let server = Server::start(move |_| Reply::new(404, said.clone()));
    let ran = add(&world, &format!("http://{}/git.wasm?key=planted", server.authority())).run();
    let ran = ran.exits_with(3);
    ran.stderr_contains(&["the server answered 404", "gone"]);
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains("planted"), "{ran:?}");
    assert!(ran.stderr.len() < 1_000, "{}", ran.stderr.len());
}

#[test]
fn signature_of_a_server_is_verified() {
    let world = World::new();
    let (secret, public) = keys(&world, "author");
    let bytes = plugin("look");
    let signed = signature(&world, &secret, &bytes);
    let server = Server::start(move |request| match request.path.as_str() {
        "/a/git.wasm" | "/b/git.wasm" => Reply::new(200, bytes.clone()),
        "/a/git.wasm.minisig" => Reply::new(200, signed.clone()),
        _ => Reply::new(403, "no"),
    });
    let at = |path: &str| format!("http://{}/{path}", server.authority());
    trust(&world, &[&public], &at(""));
    add(&world, &at("b/git.wasm")).run().exits_with(6).stderr_contains(&["there is no signature"]);
    let ran = add(&world, &at("a/git.wasm")).run().exits_with(0);
    assert!(ran.stdout.contains(&format!("signature  valid, by {public}")), "{ran:?}");
    looks(&world);
}
