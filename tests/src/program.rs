//! Runs of the program from the command line, in an isolated environment.

use std::ffi::OsString;
use std::io::Write as _;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use palisade::internal::fits_address_space;
use serde_json::Value;

use crate::guest::cache;
use crate::world::World;

/// An upper bound for the time of a run, also on a slow machine. A program that hangs then fails
/// its test instead of blocking the whole run.
const PATIENCE: Duration = Duration::from_secs(120);

/// The program with its command line, in an isolated environment.
pub struct Program<'w> {
    command: Command,
    stdin: Vec<u8>,
    world: PhantomData<&'w World>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    /// The exit code, or 128 plus the signal's number if a signal ended the program.
    pub code: i32,
    /// The contents of standard output.
    pub stdout: String,
    /// The contents of standard error.
    pub stderr: String,
}

impl<'w> Program<'w> {
    /// Returns the program for a world: with its workspace and its home directory without
    /// configuration, and with none of the caller's environment variables except `PATH`,
    /// `LD_LIBRARY_PATH` and `LLVM_PROFILE_FILE`.
    #[must_use]
    pub fn new(world: &'w World) -> Self {
        let mut command = Command::new(executable());
        command
            .env_clear()
            .envs(
                ["PATH", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"]
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .env("HOME", world.home())
            .env("PALISADE_CACHE", cache())
            .current_dir(world.outer())
            .args(["--workspace".into(), world.root()]);
        Self { command, stdin: Vec::new(), world: PhantomData }
    }

    /// Appends arguments to the command line.
    #[must_use]
    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.command.args(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    /// Starts the program through another one, which gets these arguments and then the command
    /// line.
    #[must_use]
    pub fn through<T: Into<OsString>>(
        mut self,
        starter: &str,
        args: impl IntoIterator<Item = T>,
    ) -> Self {
        let mut command = Command::new(starter);
        command
            .args(args.into_iter().map(Into::into))
            .arg(self.command.get_program())
            .args(self.command.get_args());
        command
            .env_clear()
            .envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = self.command.get_current_dir() {
            command.current_dir(directory);
        }
        self.command = command;
        self
    }

    /// Starts the program under limits of the shell's `ulimit`, such as `-v 500000`.
    #[must_use]
    pub fn limited(self, limits: &str) -> Self {
        self.through("sh", ["-c", &format!("ulimit {limits} && exec \"$@\""), "sh"])
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: PathBuf) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Sets the contents of standard input.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = text.into();
        self
    }

    /// Redirects standard output.
    #[must_use]
    pub fn stdout(mut self, to: impl Into<Stdio>) -> Self {
        self.command.stdout(to);
        self
    }

    /// Runs the program until it exits.
    ///
    /// # Panics
    ///
    /// If the program cannot be started, hangs, panics, or prints invalid UTF-8.
    #[track_caller]
    #[must_use]
    pub fn run(mut self) -> Ran {
        self.command.stdout(Stdio::piped());
        finish(self.start())
    }

    /// Runs the program until it exits, without capturing standard output if it was redirected.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    #[track_caller]
    #[must_use]
    pub fn run_into(self) -> Ran {
        finish(self.start())
    }

    /// Starts the program with pipes for all three standard streams.
    ///
    /// # Panics
    ///
    /// If the program cannot be started.
    #[track_caller]
    #[must_use]
    pub fn open(mut self) -> Child {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.command.spawn().expect("the program can be started")
    }

    /// Starts the program, writes its standard input and closes that.
    ///
    /// # Panics
    ///
    /// If the program cannot be started.
    #[track_caller]
    #[must_use]
    pub fn start(mut self) -> Child {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut pipe = child.stdin.take().expect("its standard input is a pipe");
        let text = self.stdin;
        // On another thread: the write blocks if the program does not read its input.
        std::thread::spawn(move || pipe.write_all(&text));
        child
    }
}

/// Waits until a started program exits.
///
/// # Panics
///
/// If the program hangs, panics, or prints invalid UTF-8.
#[track_caller]
#[must_use]
pub fn finish(child: Child) -> Ran {
    let id = child.id();
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let start = Instant::now();
    let Ok(output) = receive.recv_timeout(PATIENCE) else {
        kill(id);
        panic!("the program did not end within {:?}", start.elapsed());
    };
    let output = output.expect("the program can be waited for");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints UTF-8");
    let ran =
        Ran { code: code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) };
    let own = without_crashes(&ran.stderr);
    assert!(!own.contains("panicked at"), "the program panicked:\n{}", ran.stderr);
    assert!(!own.contains("stack backtrace"), "the program shows a backtrace:\n{}", ran.stderr);
    ran
}

/// Removes the lines of a log that quote a crashed guest, which may mention a panic of its own.
pub(crate) fn without_crashes(log: &str) -> String {
    let quotes = |line: &str| {
        ["the plugin crashed: ", "the plugin crashed; "].iter().any(|words| line.contains(words))
    };
    log.lines().filter(|line| !quotes(line)).collect::<Vec<_>>().join("\n")
}

impl Ran {
    /// Parses standard output as one JSON value.
    ///
    /// # Panics
    ///
    /// If standard output is not one JSON value.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {self:#?}"))
    }

