//! The token of `serve --http`: given in a file or a variable, left out on purpose, or made for one run. One that was made
//! is kept in a private file for as long as the server runs, so that the user's own clients find it.

mod private;

use super::args::{NoToken, Serve};
use super::exit::{Exit, Failure};
use crate::host::state_directories;
use crate::http::{Access, Token};
use private::{Directory, Written};
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The variable that may hold the token of a server, for the server and for its clients.
pub(super) const TOKEN: &str = "PALISADE_SERVE_TOKEN";
/// The longest file of a token, in bytes.
const TOKEN_FILE: u64 = 4096;
/// How much randomness a token has that is made here, in bytes.
const RANDOM: usize = 32;

/// By what a server lets clients in.
pub(super) enum Entry {
    /// A token that was given, and the file that it stands in.
    Given { token: Token, file: Option<PathBuf> },
    /// A token for this run, which is told.
    Made { token: Token, text: String },
    /// Nothing: `--token none` says so.
    Open,
}

impl Entry {
    /// What the command line and the environment say. A token itself is never an argument: every user of the machine can
    /// read those.
    pub(super) fn of(args: &Serve) -> Result<Self, Failure> {
        if let Some(NoToken::None) = args.token {
            return Ok(Self::Open);
        }
        let (text, place, file) = match (args.token_file.as_deref(), std::env::var_os(TOKEN)) {
            (Some(file), _) => (from_file(file)?, file.display().to_string(), Some(file.to_owned())),
            (None, Some(text)) => (text.to_string_lossy().into_owned(), TOKEN.to_owned(), None),
            (None, None) => return Self::fresh(),
        };
        match Token::new(text.trim_end_matches(['\r', '\n'])) {
            Ok(token) => Ok(Self::Given { token, file }),
            Err(refused) => Err(Failure::usage(format!("{place}: {refused}"))),
        }
    }

    fn fresh() -> Result<Self, Failure> {
        let failure = |why: String| Failure::new(Exit::Internal, format!("no token can be made: {why}"));
        let mut random = [0; RANDOM];
        getrandom::fill(&mut random).map_err(|error| failure(error.to_string()))?;
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = Token::new(&text).map_err(|refused| failure(refused.to_string()))?;
        Ok(Self::Made { token, text })
    }

    /// Whom the server lets in.
    pub(super) fn access(&self) -> Access {
        match self {
            Self::Given { token, .. } | Self::Made { token, .. } => Access::Token(*token),
            Self::Open => Access::Anybody,
        }
    }

    /// The text of a token that was made.
    pub(super) fn made(&self) -> Option<&str> {
        match self {
            Self::Made { text, .. } => Some(text),
            Self::Given { .. } | Self::Open => None,
        }
    }

    /// The file that it stands in, which no tool may read.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Given { file, .. } => file.as_deref(),
            Self::Made { .. } | Self::Open => None,
        }
    }
}

fn from_file(file: &Path) -> Result<String, Failure> {
    let failure =
        |why: &dyn std::fmt::Display| Failure::usage(format!("cannot read the token in `{}`: {why}", file.display()));
    let opened = std::fs::File::open(file).map_err(|error| failure(&error))?;
    private::check(&opened, file).map_err(|why| failure(&why))?;
    let mut text = String::new();
    opened.take(TOKEN_FILE).read_to_string(&mut text).map_err(|error| failure(&error))?;
    Ok(text)
}

/// A token that is kept in a file until this is dropped.
pub(super) struct Kept {
    directory: Directory,
    written: Written,
}

impl Kept {
    /// Where it stands.
    pub(super) fn path(&self) -> &Path {
        &self.written.path
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.directory.remove(&self.written);
    }
}

/// Keeps the token of a server that listens at this address.
pub(super) fn keep(text: &str, address: SocketAddr) -> io::Result<Kept> {
    let nowhere = || io::Error::other("there is neither a runtime directory nor a home directory");
    let base = bases().into_iter().next().ok_or_else(nowhere)?;
    let directory = Directory::make(&base)?;
    forget(address);
    let written = directory.write(&name(address), text)?;
    Ok(Kept { directory, written })
}

