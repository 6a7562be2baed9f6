//! A pseudo-terminal, with the test at one end and the program at the other.

use ::terminal::event::{PollFd, PollFlags, poll};
use ::terminal::fs::{Mode, OFlags, open};
use ::terminal::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use ::terminal::termios::{Winsize, tcsetwinsize};
use palisade_tests::program::{Ran, executable, finish};
use palisade_tests::{World, guest};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The maximum wait for output, in milliseconds.
const PATIENCE: i32 = 60_000;

/// A pseudo-terminal. Its holder reads what a user would see, and types.
pub(crate) struct Terminal {
    person: File,
    program: File,
    path: PathBuf,
    seen: String,
}

impl Terminal {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self::with_columns(160)
    }

    /// Creates a terminal of this width.
    #[track_caller]
    pub(crate) fn with_columns(columns: u16) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a terminal can be made");
        grantpt(&person).expect("its ownership can be set");
        unlockpt(&person).expect("it can be unlocked");
        let size = Winsize { ws_row: 25, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&person, size).expect("it has a size");
        let name = ptsname(&person, Vec::new()).expect("it has a name");
        let path = PathBuf::from(name.to_str().expect("its name is a path"));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program = open(&path, flags, Mode::empty()).expect("its other end can be opened");
        Self { person: File::from(person), program: File::from(program), path, seen: String::new() }
    }

    /// Returns the terminal as one of the program's standard streams.
    pub(crate) fn stream(&self) -> Stdio {
        Stdio::from(self.program.try_clone().expect("a handle can be copied"))
    }

    /// Returns the program in this terminal, with pipes as standard streams, as in a script.
    pub(crate) fn command(&self, world: &World, words: &[&str]) -> Command {
        let mut command = self.command_of(world, &executable());
        command.arg("--workspace").arg(world.root()).args(words);
        command
    }

    /// Starts a shell in this terminal. `$palisade` is the program with its workspace.
    #[track_caller]
    pub(crate) fn start_shell(&self, world: &World, script: &str) -> Child {
        let mut command = self.command_of(world, Path::new("/bin/sh"));
        let palisade = format!("{} --workspace {}", executable().display(), world.root().display());
        command.env("palisade", palisade).arg("-c").arg(script);
        command.spawn().expect("a shell can be started")
    }

    fn command_of(&self, world: &World, program: &Path) -> Command {
        let launcher = executable().with_file_name("in-terminal");
        let mut command = Command::new(launcher);
        command
            .arg(&self.path)
            .arg(program)
            .env_clear()
            .envs(
                ["PATH", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"]
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .env("PALISADE_TEST_KEEP_TERMINAL", "1")
            .env("PALISADE_CACHE", guest::cache())
            .env("HOME", world.home())
            .env("TERM", "xterm")
            .current_dir(world.outer())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the program that [`command`](Self::command) returns.
    #[track_caller]
    pub(crate) fn start(&self, world: &World, words: &[&str]) -> Child {
        self.command(world, words).spawn().expect("the program can be started")
    }

    /// Waits until the terminal shows this text.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.look(), "the terminal never shows {text:?}, but:\n{}", self.seen);
        }
    }

    /// Returns true if the terminal shows this text within a time.
    pub(crate) fn shows_within(&mut self, text: &str, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.seen.contains(text) {
            let left = end.saturating_duration_since(Instant::now()).as_millis();
            if left == 0 || !self.look_for(i32::try_from(left).unwrap_or(PATIENCE)) {
                return false;
            }
        }
        true
    }

    /// Types these keys.
    #[track_caller]
    pub(crate) fn types(&mut self, keys: &str) {
        std::io::Write::write_all(&mut self.person, keys.as_bytes()).expect("one can type");
    }

    /// Runs a program to its end, and returns what the terminal has shown.
    #[track_caller]
    pub(crate) fn run(self, mut command: Command) -> (Ran, String) {
        let child = command.spawn().expect("the program can be started");
        // `Command` holds the terminal's streams; output ends only when every handle is closed.
        drop(command);
        let ran = finish(child);
        (ran, self.transcript())
    }

    /// Returns everything that the terminal has shown, once the program has ended.
    pub(crate) fn transcript(self) -> String {
        let Self { person, program, path, seen } = self;
        // With the last handle of the program's side closed, reads end instead of blocking.
        drop(program);
        let null = File::open("/dev/null").expect("there is a null device");
        let mut rest = Self { person, program: null, path, seen };
        while rest.look() {}
        rest.seen
    }

    /// Reads more output. Returns false at its end, or after [`PATIENCE`].
    fn look(&mut self) -> bool {
        self.look_for(PATIENCE)
    }

    fn look_for(&mut self, milliseconds: i32) -> bool {
        let mut ready = [PollFd::from_borrowed_fd(self.person.as_fd(), PollFlags::IN)];
        if poll(&mut ready, milliseconds).is_ok_and(|count| count == 0) {
            return false;
        }
        let mut bytes = [0; 4096];
        let count = std::io::Read::read(&mut self.person, &mut bytes).unwrap_or(0);
        self.seen.push_str(&String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()));
        count > 0
    }
}
