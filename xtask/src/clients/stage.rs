//! The environment of the clients: plugins, a workspace, and a server with a confirmation timeout
//! of two seconds, or with an operator who has more time.

use super::Attended;
use crate::guests::Built;
use crate::served;
use anyhow::{Context as _, ensure};
use std::ffi::OsString;
use std::fs;
use std::path::{Display, Path, PathBuf};
use std::process::Command;

/// The server's settings. The clients rely on this timeout.
const SETTINGS: &str = "[confirm]\ntimeout = \"2s\"\n";
/// The settings of a server with an operator.
const ATTENDED: &str = "[confirm]\ntimeout = \"5m\"\n";
/// Variables that change the behaviour of the program.
const OF_THE_MACHINE: [&str; 7] = [
    "PALISADE_CONFIG",
    "PALISADE_LOG",
    "PALISADE_MEMORY",
    "PALISADE_PLUGINS",
    "PALISADE_SERVE_TOKEN",
    "PALISADE_TIMEOUT",
    "PALISADE_WORKSPACE",
];

/// The directory `target/clients/stage`, created for each run.
#[derive(Debug)]
pub(super) struct Stage {
    root: PathBuf,
    program: PathBuf,
    cache: PathBuf,
}

impl Stage {
    /// Creates the environment and compiles the plugins, so that no client waits for the compiler.
    pub(super) fn make(home: &Path, program: &Path, plugins: &[Built]) -> anyhow::Result<Self> {
        let root = home.join("stage");
        // A new cache per run: plugins accepted by an earlier build are validated again.
        let stage = Self { cache: root.join("cache"), root, program: program.to_owned() };
        if stage.root.exists() {
            fs::remove_dir_all(&stage.root)
                .with_context(|| format!("removing {}", stage.place()))?;
        }
        for folder in [stage.plugins(), stage.workspace(), stage.home()] {
            fs::create_dir_all(&folder)
                .with_context(|| format!("creating {}", folder.display()))?;
        }
        for (attended, settings) in [(Attended::Never, SETTINGS), (Attended::Also, ATTENDED)] {
            fs::write(stage.settings(attended), settings).context("writing the settings")?;
        }
        for plugin in plugins {
            let copy = stage.plugins().join(format!("{}.wasm", plugin.name));
            fs::copy(&plugin.path, copy)
                .with_context(|| format!("copying {}", plugin.path.display()))?;
        }
        stage.warm()?;
        Ok(stage)
    }

    /// Compiles and optimises the plugins, so that a server that is watched compiles nothing in the
    /// background, and checks that they are accepted.
    fn warm(&self) -> anyhow::Result<()> {
        self.run(&["cache", "warm"])?;
        let (listed, said) = self.run(&["list"])?;
        let is_there = listed.contains("test_tool_with_progress");
        ensure!(is_there, "`palisade list` does not accept the guests:\n{listed}{said}");
        Ok(())
    }

    /// Runs a subcommand, and returns its output and its messages.
    fn run(&self, subcommand: &[&str]) -> anyhow::Result<(String, String)> {
        let mut command = served::bare(&self.program);
        self.settle(&mut command);
        command.args(subcommand).args(self.shared(Attended::Never));
        let output = command.output().context("running the program")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (printed, said) = (text(&output.stdout), text(&output.stderr));
        let name = subcommand.join(" ");
        ensure!(output.status.success(), "`palisade {name}` fails:\n{printed}{said}");
        Ok((printed, said))
    }

    /// Gives a program an environment without settings of this machine.
    pub(super) fn settle(&self, command: &mut Command) {
        for name in OF_THE_MACHINE {
            command.env_remove(name);
        }
        command
            .env("HOME", self.home())
            .env("TMPDIR", &self.root)
            .env("PALISADE_CACHE", &self.cache);
    }

    /// Returns the options of every subcommand.
    fn shared(&self, attended: Attended) -> Vec<OsString> {
        let pairs = [
            ("--plugins", self.plugins()),
            ("--workspace", self.workspace()),
            ("--config", self.settings(attended)),
        ];
        pairs
            .into_iter()
            .flat_map(|(option, path)| [option.into(), path.into_os_string()])
            .collect()
    }

    /// Returns the arguments of the server, without those of its transport.
    pub(super) fn serve(&self, attended: Attended) -> Vec<OsString> {
        let events = self.root.join("events.jsonl").into_os_string();
        [vec!["serve".into()], self.shared(attended), vec!["--events".into(), events]].concat()
    }

    /// Returns the program under test.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the workspace of the tools.
    pub(super) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// Returns the log file of a process.
    pub(super) fn log(&self, whose: &str) -> PathBuf {
        self.root.join(format!("{whose}.log"))
    }

    /// Returns the root directory, for messages.
    pub(super) fn place(&self) -> Display<'_> {
        self.root.display()
    }

    fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    /// A home directory without configuration.
    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn settings(&self, attended: Attended) -> PathBuf {
        self.root.join(match attended {
            Attended::Never => "palisade.toml",
            Attended::Also => "attended.toml",
        })
    }
}
