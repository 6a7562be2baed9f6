//! HTTP: which clients are let in, by origin, host name, address and token.

use super::http::asked;
use super::serving;
use super::token::secret;
use palisade_tests::World;
use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::mcp_http::Endpoint;
use rustix::process::{Pid, Signal, kill_process};

const TOKEN: &str = "a-token-that-nobody-guesses";

#[test]
fn foreign_origin_and_host_name_are_refused() {
    let world = World::new();
    let endpoint =
        Endpoint::start(serving(&world, LOADER_GOOD), &["--origin", "https://app.example"]);
    let own = format!("http://{}", endpoint.address);
    for (headers, status) in [
        (&[("Host", "evil.example")][..], 403),
        (&[("Host", "evil.example"), ("Origin", "http://evil.example")], 403),
        (&[("Origin", "http://evil.example")], 403),
        (&[("Origin", "null")], 403),
        (&[("Origin", "https://app.example")], 200),
        (&[("Origin", own.as_str())], 200),
    ] {
        assert_eq!(asked(&endpoint, "good", headers).status, status, "{headers:?}");
    }
}

#[test]
fn cors_allows_only_configured_origins() {
    const APP: (&str, &str) = ("Origin", "https://app.example");
    let (world, more) = (World::new(), ["--origin", APP.1]);
    let file = world.home().join("token");
    secret(&file, TOKEN);
    let file = ["--token-file", file.to_str().unwrap()];
    let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &[&more[..], &file].concat());
    let wanted = [
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "authorization,content-type,mcp-param-text,x-other"),
    ];
    let asked_first =
        |origin: &[(&str, &str)]| endpoint.send("OPTIONS", &[origin, &wanted].concat(), "");
    // A browser sends no token with this question.
    let answer = asked_first(&[APP]);
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (204, Some(APP.1)),
        "{answer:?}"
    );
    assert_eq!(answer.header("access-control-allow-methods"), Some("post, get, delete"));
    let allowed: Vec<&str> =
        answer.header("access-control-allow-headers").unwrap().split(", ").collect();
    let needed = [
        "authorization",
        "content-type",
        "mcp-session-id",
        "mcp-protocol-version",
        "last-event-id",
    ];
    let needed = needed.iter().chain(&["mcp-method", "mcp-name", "mcp-param-text"]);
    assert!(
        needed.clone().all(|name| allowed.contains(name)) && !allowed.contains(&"x-other"),
        "{allowed:?}"
    );
    for origin in [
        &[("Origin", "https://evil.example")][..],
        &[("Origin", "null")],
        &[APP, ("Host", "evil.example")],
    ] {
        let answer = asked_first(origin);
        assert_eq!(
            (answer.status, answer.header("access-control-allow-methods")),
            (403, None),
            "{answer:?}"
        );
        assert!(
            answer.header("access-control-allow-origin").is_none_or(|shared| shared == APP.1),
            "{answer:?}"
        );
    }
    assert_eq!(asked_first(&[]).status, 401, "no web page sends the request");
    // The page may read the answer, an error as well.
    let right = format!("Bearer {TOKEN}");
    for (headers, status) in [(&[APP, ("Authorization", &right)][..], 200), (&[APP], 401)] {
        let answer = asked(&endpoint, "good", headers);
        assert_eq!(
            (answer.status, answer.header("access-control-allow-origin")),
            (status, Some(APP.1)),
            "{answer:?}"
        );
        assert!(answer.header("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    }
    let answer = asked(&endpoint, "good", &[("Authorization", &right)]);
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, None),
        "{answer:?}"
    );
}

#[test]
fn wildcard_server_prints_a_reachable_url_and_its_names() {
    let world = World::new();
    let file = world.home().join("token");
    secret(&file, TOKEN);
    let words = ["--token-file", file.to_str().unwrap(), "--host", "tools.example"];
    let endpoint = Endpoint::at("0.0.0.0:0", serving(&world, LOADER_GOOD), &words);
    assert!(endpoint.address.starts_with("127.0.0.1:"), "{}", endpoint.address);
    let right = format!("Bearer {TOKEN}");
    assert_eq!(asked(&endpoint, "good", &[("Authorization", &right)]).status, 200);
    let port = endpoint.address.rsplit(':').next().unwrap();
    let every = format!("0.0.0.0:{port}");
    assert_eq!(
        asked(&endpoint, "good", &[("Authorization", &right), ("Host", &every)]).status,
        403
    );
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be terminated");
    let told =
        format!("listens on {every}, and answers to 127.0.0.1, [::1], localhost, tools.example");
    endpoint.end().stderr_contains(&[&told]);
}

#[test]
fn token_is_required_if_set() {
    let world = World::new();
    let file = world.home().join("token");
    secret(&file, TOKEN);
    let endpoint =
        Endpoint::guarded(serving(&world, LOADER_GOOD), &["--token-file", file.to_str().unwrap()]);
    let right = format!("Bearer {TOKEN}");
    assert_eq!(asked(&endpoint, "good", &[]).status, 401);
    assert_eq!(
        asked(&endpoint, "good", &[("Authorization", "Bearer another-token-that-is-long")]).status,
        401
    );
    assert_eq!(asked(&endpoint, "good", &[("Authorization", &right)]).status, 200);
}

#[test]
fn verbose_server_logs_rejected_requests_with_reason() {
    let world = World::new();
    let endpoint = Endpoint::start(serving(&world, LOADER_GOOD), &["--verbose"]);
    assert_eq!(asked(&endpoint, "good", &[("Host", "evil.example")]).status, 403);
    assert_eq!(endpoint.send("POST", &[], "[]").status, 400);
    assert_eq!(asked(&endpoint, "good", &[]).status, 200);
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be terminated");
    let said = endpoint.end().stderr;
    for line in [
        "POST /mcp: refused with 403 Forbidden, this server does not",
        "POST /mcp: refused with 400 Bad Request",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(said.matches("refused").count(), 2, "{said}");
}

#[test]
fn reachable_address_without_token_is_refused() {
    let world = World::new();
    let open = ["serve", "--http", "0.0.0.0:0", "--token", "none"];
    let ran = serving(&world, LOADER_GOOD).args(open).run().exits_with(2);
    ran.stderr_contains(&[
        "can be reached from other machines",
        "set a token, or serve on 127.0.0.1",
    ]);
    // All missing options are reported at once.
    ran.stderr_contains(&["leave out `--token none`", "--token-file FILE", "--host tools.example"]);
    let named = serving(&world, LOADER_GOOD).args(open).args(["--host", "tools.example"]);
    let said = named.run().exits_with(2).stderr;
    assert!(said.contains("--token-file FILE") && !said.contains("so give each name"), "{said}");
    let short = serving(&world, LOADER_GOOD).env("PALISADE_SERVE_TOKEN", "short").args([
        "serve",
        "--http",
        "127.0.0.1:0",
    ]);
    let ran = short.run().exits_with(2);
    ran.stderr_contains(&["PALISADE_SERVE_TOKEN: a token has 16 to 1024 characters"]);
    assert!(!ran.stderr.contains("short"), "{}", ran.stderr);
    // A token is not accepted as an argument, and `none` is valid with HTTP only.
    let _ = serving(&world, LOADER_GOOD)
        .args(["serve", "--http", "127.0.0.1:0", "--token", TOKEN])
        .run()
        .exits_with(2);
    let _ = serving(&world, LOADER_GOOD).args(["serve", "--token", "none"]).run().exits_with(2);
}