    /// Checks the exit code.
    ///
    /// # Panics
    ///
    /// If the exit code differs.
    #[track_caller]
    #[must_use]
    pub fn exits_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Checks that standard error contains each of the given texts.
    ///
    /// # Panics
    ///
    /// If a text is missing.
    #[track_caller]
    pub fn stderr_contains(&self, of: &[&str]) -> &Self {
        for part in of {
            assert!(self.stderr.contains(part), "standard error does not say {part:?}: {self:#?}");
        }
        self
    }
}

/// Returns the path of the program, which cargo builds for every suite.
#[must_use]
pub fn executable() -> PathBuf {
    beside_tests("palisade-under-test")
}

/// Returns the path of a program whose first thread ends while another one keeps memory, which
/// cargo builds for every suite. It takes an amount in MiB and a time in seconds.
#[must_use]
pub fn leaderless() -> PathBuf {
    beside_tests("leaderless")
}

/// Runs one test of the current binary again, under limits of the shell's `ulimit` and with this
/// variable in its environment, and checks that it passes.
///
/// # Panics
///
/// If the test fails, or there is no such test.
#[track_caller]
pub fn test_again(limits: &str, test: &str, variable: &str) {
    let own = std::env::current_exe().expect("a test knows where it is");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limits} && exec \"$@\""), "sh"]).arg(own);
    let ran =
        shell.args(["--exact", test, "--nocapture"]).env(variable, "1").output().expect("a shell");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Runs one test of the current binary again in a small address space, and there returns all of it
/// but the part that the host keeps free. The test ends where this returns `None`.
///
/// # Panics
///
/// If the test fails.
#[track_caller]
#[must_use]
pub fn address_space_in_use(test: &str) -> Option<Vec<Vec<u8>>> {
    const SMALL: &str = "PALISADE_TESTS_SMALL_ADDRESS_SPACE";
    const STEP: usize = 4 << 20;
    if std::env::var_os(SMALL).is_none() {
        test_again("-v 2000000", test, SMALL);
        return None;
    }
    let mut held = Vec::new();
    while fits_address_space(STEP) {
        held.push(Vec::with_capacity(STEP));
    }
    Some(held)
}

/// Returns the path of a binary of this package, which cargo builds for every suite.
pub(crate) fn beside_tests(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows where it is");
    // Tests are in the directory `deps` of the profile, the soak tests in the directory above.
    let programs = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    let found = programs.into_iter().find(|program| program.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "there is no {name} for {}; `cargo build -p palisade-tests` builds it",
            own.display()
        )
    })
}

fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Kills a program that hangs.
fn kill(id: u32) {
    let process = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(process) = process {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
}
