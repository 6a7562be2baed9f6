//! Tests of each check, with requests that pass and requests that fail.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use http_body_util::Full;
use std::time::Duration;

const TOKEN: &str = "0123456789abcdef";
const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

fn gate(token: Option<&str>) -> Gate {
    let bound = "127.0.0.1:8000".parse().unwrap();
    let settings = Settings::new(
        bound,
        token.map_or(Access::Anybody, |token| Access::Token(Token::new(token).unwrap())),
    )
    .unwrap();
    Gate::new(&settings.with_origin("https://app.example").unwrap(), bound, vec!["/mcp"])
}

fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(target);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Full::new(Bytes::from_static(b"{}"))).unwrap()
}

async fn answer(gate: &Gate, request: Request<Full<Bytes>>) -> Result<Caller, Refusal> {
    gate.admit(request, NEAR).await.map(|admitted| admitted.caller())
}

/// Method, target, headers, and the expected result.
type Line<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], Result<(), Refusal>);

const OWN: (&str, &str) = ("host", "localhost:8000");

#[tokio::test]
async fn each_line_of_the_gate_is_held() {
    let gate = gate(None);
    let table: &[Line<'_>] = &[
        ("POST", "/mcp", &[OWN], Ok(())),
        ("GET", "/mcp", &[OWN], Ok(())),
        ("DELETE", "/mcp", &[OWN], Ok(())),
        ("POST", "/mcp?query", &[OWN], Ok(())),
        ("POST", "/mcp", &[("host", "127.0.0.1:8000")], Ok(())),
        ("POST", "/mcp", &[], Err(Refusal::Host)),
        ("POST", "/mcp", &[("host", "evil.example:8000")], Err(Refusal::Host)),
        ("POST", "/mcp", &[("host", "localhost:8001")], Err(Refusal::Host)),
        ("POST", "/mcp", &[OWN, OWN], Err(Refusal::Host)),
        ("POST", "http://localhost:8000/mcp", &[OWN], Ok(())),
        ("POST", "http://evil.example:8000/mcp", &[OWN], Err(Refusal::Host)),
        ("POST", "/mcp", &[OWN, ("origin", "http://localhost:8000")], Ok(())),
        ("POST", "/mcp", &[OWN, ("origin", "https://app.example")], Ok(())),
        ("POST", "/mcp", &[OWN, ("origin", "https://evil.example")], Err(Refusal::Origin)),
        ("POST", "/mcp", &[OWN, ("origin", "null")], Err(Refusal::Origin)),
        ("POST", "/mcp", &[OWN, ("origin", "")], Err(Refusal::Origin)),
        ("GET", "/mcp", &[OWN, ("origin", "https://evil.example")], Err(Refusal::Origin)),
        (
            "POST",
            "/mcp",
            &[OWN, ("origin", "https://app.example"), ("origin", "https://evil.example")],
            Err(Refusal::Origin),
        ),
        ("POST", "/", &[OWN], Err(Refusal::Path(vec!["/mcp"]))),
        ("POST", "/mcp/", &[OWN], Err(Refusal::Path(vec!["/mcp"]))),
        ("POST", "//mcp", &[OWN], Err(Refusal::Path(vec!["/mcp"]))),
        ("POST", "/MCP", &[OWN], Err(Refusal::Path(vec!["/mcp"]))),
        ("PUT", "/mcp", &[OWN], Err(Refusal::Method)),
        ("OPTIONS", "/mcp", &[OWN, ("origin", "https://app.example")], Err(Refusal::Method)),
        ("HEAD", "/mcp", &[OWN], Err(Refusal::Method)),
    ];
    for (method, target, headers, expected) in table {
        let got = answer(&gate, request(method, target, headers)).await.map(|_| ());
        assert_eq!(&got, expected, "{method} {target} {headers:?}");
    }
}

#[tokio::test]
async fn a_header_that_is_no_text_is_refused() {
    let value = HeaderValue::from_bytes(b"localhost:8000\xe9").unwrap();
    for (name, refusal) in [(HOST, Refusal::Host), (ORIGIN, Refusal::Origin)] {
        let mut request = request("POST", "/mcp", &[OWN]);
        request.headers_mut().insert(name, value.clone());
        assert_eq!(answer(&gate(None), request).await, Err(refusal));
    }
}

