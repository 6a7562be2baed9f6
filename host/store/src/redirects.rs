//! Redirects: a bounded number, never to an unencrypted server, and to no private address of
//! another host unless the first one is this machine.

use crate::limits;
use crate::transfer_error::TransferError;
use http::{StatusCode, header};
use palisade::tool::text::elided;
use palisade_net::{Answer, Exchange, Network, Reach, Scheme, Target};

/// The name with which this program shows itself to servers.
const AGENT: &str = concat!("palisade/", env!("CARGO_PKG_VERSION"));

/// Sends a request and follows its redirects. The first host was named by the user, and may have a
/// private address; what it redirects to may not. Credentials stay with the target that they are
/// for. Returns the target that answered as well.
pub(crate) fn follow(
    network: &Network,
    first: Exchange,
) -> Result<(Answer, Target), TransferError> {
    let origin = target(&first.url)?;
    let mut exchange = first;
    for _ in 0..=limits::REDIRECTS {
        let answer = send(network, exchange.clone())?;
        if !is_redirect(answer.status) {
            return Ok((answer, target(&exchange.url)?));
        }
        let url = location(&exchange.url, &answer)?;
        let next = target(&url)?;
        exchange.reach = reach(&origin, &next);
        if next != target(&exchange.url)? {
            exchange.headers.remove(header::AUTHORIZATION);
        }
        exchange.url = url;
    }
    Err(redirect(&exchange.url, format!("there are more than {} in a row", limits::REDIRECTS)))
}

/// Sends a request without following redirects.
pub(crate) fn send(network: &Network, mut exchange: Exchange) -> Result<Answer, TransferError> {
    let url = shown(&exchange.url);
    exchange.headers.insert(header::USER_AGENT, http::HeaderValue::from_static(AGENT));
    network.exchange(exchange).map_err(|reason| TransferError::Exchange { url, reason })
}

/// Returns the URL that a response leads to.
pub(crate) fn location(from: &str, answer: &Answer) -> Result<String, TransferError> {
    let given = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let given = given.ok_or_else(|| redirect(from, "it leads nowhere".to_owned()))?;
    let target = target(from)?;
    let url = match given {
        _ if given.contains("://") => given.to_owned(),
        _ if given.starts_with('/') && !given.starts_with("//") => format!("{target}{given}"),
        _ => return Err(redirect(from, "it leads to no whole URL or path".to_owned())),
    };
    // Without encryption this machine alone is reached, and never after an encrypted answer.
    let is_down = target.scheme == Scheme::Https && self::target(&url)?.scheme == Scheme::Http;
    match is_down {
        true => Err(redirect(
            from,
            "it leads to an unencrypted server; `https://` is accepted".to_owned(),
        )),
        false => Ok(url),
    }
}

/// Returns the addresses that a host may have to which another one leads.
pub(crate) fn reach(origin: &Target, next: &Target) -> Reach {
    match next.host == origin.host || origin.host.is_loopback() {
        true => Reach::Private,
        false => Reach::Public,
    }
}

fn is_redirect(status: StatusCode) -> bool {
    [301, 302, 303, 307, 308].contains(&status.as_u16())
}

fn redirect(url: &str, reason: String) -> TransferError {
    TransferError::Redirect { url: shown(url), reason }
}

/// Returns the target of a URL.
pub(crate) fn target(url: &str) -> Result<Target, TransferError> {
    let refused = |reason: palisade_net::NetRefused| TransferError::Exchange {
        url: shown(url),
        reason: reason.into(),
    };
    Target::of_url(url).map_err(refused)
}

/// Returns a URL without its query, which may carry a signature of the storage behind a server.
pub(crate) fn shown(url: &str) -> String {
    elided(url.split(['?', '#']).next().unwrap_or(url), 300)
}

/// Returns the error for the status of a failure.
pub(crate) fn status(url: &str, answer: &Answer) -> TransferError {
    let (status, said) = (answer.status.as_u16(), said(answer));
    TransferError::Status { url: shown(url), status, said }
}

/// Returns the beginning of the body of a failure, behind a colon.
pub(crate) fn said(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let said = elided(text.trim(), 200);
    if said.is_empty() { said } else { format!(": {said}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn only_this_machine_leads_to_private_addresses_of_others() {
        let reach = |from: &str, to: &str| reach(&target(from).unwrap(), &target(to).unwrap());
        for (from, to) in [
            ("https://example.org/a", "https://localhost/b"),
            ("https://example.org/a", "https://10.0.0.1/b"),
            ("https://10.0.0.2/a", "https://10.0.0.1/b"),
            ("https://example.org/a", "https://internal.example.org/b"),
        ] {
            assert_eq!(reach(from, to), Reach::Public, "{from} {to}");
        }
        for (from, to) in [
            ("https://internal.example.org/a", "https://internal.example.org:8443/b"),
            ("http://localhost:1/a", "http://127.0.0.1:2/b"),
        ] {
            assert_eq!(reach(from, to), Reach::Private, "{from} {to}");
        }
    }
}
