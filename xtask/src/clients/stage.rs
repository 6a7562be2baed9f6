//! What all clients find: plugins, a workspace, and a server that waits two seconds for the answer to a question.

use crate::guests::Built;
use crate::served;
use anyhow::{Context as _, ensure};
use std::ffi::OsString;
use std::fs;
use std::path::{Display, Path, PathBuf};
use std::process::Command;

/// The settings. The clients know of the time.
const SETTINGS: &str = "[confirm]\ntimeout = \"2s\"\n";
/// What makes the program say more or do otherwise than it does by itself.
const OF_THE_MACHINE: [&str; 7] = [
    "PALISADE_CONFIG",
    "PALISADE_LOG",
    "PALISADE_MEMORY",
    "PALISADE_PLUGINS",
    "PALISADE_SERVE_TOKEN",
    "PALISADE_TIMEOUT",
    "PALISADE_WORKSPACE",
];

/// Below `target/clients/stage`, made anew for each run.
#[derive(Debug)]
pub(super) struct Stage {
    root: PathBuf,
    program: PathBuf,
    cache: PathBuf,
}

impl Stage {
    /// Makes it, with these plugins in their directory, compiled: no client waits for a compiler.
    pub(super) fn make(home: &Path, program: &Path, plugins: &[Built]) -> anyhow::Result<Self> {
        let root = home.join("stage");
        // Of this run: a plugin that an earlier build accepted is judged anew.
        let stage = Self { cache: root.join("cache"), root, program: program.to_owned() };
        if stage.root.exists() {
            fs::remove_dir_all(&stage.root).with_context(|| format!("removing {}", stage.place()))?;
        }
        for folder in [stage.plugins(), stage.workspace(), stage.home()] {
            fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        fs::write(stage.settings(), SETTINGS).context("writing the settings")?;
        for plugin in plugins {
            let copy = stage.plugins().join(format!("{}.wasm", plugin.name));
            fs::copy(&plugin.path, copy).with_context(|| format!("copying {}", plugin.path.display()))?;
        }
        stage.warm()?;
        Ok(stage)
    }

    fn warm(&self) -> anyhow::Result<()> {
        let mut list = served::bare(&self.program);
        self.settle(&mut list);
        let output = list.arg("list").args(self.shared()).output().context("running the program")?;
        let (listed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let is_there = output.status.success() && listed.contains("test_tool_with_progress");
        ensure!(is_there, "`palisade list` does not accept the guests:\n{listed}{said}");
        Ok(())
    }

    /// Gives a program an environment in which nothing of the machine's changes what Palisade does.
    pub(super) fn settle(&self, command: &mut Command) {
        for name in OF_THE_MACHINE {
            command.env_remove(name);
        }
        command.env("HOME", self.home()).env("TMPDIR", &self.root).env("PALISADE_CACHE", &self.cache);
    }

    /// What every verb takes.
    fn shared(&self) -> Vec<OsString> {
        let pairs = [("--plugins", self.plugins()), ("--workspace", self.workspace()), ("--config", self.settings())];
        pairs.into_iter().flat_map(|(option, path)| [option.into(), path.into_os_string()]).collect()
    }

    /// The words with which the program serves.
    pub(super) fn serve(&self) -> Vec<OsString> {
        let events = self.root.join("events.jsonl").into_os_string();
        [vec!["serve".into()], self.shared(), vec!["--events".into(), events]].concat()
    }

    /// The program that is tried.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// What tools see.
    pub(super) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// What somebody says while it runs.
    pub(super) fn log(&self, whose: &str) -> PathBuf {
        self.root.join(format!("{whose}.log"))
    }

    /// Where all of it lies.
    pub(super) fn place(&self) -> Display<'_> {
        self.root.display()
    }

    fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    /// A home without configuration.
    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn settings(&self) -> PathBuf {
        self.root.join("palisade.toml")
    }
}
