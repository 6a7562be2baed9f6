//! The bearer token of `serve --http`: given in a file or a variable, disabled, or generated for
//! one run. A generated token is stored in a private file while the server runs, so that the user's
//! own clients find it.

mod private;

use super::args::{NoToken, Serve};
use super::exit::{Exit, Failure};
use palisade::internal::{
    Recorded, open_unreplaceable_file, remember, state_directories, usual_state_directory,
};
use palisade_mcp::http::{Access, Token};
use private::{Directory, Written};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The variable that may hold the token, for the server and for its clients.
pub(super) const TOKEN: &str = "PALISADE_SERVE_TOKEN";
/// Maximum size of a token file, in bytes.
const TOKEN_FILE: u64 = 4096;
/// Maximum size of a file with logins, in bytes: more than 32 lines of them have.
const LOGIN_FILE: u64 = 16 << 10;
/// The entropy of a generated token, in bytes.
const RANDOM: usize = 32;

/// How a server authenticates clients.
pub(super) enum Entry {
    /// A given token, and the file that contains it.
    Given { token: Token, file: Option<PathBuf> },
    /// A token generated for this run, which is printed.
    Made { token: Token, text: String },
    /// No authentication, by `--token none`.
    Open,
}

impl Entry {
    /// Reads the token from the command line and the environment. The token itself is never an
    /// argument, because every user of the machine can read arguments.
    pub(super) fn of(args: &Serve) -> Result<Self, Failure> {
        if let Some(NoToken::None) = args.token {
            return Ok(Self::Open);
        }
        let (text, place, file) = match (args.token_file.as_deref(), std::env::var_os(TOKEN)) {
            (Some(file), _) => {
                (from_file(file)?, file.display().to_string(), Some(file.to_owned()))
            }
            (None, Some(text)) => (text.to_string_lossy().into_owned(), TOKEN.to_owned(), None),
            (None, None) => return Self::fresh(),
        };
        match Token::new(text.trim_end_matches(['\r', '\n'])) {
            Ok(token) => Ok(Self::Given { token, file }),
            Err(refused) => Err(Failure::usage(format!("{place}: {refused}"))),
        }
    }

    /// Reads the operator's token from a file, or makes one.
    pub(super) fn of_operator(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = file else { return Self::fresh() };
        let text = from_file(file)?;
        match Token::new(text.trim_end_matches(['\r', '\n'])) {
            Ok(token) => Ok(Self::Given { token, file: Some(file.to_owned()) }),
            Err(refused) => Err(Failure::usage(format!("{}: {refused}", file.display()))),
        }
    }

    fn fresh() -> Result<Self, Failure> {
        let failure =
            |why: String| Failure::new(Exit::Internal, format!("no token can be made: {why}"));
        let mut random = [0; RANDOM];
        getrandom::fill(&mut random).map_err(|error| failure(error.to_string()))?;
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = Token::new(&text).map_err(|refused| failure(refused.to_string()))?;
        Ok(Self::Made { token, text })
    }

    /// Returns the access rule of the server.
    pub(super) fn access(&self) -> Access {
        match self {
            Self::Given { token, .. } | Self::Made { token, .. } => Access::Token(*token),
            Self::Open => Access::Unauthenticated,
        }
    }

    /// Returns a given token, which outlives this run.
    pub(super) fn given(&self) -> Option<Token> {
        match self {
            Self::Given { token, .. } => Some(*token),
            Self::Made { .. } | Self::Open => None,
        }
    }

    /// Returns the text of a generated token.
    pub(super) fn made(&self) -> Option<&str> {
        match self {
            Self::Made { text, .. } => Some(text),
            Self::Given { .. } | Self::Open => None,
        }
    }

    /// Returns the file of a given token, which no tool may read.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Given { file, .. } => file.as_deref(),
            Self::Made { .. } | Self::Open => None,
        }
    }
}

