//! Tests of the roles: which credentials give which, at which paths.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::super::auth::{Auth, Paths, Place};
use super::*;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use palisade::sandbox::limits::Limits;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const CLIENT: &str = "0123456789abcdef";
const OPERATOR: &str = "fedcba9876543210";
const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OWN: (&str, &str) = ("origin", "http://localhost:8000");

/// A server with an operator, at port 8000.
struct Gate {
    auth: Auth,
    logins: Logins,
}

impl Gate {
    fn new(access: Access) -> Self {
        let bound = "127.0.0.1:8000".parse().unwrap();
        let settings = Settings::new(bound, access).unwrap();
        let settings = settings.with_operator(Token::new(OPERATOR).unwrap()).unwrap();
        let settings = settings.with_origin("https://app.example").unwrap();
        let logins = Logins::default();
        let auth = Auth::new(&settings, bound, vec!["/mcp"], Limits::default())
            .with_paths(Paths::All)
            .with_logins(logins.clone());
        Self { auth, logins }
    }

    fn with_token() -> Self {
        Self::new(Access::Token(Token::new(CLIENT).unwrap()))
    }

    /// Logs a browser in, and returns the headers with both halves.
    fn log_in(&self) -> Login {
        let code = self.logins.issue().unwrap();
        let Halves { cookie, page_key } = self.logins.redeem(&code).unwrap().unwrap();
        Login { cookie: format!("palisade_operator_8000={cookie}"), page_key }
    }

    async fn role(
        &self,
        place: Place,
        method: &str,
        headers: &[(&str, &str)],
    ) -> Result<Option<Role>, Rejection> {
        let request = Request::builder().method(method).uri("/calls");
        let request = request.header("host", "localhost:8000");
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let admitted = self.auth.admit_at(place, request, NEAR, |_, _| None).await?;
        let role = admitted.role();
        let request = admitted.into_request();
        assert_eq!(request.extensions().get::<Role>().copied(), role);
        let secrets = ["authorization", "cookie", "palisade-page-key"];
        assert!(secrets.iter().all(|it| !request.headers().contains_key(*it)));
        Ok(role)
    }
}

/// A login of a browser.
struct Login {
    cookie: String,
    page_key: String,
}

impl Login {
    /// Returns the headers of both halves.
    fn both(&self) -> [(&str, &str); 2] {
        [("cookie", &self.cookie), self.key()]
    }

    fn key(&self) -> (&str, &str) {
        ("palisade-page-key", &self.page_key)
    }
}

fn bearer_of(token: &str) -> String {
    format!("Bearer {token}")
}

#[tokio::test]
async fn each_token_has_its_role_at_every_path() {
    let (client, operator) = (bearer_of(CLIENT), bearer_of(OPERATOR));
    let wrong = bearer_of("0123456789abcdeX");
    for (access, without) in [
        (Access::Token(Token::new(CLIENT).unwrap()), Err(Rejection::NoToken)),
        (Access::Unauthenticated, Ok(Some(Role::Client))),
    ] {
        let gate = Gate::new(access);
        for place in [Place::Named, Place::Beside] {
            let role =
                async |token: &str| gate.role(place, "POST", &[("authorization", token)]).await;
            assert_eq!(role(&operator).await, Ok(Some(Role::Operator)));
            assert_eq!(role(&wrong).await, Err(Rejection::WrongToken));
            if access != Access::Unauthenticated {
                assert_eq!(role(&client).await, Ok(Some(Role::Client)));
            }
            assert_eq!(gate.role(place, "POST", &[]).await, without);
        }
    }
}

#[tokio::test]
async fn login_of_an_own_page_is_the_operators() {
    for gate in [Gate::with_token(), Gate::new(Access::Unauthenticated)] {
        let login = gate.log_in();
        let other = format!("theme=dark; {}; last=1", login.cookie);
        for cookie in [("cookie", login.cookie.as_str()), ("cookie", &other)] {
            let both = [cookie, login.key()];
            let same = ("sec-fetch-site", "same-origin");
            for (method, more) in [
                ("GET", &[][..]),
                ("GET", &[same, ("accept", "text/event-stream")]),
                ("POST", &[OWN]),
                ("DELETE", &[same]),
            ] {
                let headers = [&both[..], more].concat();
                let role = gate.role(Place::Beside, method, &headers).await;
                assert_eq!(role, Ok(Some(Role::Operator)), "{method} {headers:?}");
            }
        }
    }
}