/// Removes the token of an earlier server at this address, which was killed before it could. Only the process that
/// listens there may call this.
pub(super) fn forget(address: SocketAddr) {
    let directories = bases().into_iter().filter_map(|base| Directory::existing(&base).ok());
    directories.for_each(|directory| directory.discard(&name(address)));
}

/// The file with the token of the server at this address of this machine, where it runs and has made one.
pub(super) fn kept(host: &str, port: u16) -> Option<PathBuf> {
    let addresses = addresses(host).into_iter().map(|address| name(SocketAddr::new(address, port)));
    let mut found = addresses.flat_map(|name| bases().into_iter().map(move |base| private::folder(&base).join(&name)));
    found.find(|path| {
        let file = std::fs::File::open(path);
        file.is_ok_and(|file| private::check(&file, path).is_ok() && private::is_held(&file))
    })
}

/// The directories in which tokens are kept, by this run or by one with another environment, which no
/// tool may read. Each is hidden whether it is there or not.
pub(super) fn folders() -> Vec<PathBuf> {
    let all = runtime().into_iter().chain(usual_runtime()).chain(state_directories());
    let mut folders: Vec<PathBuf> = all.map(|base| private::folder(&base)).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// The directory that the environment names for what goes when its user leaves.
fn runtime() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|base| base.is_absolute())
}

/// The one that it names for most users.
#[cfg(unix)]
fn usual_runtime() -> Option<PathBuf> {
    Some(Path::new("/run/user").join(rustix::process::geteuid().as_raw().to_string()))
}

/// On Windows there is none.
#[cfg(not(unix))]
fn usual_runtime() -> Option<PathBuf> {
    None
}

/// Where they may be kept, the best first: what the system removes when its user leaves, and else the user's state.
fn bases() -> Vec<PathBuf> {
    let state = state_directories().into_iter().next();
    runtime().filter(|path| private::is_private(path)).into_iter().chain(state).collect()
}

/// The addresses at which a server listens that is reached by this name on its own machine.
fn addresses(host: &str) -> Vec<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let own = match bare.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) if bare.eq_ignore_ascii_case("localhost") => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Err(_) => return Vec::new(),
    };
    // One that listens at all addresses listens at these.
    let all = [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()];
    let is_local = own.iter().all(IpAddr::is_loopback);
    own.into_iter().chain(all.into_iter().filter(|_| is_local)).collect()
}

/// The name of the file for an address, which every file system takes.
fn name(address: SocketAddr) -> String {
    format!("{}-{}.token", address.ip().to_string().replace(':', "_"), address.port())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn a_token_that_is_made_is_one_and_no_other() {
        let made = || match Entry::fresh().unwrap() {
            Entry::Made { text, .. } => text,
            Entry::Given { .. } | Entry::Open => panic!("it is made"),
        };
        let (one, other) = (made(), made());
        assert_eq!(one.len(), 2 * RANDOM);
        assert_ne!(one, other);
    }

    #[cfg(unix)]
    #[test]
    fn the_usual_directories_of_tokens_are_hidden_whatever_the_environment_names() {
        let user = rustix::process::geteuid().as_raw();
        let hidden = folders();
        assert!(hidden.contains(&PathBuf::from(format!("/run/user/{user}/palisade/tokens"))), "{hidden:?}");
        let home = etcetera::home_dir().unwrap();
        assert!(hidden.contains(&home.join(".local/state/palisade/tokens")), "{hidden:?}");
    }

    #[test]
    fn a_name_of_this_machine_leads_to_each_server_that_answers_to_it() {
        let of = |host: &str| addresses(host).into_iter().map(|ip| name(SocketAddr::new(ip, 8080))).collect::<Vec<_>>();
        assert_eq!(of("127.0.0.1"), ["127.0.0.1-8080.token", "0.0.0.0-8080.token", "__-8080.token"]);
        assert_eq!(of("[::1]"), ["__1-8080.token", "0.0.0.0-8080.token", "__-8080.token"]);
        assert_eq!(of("LOCALHOST")[..2], ["127.0.0.1-8080.token", "__1-8080.token"]);
        assert_eq!(of("192.0.2.1"), ["192.0.2.1-8080.token"], "a server there may be another machine's");
        assert!(of("tools.example").is_empty());
    }
}