fn from_file(file: &Path) -> Result<String, Failure> {
    let failure = |why: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "cannot read the token in `{}`: {why}; without --token-file the server makes a token",
            file.display()
        ))
    };
    let opened = open_unreplaceable_file(file).map_err(|error| failure(&error))?;
    private::check(&opened, file).map_err(|why| failure(&why))?;
    let mut text = String::new();
    opened.take(TOKEN_FILE).read_to_string(&mut text).map_err(|error| failure(&error))?;
    Ok(text)
}

/// A token stored in a file until this value is dropped.
pub(super) struct Kept {
    directory: Directory,
    written: Written,
}

impl Kept {
    /// Returns the path of the token file.
    pub(super) fn path(&self) -> &Path {
        &self.written.path
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.directory.remove(&self.written);
    }
}

/// The file with the logins of browsers at the console of a server, so that they outlive it.
pub(super) struct LoginFile {
    directory: Directory,
    name: String,
}

impl LoginFile {
    /// Finds the file of the server that listens at this address.
    pub(super) fn of(address: SocketAddr) -> io::Result<Self> {
        let nowhere = || io::Error::other("there is no state directory");
        let base = state_directories().into_iter().next().ok_or_else(nowhere)?;
        let name = name(address, Holder::Operator).replace(".token", ".logins");
        Ok(Self { directory: Directory::make(&base)?, name })
    }

    /// Returns what an earlier server has stored. Empty if others could have written it.
    pub(super) fn read(&self) -> String {
        let mut text = String::new();
        if let Ok((file, path)) = self.directory.file(&self.name)
            && private::check(&file, &path).is_ok()
        {
            let _ = file.take(LOGIN_FILE).read_to_string(&mut text);
        }
        text
    }

    /// Stores the logins.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        self.directory.write(&self.name, text).map(|_| ())
    }
}

/// Whom a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// The clients of the server.
    Client,
    /// The operator, who answers questions.
    Operator,
}

/// Stores the token of a server that listens at this address.
pub(super) fn keep(text: &str, address: SocketAddr, holder: Holder) -> io::Result<Kept> {
    let nowhere = || io::Error::other("there is neither a runtime directory nor a home directory");
    let bases = bases();
    let mut directories = bases.iter().map(|base| Directory::make(base));
    let first = directories.next().ok_or_else(nowhere)?;
    // A system may give a runtime directory that other users can replace.
    let directory = first.or_else(|error| directories.find_map(Result::ok).ok_or(error))?;
    // A stale file of an earlier server may also be in another directory.
    forget(address, holder);
    let written = directory.write(&name(address, holder), text)?;
    written.path.parent().into_iter().for_each(remember_for_other_runs);
    Ok(Kept { directory, written })
}

/// Records a directory of tokens that is in no usual place, so that the tools of other runs, which
/// may have another environment, cannot reach it.
fn remember_for_other_runs(directory: &Path) {
    let usual = [Some(usual_runtime()), usual_state_directory()];
    if usual.into_iter().flatten().any(|base| private::folder(&base) == directory) {
        return;
    }
    if let Err(error) = remember(Recorded::Tokens, directory) {
        tracing::warn!("{} is not remembered: {error}", directory.display());
    }
}

/// Removes the token file of an earlier server at this address that was killed. Only the process
/// that listens there may call this function.
pub(super) fn forget(address: SocketAddr, holder: Holder) {
    let directories = bases().into_iter().filter_map(|base| Directory::existing(&base).ok());
    directories.for_each(|directory| directory.discard(&name(address, holder)));
}

/// Returns the token file of a running server at this address of this machine that generated its
/// token.
pub(super) fn kept(host: &str, port: u16, holder: Holder) -> Option<PathBuf> {
    let directories: Vec<_> =
        bases().iter().filter_map(|base| Directory::existing(base).ok()).collect();
    let names =
        addresses(host).into_iter().map(|address| name(SocketAddr::new(address, port), holder));
    let mut files = names.flat_map(|name| {
        directories.iter().filter_map(move |directory| directory.file(&name).ok())
    });
    files.find_map(of_running)
}