/// Browsers send the cookie to each port of the host. A server of another user there knows the
/// cookie, and sends it like a page of this server.
#[tokio::test]
async fn half_of_a_login_gives_nothing_even_to_an_own_page() {
    for gate in [Gate::with_token(), Gate::new(Access::Unauthenticated)] {
        let (login, other) = (gate.log_in(), gate.log_in());
        let cookie = ("cookie", login.cookie.as_str());
        let same = ("sec-fetch-site", "same-origin");
        let value = login.cookie.split_once('=').unwrap().1;
        for (halves, rejection) in [
            (&[cookie][..], Rejection::NoPageKey),
            (&[cookie, ("palisade-page-key", "")], Rejection::LoginEnded),
            (&[cookie, ("palisade-page-key", value)], Rejection::LoginEnded),
            (&[cookie, ("palisade-page-key", OPERATOR)], Rejection::LoginEnded),
            (&[cookie, other.key()], Rejection::LoginEnded),
            (&[cookie, login.key(), other.key()], Rejection::LoginEnded),
            (&[login.key()], Rejection::LoginEnded),
            (&[("cookie", "palisade_operator_8000="), login.key()], Rejection::LoginEnded),
            (&[("cookie", &other.cookie), login.key()], Rejection::LoginEnded),
        ] {
            for place in [Place::Beside, Place::Stream] {
                for (method, own) in [("GET", same), ("GET", OWN), ("POST", same), ("POST", OWN)] {
                    let headers = [halves, &[own]].concat();
                    let role = gate.role(place, method, &headers).await;
                    assert_eq!(role, Err(rejection.clone()), "{place:?} {method} {headers:?}");
                }
            }
            let public = gate.role(Place::Public, "GET", &[halves, &[same]].concat()).await;
            assert_eq!(public, Ok(None), "{halves:?}");
        }
        let both = [&login.both()[..], &[same]].concat();
        assert_eq!(gate.role(Place::Beside, "POST", &both).await, Ok(Some(Role::Operator)));
    }
}

#[tokio::test]
async fn login_gives_another_page_nothing() {
    for gate in [Gate::with_token(), Gate::new(Access::Unauthenticated)] {
        let login = gate.log_in();
        for (method, more, rejection) in [
            ("POST", &[][..], Rejection::CrossSite),
            ("POST", &[("origin", "null")], Rejection::Origin),
            ("POST", &[("origin", "http://localhost:3000")], Rejection::Origin),
            ("POST", &[("origin", "https://localhost:8000")], Rejection::Origin),
            ("POST", &[("origin", "https://app.example")], Rejection::CrossSite),
            ("POST", &[("sec-fetch-site", "cross-site")], Rejection::CrossSite),
            ("GET", &[("sec-fetch-site", "same-site")], Rejection::CrossSite),
            ("GET", &[("accept", "text/event-stream")], Rejection::CrossSite),
            ("GET", &[("upgrade", "websocket")], Rejection::CrossSite),
        ] {
            let role = gate.role(Place::Beside, method, &[&login.both()[..], more].concat()).await;
            assert_eq!(role, Err(rejection), "{method} {more:?}");
        }
    }
}

#[tokio::test]
async fn cookie_of_a_page_behind_tls_is_never_sent_without_it() {
    let gate = Gate::with_token();
    for (origin, is_secure) in [("https://app.example", true), ("http://localhost:8000", false)] {
        let code = gate.logins.issue().unwrap();
        let headers = HeaderMap::from_iter([(ORIGIN, origin.parse().unwrap())]);
        let logged_in = gate.auth.credentials().log_in(&code, &headers).unwrap();
        assert_eq!(logged_in.cookie.to_str().unwrap().ends_with("; Secure"), is_secure, "{origin}");
    }
}

#[tokio::test]
async fn login_of_another_port_or_server_is_none() {
    let (gate, other) = (Gate::with_token(), Gate::with_token());
    let (login, others) = (gate.log_in(), other.log_in());
    let role = async |cookie: &str, page_key: (&str, &str)| {
        gate.role(Place::Beside, "POST", &[("cookie", cookie), page_key, OWN]).await
    };
    assert_eq!(role(&login.cookie, login.key()).await, Ok(Some(Role::Operator)));
    let renamed = login.cookie.replace("8000", "8001");
    assert_eq!(role(&renamed, login.key()).await, Err(Rejection::LoginEnded));
    assert_eq!(role(&others.cookie, others.key()).await, Err(Rejection::LoginEnded));
    // A page of another port can set a cookie with the same name, and so log nobody out.
    let both = format!("palisade_operator_8000=planted; {}", login.cookie);
    assert_eq!(role(&both, login.key()).await, Ok(Some(Role::Operator)));
}