#[tokio::test]
async fn without_the_token_nobody_gets_in() {
    let gate = gate(Some(TOKEN));
    let table = [
        (None, Err(Refusal::NoToken)),
        (Some("0123456789abcdef"), Err(Refusal::NoToken)),
        (Some("Basic 0123456789abcdef"), Err(Refusal::NoToken)),
        (Some("Bearer 0123456789abcdeg"), Err(Refusal::WrongToken)),
        (Some("Bearer 0123456789abcde"), Err(Refusal::WrongToken)),
        (Some("Bearer "), Err(Refusal::WrongToken)),
        (Some("Bearer 0123456789abcdef"), Ok(())),
        (Some("bearer  0123456789abcdef"), Ok(())),
    ];
    for (given, expected) in table {
        let headers: Vec<_> =
            given.map(|given| ("authorization", given)).into_iter().chain([OWN]).collect();
        let got = answer(&gate, request("POST", "/mcp", &headers)).await.map(|_| ());
        assert_eq!(got, expected, "{given:?}");
    }
    let twice = [OWN, ("authorization", "Bearer 0123456789abcdef"), ("authorization", "Bearer x")];
    assert_eq!(answer(&gate, request("POST", "/mcp", &twice)).await, Err(Refusal::WrongToken));
}

#[tokio::test]
async fn who_was_let_in_is_known_and_the_token_is_gone() {
    let gate = gate(Some(TOKEN));
    let request = request("POST", "/mcp", &[OWN, ("authorization", "Bearer 0123456789abcdef")]);
    let admitted = gate.admit(request, NEAR).await.unwrap();
    let caller = admitted.caller();
    assert_eq!(caller, Caller::Bearer(blake3::hash(TOKEN.as_bytes())));
    let request = admitted.into_request();
    assert_eq!(request.headers().get(AUTHORIZATION), None);
    assert_eq!(request.extensions().get::<Caller>(), Some(&caller));
    assert_eq!(request.body().as_ref(), b"{}");
}

#[tokio::test(start_paused = true)]
async fn tokens_cannot_be_tried_out() {
    let gate = gate(Some(TOKEN));
    let with = |token: &str| {
        request("POST", "/mcp", &[OWN, ("authorization", &format!("Bearer {token}"))])
    };
    for number in 0..20 {
        let refused = gate.admit(with(&format!("{number:016}")), FAR).await.unwrap_err();
        assert_eq!(refused, Refusal::WrongToken);
    }
    let wait = Duration::from_millis(5);
    assert_eq!(gate.admit(with("0000000000000000"), FAR).await.unwrap_err(), Refusal::Rate(wait));
    assert_eq!(
        gate.admit(with(TOKEN), FAR).await.unwrap_err(),
        Refusal::Rate(wait),
        "nor is the right one told"
    );
    assert!(gate.admit(with(TOKEN), NEAR).await.is_ok(), "another address is not concerned");
    tokio::time::advance(wait).await;
    assert!(gate.admit(with(TOKEN), FAR).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn another_machine_may_ask_four_hundred_times_at_once() {
    let gate = gate(Some(TOKEN));
    let right = || request("POST", "/mcp", &[OWN, ("authorization", "Bearer 0123456789abcdef")]);
    for _ in 0..400 {
        assert!(gate.admit(right(), FAR).await.is_ok());
    }
    let refused = gate.admit(right(), FAR).await.unwrap_err();
    assert_eq!(refused, Refusal::Rate(Duration::from_millis(5)));
    let response = refused.into_response();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
}

#[test]
fn a_refusal_says_what_to_do() {
    let unauthorized = Refusal::NoToken.into_response();
    assert_eq!(
        (unauthorized.status().as_u16(), &unauthorized.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    let method = Refusal::Method.into_response();
    assert_eq!(
        (method.status().as_u16(), &method.headers()["allow"]),
        (405, &"POST, GET, DELETE".parse().unwrap())
    );
    let all = [
        Refusal::Host,
        Refusal::Origin,
        Refusal::Path(vec!["/mcp"]),
        Refusal::TooLong,
        Refusal::Slow,
    ];
    let statuses = all.map(|refusal| refusal.into_response().status().as_u16());
    assert_eq!(statuses, [403, 403, 404, 413, 408]);
}
