//! The program that serves, in a process of its own.

use super::connection::Address;
use crate::world::World;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The text before the address in the output of the server.
const SERVING: &str = "serving MCP on http://";
/// The open files of the server: half of them are for connections, of two each.
const FILES: u64 = 4_096;
/// The time for the server to reach a state, on a busy machine and with plugins to compile.
const PATIENCE: Duration = Duration::from_secs(120);
/// The poll interval.
const PAUSE: Duration = Duration::from_millis(10);
/// The tokens of clients and of the operator.
const CLIENT: &str = "clients-token-of-the-benchmark-1";
const OPERATOR: &str = "operators-token-of-the-benchmark";

/// A running server, which is killed in the end.
pub(crate) struct Served {
    child: Child,
    address: String,
    _home: TempDir,
}

/// The memory that a process holds, in bytes.
pub(super) struct Held {
    pub(super) resident: u64,
    /// The most so far.
    pub(super) most: u64,
}

impl Served {
    /// Starts the server with these options as well, and waits until it is ready. An error says
    /// why it cannot be measured.
    pub(crate) fn start(world: &World, more: &[&OsStr]) -> Result<Self, String> {
        raise_files()?;
        let home = tempfile::tempdir().map_err(|error| format!("no directory: {error}"))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        command.env("HOME", home.path()).env("PALISADE_CACHE", world.cache());
        command.arg("--workspace").arg(world.workspace());
        command.args(["serve", "--http", "127.0.0.1:0"]).args(more);
        for (option, token) in [("--token-file", CLIENT), ("--operator-token-file", OPERATOR)] {
            command.arg(option).arg(secret(home.path(), token));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut said = BufReader::new(child.stderr.take().expect("its standard error is a pipe"));
        let mut server = Self { child, address: String::new(), _home: home };
        let mut before = String::new();
        while server.address.is_empty() {
            let from = before.len();
            assert!(said.read_line(&mut before).is_ok_and(|read| read > 0), "no address: {before}");
            let address = before[from..].trim().strip_prefix(SERVING);
            server.address =
                address.and_then(|it| it.strip_suffix("/mcp")).unwrap_or("").to_owned();
        }
        // Read to the end, so that the server never waits for a full pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        server.until("the server is ready", "/readyz", |status, _| status == 200);
        if server.held().resident == 0 {
            return Err("this system does not say what a process holds".to_owned());
        }
        Ok(server)
    }

    /// Returns the address with the clients' token.
    pub(crate) fn clients(&self) -> Address {
        Address { address: self.address.clone(), token: CLIENT }
    }

    /// Returns the address with the operator's token.
    pub(super) fn operator(&self) -> Address {
        Address { address: self.address.clone(), token: OPERATOR }
    }

    /// Waits until the server has noticed that nobody reads events any more.
    pub(super) fn wait_until_unread(&self) {
        self.until("the readers are gone", "/metrics", |_, metrics| {
            metrics.lines().any(|line| line.ends_with("event_readers 0"))
        });
    }

    /// Returns the memory that the server holds.
    pub(super) fn held(&self) -> Held {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let field = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0)
                << 10
        };
        Held { resident: field("VmRSS:"), most: field("VmHWM:") }
    }

    /// Waits until a resource says that something is so.
    fn until(&self, what: &str, path: &str, is_so: impl Fn(u16, &str) -> bool) {
        let runtime = crate::on_one_thread();
        let begun = Instant::now();
        loop {
            let (status, body) =
                runtime.block_on(async { self.operator().connect().await.get(path).await });
            if is_so(status, &body) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}; {status}: {body}");
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Fails for a process that has exited; it still has to be reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets this process and its children open enough files for all connections.
fn raise_files() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= FILES) {
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum: limit.maximum })
        .map_err(|error| format!("{FILES} files have to be open at once: {error}"))
}

/// Writes a token to a file that nobody else can read.
fn secret(directory: &Path, token: &str) -> PathBuf {
    let file = directory.join(token);
    let mut options = std::fs::OpenOptions::new();
    let mut open = options.write(true).create_new(true).mode(0o600).open(&file).expect("a file");
    open.write_all(token.as_bytes()).expect("a file");
    file
}
