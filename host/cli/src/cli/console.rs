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
    output::text(&format!("{}\n", link(remote.base(), code)))?;
    output::note("it opens the console once, within 10 minutes");
    Ok(Exit::Ok)
}

/// Returns the link that opens a console. The code is in the fragment, which no browser sends.
pub(super) fn link(origin: &str, code: &str) -> String {
    format!("{origin}/#login={code}")
}
