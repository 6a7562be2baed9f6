//! The arguments of `palisade serve`, and of the subcommands for a running server.

use super::Running;
use clap::{Args as ClapArgs, ValueEnum};
use palisade::SideEffects;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The heading of the arguments for a server over HTTP.
const OVER_HTTP: &str = "Over HTTP";

#[derive(ClapArgs)]
pub(in crate::cli) struct Serve {
    /// Serve over HTTP, under /mcp, in place of standard input and output. Clients need a token; beyond this machine a proxy that encrypts is needed, too
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:8080", value_parser = parse_address)]
    pub(in crate::cli) http: Option<SocketAddr>,
    /// The token that clients have to send, in a file that only you can read (16 to 1024 letters, digits and -._~+/=). Without one a token is made and told [env: PALISADE_SERVE_TOKEN, the token itself]
    #[arg(long, value_name = "FILE", requires = "http", help_heading = OVER_HTTP)]
    pub(in crate::cli) token_file: Option<PathBuf>,
    /// Let every user of this machine in without a token. Beyond this machine it is refused
    #[arg(long, value_enum, requires = "http", help_heading = OVER_HTTP, conflicts_with = "token_file")]
    pub(in crate::cli) token: Option<NoToken>,
    /// Answer to this name too, such as tools.example or tools.example:8080; can be given several times
    #[arg(long, value_name = "NAME", requires = "http", help_heading = OVER_HTTP)]
    pub(in crate::cli) host: Vec<String>,
    /// Let web pages of this origin ask, such as `https://app.example`; can be given several times
    #[arg(long, value_name = "ORIGIN", requires = "http", help_heading = OVER_HTTP)]
    pub(in crate::cli) origin: Vec<String>,
    /// Let the person in the console answer what a client cannot ask: such a call waits for an answer, also while no console is open. Beside standard input and output, this serves the console on a free port of 127.0.0.1
    #[arg(long)]
    pub(in crate::cli) console: bool,
    /// The person who answers the question before a call: `anyone` who is asked, also the client of the call with a form, or the `operator` alone, in the console or `palisade watch`. `operator` needs --http or --console
    #[arg(long, value_enum, value_name = "WHO", default_value = "anyone")]
    pub(in crate::cli) answers: Answerer,
    /// The operator's token, for the console and `palisade watch`, in a file that only you can read. Without one a token is made
    #[arg(long, value_name = "FILE", help_heading = OVER_HTTP)]
    pub(in crate::cli) operator_token_file: Option<PathBuf>,
    /// Keep the journal in this file, or none beyond this run [default: the user's state directory, over HTTP and with --console]
    #[arg(long, value_name = "FILE|none")]
    pub(in crate::cli) journal: Option<String>,
    /// How long running calls have to end after a signal to terminate, such as 30s or 0s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_drain, help_heading = OVER_HTTP)]
    pub(in crate::cli) drain: Duration,
    /// Watch the plugin directories: what comes, changes or goes there is there, changed or gone for clients, who are told; a broken file leaves the plugin that it replaces
    #[arg(long)]
    pub(in crate::cli) watch: bool,
    /// Show clients `run_js` and `search_tools` in place of all other tools: a model writes programs that call these, each call decided and asked about as if the client had made it
    #[arg(long, conflicts_with = "no_builtin")]
    pub(in crate::cli) code_mode: bool,
    #[command(flatten)]
    pub(in crate::cli) running: Running,
}

/// The parties that may answer the question before a call of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Answerer {
    Anyone,
    Operator,
}

/// The value of `--token`. A token itself is never an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum NoToken {
    None,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Watch {
    /// The server [default: http://127.0.0.1:8080]
    pub(in crate::cli) url: Option<String>,
    /// The operator's token of a server that was given its own, in a file that only you can read
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) token_file: Option<PathBuf>,
    /// Begin after the event of this id, which the lines of the journal name [default: with the next event]
    #[arg(long, value_name = "ID", value_parser = parse_event_id)]
    pub(in crate::cli) after: Option<String>,
    /// Print the events as JSON, one a line, and ask nothing; the default unless a person is at the terminal
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Console {
    /// The server [default: http://127.0.0.1:8080]
    pub(in crate::cli) url: Option<String>,
    /// The operator's token of a server that was given its own, in a file that only you can read
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) token_file: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Log {
    /// Show the call of this id, or of the only id that begins like this, with everything about it
    pub(in crate::cli) call: Option<String>,
    /// The journal [default: the one in the user's state directory]
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) journal: Option<PathBuf>,
    /// Calls of this tool only
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) tool: Option<String>,
    /// Calls of this class only
    #[arg(long, value_name = "CLASS")]
    pub(in crate::cli) class: Option<SideEffects>,
    /// Calls with this outcome only: succeeded, failed, running, waiting, unknown, or an error class such as timeout
    #[arg(long, value_name = "OUTCOME")]
    pub(in crate::cli) outcome: Option<String>,
    /// Calls of this session only
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) session: Option<String>,
    /// Calls from this time on: a date, a time such as 2026-11-25T13:00:00Z, or how long ago, such as 2h
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(in crate::cli) since: Option<SystemTime>,
    /// Calls before this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(in crate::cli) until: Option<SystemTime>,
    /// Calls with this text, in upper or lower case: in the names of the tool, the call and the session, or the beginning of the input, the output or the error (4,096 characters each)
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) search: Option<String>,
    /// How many calls, the newest
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(in crate::cli) limit: u32,
    /// Go on with calls as they end
    #[arg(long, conflicts_with_all = ["call", "until"])]
    pub(in crate::cli) follow: bool,
    /// Print JSON, one call a line
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = named.as_deref().unwrap_or(text);
    let wanted = "want an address and a port up to 65535, such as 127.0.0.1:8080 or localhost:8080";
    address.parse().map_err(|_| wanted.to_owned())
}

/// Parses the time to drain. Service managers kill a server that takes much longer.
fn parse_drain(text: &str) -> Result<Duration, String> {
    let wanted = "want a time of at most 600s, such as 30s or 0s";
    let time = humantime::parse_duration(text).map_err(|_| wanted.to_owned())?;
    if time <= Duration::from_secs(600) { Ok(time) } else { Err(wanted.to_owned()) }
}

fn parse_event_id(text: &str) -> Result<String, String> {
    let number = text.parse::<u64>().map_err(|_| "want the number of an event".to_owned())?;
    Ok(number.to_string())
}

/// Parses a moment: a date, a time, or a span of time before now.
fn parse_moment(text: &str) -> Result<SystemTime, String> {
    let date = || humantime::parse_rfc3339_weak(&format!("{text}T00:00:00"));
    let ago =
        || humantime::parse_duration(text).ok().and_then(|ago| SystemTime::now().checked_sub(ago));
    humantime::parse_rfc3339_weak(text)
        .or_else(|_| date())
        .ok()
        .or_else(ago)
        .ok_or_else(|| "want a date (2026-11-25), a time (2026-11-25T13:00:00Z) or a span before now (2h, 30min)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_is_a_date_a_time_or_a_span() {
        let day = parse_moment("2026-11-25");
        assert_eq!(day, parse_moment("2026-11-25T00:00:00Z"));
        assert!(day.is_ok() && parse_moment("2h").is_ok_and(|moment| moment < SystemTime::now()));
        for wrong in ["yesterday", "", "2026-13-01", "99999999999999y"] {
            assert!(parse_moment(wrong).is_err(), "{wrong}");
        }
    }
}
