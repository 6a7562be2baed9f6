//! Where the system starts no more threads, a call ends with `resource_exhausted`, and the program
//! with a sentence; and a fork bomb is ended long before. Root only: the limit does not hold for
//! root, so the program runs as other users who have nothing else.

use palisade_tests::World;
use palisade_tests::program::{Ran, executable, finish};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// More threads than a call needs.
const ENOUGH: u32 = 100;

/// The program for a user of its own.
struct OfUser {
    world: World,
    program: PathBuf,
    user: u32,
}

impl OfUser {
    /// Returns `None`, with the reason printed, if no other user can be used here.
    fn new(user: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            palisade_tests::skip("missing threads: only root can act as another user");
            return None;
        }
        let world = World::new();
        world.file("a.txt", "here");
        // The build directory may be closed to other users.
        let program = world.outer().join("palisade");
        std::fs::copy(executable(), &program).unwrap();
        set_permissions(world.outer(), Permissions::from_mode(0o755)).unwrap();
        for folder in [world.root(), world.home()] {
            chown(folder, Some(user), Some(user)).unwrap();
        }
        Some(Self { world, program, user })
    }

    /// Writes the user's own settings.
    fn configure(&self, text: &str) {
        let folder = self.world.home().join(".config/palisade");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("palisade.toml"), text).unwrap();
        for path in
            [self.world.home().join(".config"), folder.clone(), folder.join("palisade.toml")]
        {
            chown(path, Some(self.user), Some(self.user)).unwrap();
        }
    }

    fn run(&self, threads: u32, words: &[&str]) -> Ran {
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={}", self.user), format!("--regid={}", self.user)]);
        command.args(["--clear-groups", "prlimit", &format!("--nproc={threads}")]);
        command.arg(&self.program).args(words).arg("--workspace").arg(self.world.root());
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.world.home()).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = finish(command.spawn().expect("the program can be started"));
        assert!(!ran.stderr.contains("panicked"), "{threads} threads: {ran:?}");
        ran
    }

    /// Runs with more and more threads until the call succeeds, and returns the runs before.
    fn runs_until_success(&self, words: &[&str]) -> Vec<Ran> {
        let mut runs = Vec::new();
        for threads in 2..ENOUGH {
            let ran = self.run(threads, words);
            if ran.code == 0 {
                return runs;
            }
            runs.push(ran);
        }
        panic!("no number of threads is enough: {runs:?}");
    }
}

#[test]
fn call_without_a_thread_ends_with_resource_exhausted() {
    let Some(program) = OfUser::new(54_321) else { return };
    for words in [
        &["call", "read_file", r#"{"path": "a.txt"}"#] as &[&str],
        &["call", "shell", r#"{"command": "true"}"#, "--allow", "execute"],
    ] {
        let _ = program.run(ENOUGH, words).exits_with(0);
        let runs = program.runs_until_success(words);
        let exhausted = runs.iter().filter(|ran| ran.stderr.contains("the limit `threads` of"));
        let exhausted: Vec<&Ran> = exhausted.collect();
        assert!(!exhausted.is_empty(), "{runs:?}");
        for ran in exhausted {
            assert_eq!(ran.code, 7, "{ran:?}");
            assert!(ran.stderr.contains("`ulimit -u`"), "{ran:?}");
        }
    }
}

#[test]
fn server_without_threads_says_so() {
    let Some(program) = OfUser::new(54_322) else { return };
    let runs = program.runs_until_success(&["serve"]);
    let said = runs.iter().filter(|ran| ran.stderr.contains("the system starts no more threads"));
    assert!(said.count() > 0, "{runs:?}");
}

#[test]
fn fork_bomb_of_a_user_without_rights_is_ended_at_the_limit() {
    let Some(program) = OfUser::new(54_323) else { return };
    // Also where a container has a limit of its own.
    program.configure("[shell]\nprocesses = 300\n");
    let bomb = r#"{"command": "trap '' TERM; b() { b & b & wait; }; b"}"#;
    let words = ["call", "shell", bomb, "--allow", "execute", "--timeout", "1m", "--json"];
    let ran = program.run(3_000, &words);
    let result = ran.json();
    assert_eq!(result["error"]["class"], "resource_exhausted", "{result}");
    assert_eq!(result["error"]["detail"]["limit"], "processes", "{result}");
}
