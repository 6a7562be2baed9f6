//! `palisade console`: prints a link that opens the console of a running server.

use super::args::Console as Args;
use super::exit::{Exit, Failure};
use super::output;
use super::remote::Remote;
use super::serve::LOGINS;
use serde_json::json;

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let remote = Remote::find(args.url.as_deref(), args.token_file.as_deref())?;
    let answer = remote.post(LOGINS, &json!({}));
    let answer = answer.map_err(|error| Failure::new(Exit::Internal, error))?;
    let code = answer["code"].as_str().unwrap_or_default();
    if code.is_empty() || !code.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let line =
            format!("{} gives no code for a login: it is no server of Palisade", remote.base());
        return Err(Failure::new(Exit::Internal, line));
    }
    let origin = answer["origin"].as_str().filter(|it| is_of(it, remote.base()));
    output::text(&format!("{}\n", link(origin.unwrap_or(remote.base()), code)))?;
    output::note("it opens the console once, within 10 minutes");
    Ok(Exit::Ok)
}

/// Returns true if this is an origin of the console of the server at `base`: below `localhost`, at
/// the same port.
fn is_of(origin: &str, base: &str) -> bool {
    let port = base.rsplit_once(':').map_or("", |(_, port)| port);
    let name = origin.strip_prefix("http://").and_then(|it| it.strip_suffix(port));
    let name = name.and_then(|it| it.strip_suffix(".localhost:"));
    name.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Returns the link that opens a console. The code is in the fragment, which no browser sends.
pub(super) fn link(origin: &str, code: &str) -> String {
    format!("{origin}/#login={code}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_leads_to_this_server_only() {
        let base = "http://127.0.0.1:8080";
        assert!(is_of("http://0123abcd.localhost:8080", base));
        for other in [
            "http://0123abcd.localhost:8081",
            "http://.localhost:8080",
            "http://a.b.localhost:8080",
            "https://0123abcd.localhost:8080",
            "http://evil.example/.localhost:8080",
            "http://evil.example:8080",
            "http://\u{1b}.localhost:8080",
        ] {
            assert!(!is_of(other, base), "{other:?}");
        }
    }
}