#[tokio::test]
async fn login_counts_for_no_program() {
    let gate = Gate::with_token();
    let (login, client) = (gate.log_in(), bearer_of(CLIENT));
    let own = [&login.both()[..], &[OWN]].concat();
    assert_eq!(gate.role(Place::Named, "POST", &own).await, Err(Rejection::NoToken));
    let both = [&own[..], &[("authorization", &client)]].concat();
    assert_eq!(gate.role(Place::Beside, "POST", &both).await, Ok(Some(Role::Client)));
}

#[tokio::test]
async fn public_path_needs_no_credentials_and_takes_no_wrong_token() {
    let gate = Gate::with_token();
    let role = async |method: &str, headers: &[(&str, &str)]| {
        gate.role(Place::Public, method, headers).await
    };
    for method in ["GET", "HEAD"] {
        assert_eq!(role(method, &[]).await, Ok(None));
        assert_eq!(role(method, &[("cookie", "palisade_operator_8000=old")]).await, Ok(None));
        let operator = bearer_of(OPERATOR);
        let known = role(method, &[("authorization", &operator)]).await;
        assert_eq!(known, Ok(Some(Role::Operator)));
        let wrong = bearer_of("0123456789abcdeX");
        assert_eq!(role(method, &[("authorization", &wrong)]).await, Err(Rejection::WrongToken));
        assert_eq!(role(method, &[("origin", "null")]).await, Err(Rejection::Origin));
    }
    assert_eq!(gate.role(Place::Beside, "HEAD", &[]).await, Err(Rejection::NoToken));
    for method in ["PATCH", "PUT", "OPTIONS"] {
        let operator = bearer_of(OPERATOR);
        let headers = [("authorization", operator.as_str())];
        let asked = gate.role(Place::Beside, method, &headers).await;
        assert_eq!(asked, Ok(Some(Role::Operator)), "the service knows its methods: {method}");
        let asked = gate.role(Place::Named, method, &headers).await;
        assert_eq!(asked, Err(Rejection::Method), "{method}");
    }
    let client = bearer_of(CLIENT);
    let tunnel = gate.role(Place::Beside, "CONNECT", &[("authorization", &client)]).await;
    assert_eq!(tunnel, Err(Rejection::Method));
}

#[tokio::test(start_paused = true)]
async fn public_requests_use_up_none_of_those_with_a_token() {
    let gate = Gate::with_token();
    let mut admitted = 0;
    let rejection = loop {
        match gate.role(Place::Public, "GET", &[]).await {
            Ok(_) => admitted += 1,
            Err(rejection) => break rejection,
        }
    };
    assert_eq!(admitted, 10_000);
    assert!(matches!(rejection, Rejection::Rate(_)), "{rejection:?}");
    let client = bearer_of(CLIENT);
    let headers = [("authorization", client.as_str())];
    assert_eq!(gate.role(Place::Beside, "GET", &headers).await, Ok(Some(Role::Client)));
}

#[tokio::test(start_paused = true)]
async fn login_lasts_a_day() {
    let gate = Gate::with_token();
    let login = gate.log_in();
    let headers = [&login.both()[..], &[OWN]].concat();
    tokio::time::advance(LOGIN_TIME - Duration::from_secs(1)).await;
    assert_eq!(gate.role(Place::Beside, "POST", &headers).await, Ok(Some(Role::Operator)));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(gate.role(Place::Beside, "POST", &headers).await, Err(Rejection::LoginEnded));
}

#[test]
fn recorded_id_tells_callers_apart_and_shows_no_digest() {
    let digest = blake3::hash(CLIENT.as_bytes());
    let ids = [Caller::Bearer(digest), Caller::Browser(digest)].map(|caller| caller.id());
    assert!(ids[0].starts_with("token-") && ids[1].starts_with("browser-"), "{ids:?}");
    assert!(ids.iter().all(|id| !id.contains(&digest.to_hex()[..8])), "{ids:?}");
    assert_ne!(ids[0], Caller::Bearer(blake3::hash(OPERATOR.as_bytes())).id());
}