/// Returns the addresses of the running servers of this machine that keep an operator's token for
/// this user, as a client reaches them.
pub(super) fn operated() -> BTreeSet<SocketAddr> {
    let directories = bases().into_iter().filter_map(|base| Directory::existing(&base).ok());
    let of = |directory: Directory| -> Vec<SocketAddr> {
        let address = |name: &String| {
            let address = reached(name)?;
            of_running(directory.file(name).ok()?).map(|_| address)
        };
        directory.names().iter().filter_map(address).collect()
    };
    directories.flat_map(of).collect()
}

/// Returns the path of a token file that is private, and whose server is alive.
fn of_running((file, path): (File, PathBuf)) -> Option<PathBuf> {
    (private::check(&file, &path).is_ok() && private::is_held(&file)).then_some(path)
}

/// Returns the text of the operator's token for a server at this address of this machine: from the
/// file, or from the one that a running server keeps. `None` if there is neither.
pub(super) fn of_operator(
    host: &str,
    port: u16,
    file: Option<&Path>,
) -> Result<Option<String>, Failure> {
    let file = file.map(Path::to_owned).or_else(|| kept(host, port, Holder::Operator));
    let Some(file) = file else { return Ok(None) };
    let text = from_file(&file)?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Returns the address of the server whose operator's token is kept for this host, or that of
/// `127.0.0.1` if none is.
pub(super) fn address_of_operator(host: &str, port: u16) -> SocketAddr {
    let file = kept(host, port, Holder::Operator);
    let name = file.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
    name.and_then(reached).unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Returns the directories that may contain tokens, of this run or of one with another environment.
/// No tool may read them, so that each is hidden whether or not it exists.
pub(super) fn folders() -> Vec<PathBuf> {
    let all = runtime().into_iter().chain([usual_runtime()]).chain(state_directories());
    let mut folders: Vec<PathBuf> = all.map(|base| private::folder(&base)).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// Returns the runtime directory of the environment, which the system removes when the user logs
/// out.
fn runtime() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|base| base.is_absolute())
}

/// Returns the usual runtime directory.
fn usual_runtime() -> PathBuf {
    Path::new("/run/user").join(rustix::process::geteuid().as_raw().to_string())
}

/// Returns the directories for token files in order of preference: the runtime directory, then the
/// user's state directory.
fn bases() -> Vec<PathBuf> {
    let state = state_directories().into_iter().next();
    runtime().filter(|path| private::is_private(path)).into_iter().chain(state).collect()
}

/// Returns the addresses at which a server on this machine may listen that this host name reaches.
fn addresses(host: &str) -> Vec<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let own = match bare.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) if bare.eq_ignore_ascii_case("localhost") => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Err(_) => return Vec::new(),
    };
    // A server on a wildcard address is reachable at loopback addresses as well: one on `::` at
    // both, and one on `0.0.0.0` at `127.0.0.1`. Another program may listen at `::1` then.
    let is_local = own.iter().all(IpAddr::is_loopback);
    let has_v4 = own.iter().any(IpAddr::is_ipv4);
    let all =
        [has_v4.then_some(IpAddr::from(Ipv4Addr::UNSPECIFIED)), Some(Ipv6Addr::UNSPECIFIED.into())];
    own.into_iter().chain(all.into_iter().flatten().filter(|_| is_local)).collect()
}

/// Returns the file name for an address, valid on every file system.
fn name(address: SocketAddr, holder: Holder) -> String {
    let kind = match holder {
        Holder::Client => "",
        Holder::Operator => ".operator",
    };
    format!("{}-{}{kind}.token", address.ip().to_string().replace(':', "_"), address.port())
}

/// Returns the address at which clients of this machine reach the server with an operator's token
/// file of this name.
fn reached(name: &str) -> Option<SocketAddr> {
    let (ip, port) = name.strip_suffix(".operator.token")?.rsplit_once('-')?;
    let ip: IpAddr = match ip.replace('_', ":").parse::<IpAddr>().ok()? {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let address = SocketAddr::new(ip, port.parse().ok()?);
    ip.is_loopback().then_some(address)
}

#[cfg(test)]
mod tests;
