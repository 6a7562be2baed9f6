//! An empty directory that stands for a user's machine, and the checks of a program in it.

use super::super::names;
use anyhow::{Context as _, ensure};
use palisade_wasip2::command::{run, scrubbed};
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The languages whose SDKs are in every package of the program.
const LANGUAGES: [&str; 4] = ["c", "js", "python", "rust"];

/// The exit code for a wrong command line.
const USAGE: i32 = 2;

/// An empty directory.
pub(super) struct Root(TempDir);

impl Root {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self(tempfile::tempdir().context("creating a directory for a trial")?))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path().join(path)
    }

    /// Returns an installer that runs here. It has the environment of this machine, which says
    /// where its interpreter is, but for the settings and the cache of the program.
    pub(super) fn installer(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = scrubbed(program);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("PALISADE_") {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.path())
            .env("XDG_CONFIG_HOME", self.join("config"))
            .env("XDG_CACHE_HOME", self.join("cache"))
            .env("XDG_STATE_HOME", self.join("state"))
            .env("npm_config_cache", self.join("npm-cache"))
            .env("UV_CACHE_DIR", self.join("uv-cache"));
        command
    }

    /// Returns an installed program that runs here, with nothing of this machine but its `PATH`.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.join("home"))
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Checks that a program is the one of this release: it answers, runs a tool in its sandbox,
    /// and passes on an exit code.
    pub(super) fn check(&self, program: impl Fn() -> Command) -> anyhow::Result<()> {
        let version = run(program().arg("--version"), "asking for the version")?;
        ensure!(version.trim() == format!("{} {}", names::PROGRAM, names::VERSION), "{version}");
        let mut call = program();
        call.args(["call", "calculate", r#"{"expression": "6 * 7"}"#]);
        let answer = run(&mut call, "calling a tool")?;
        ensure!(answer.trim() == "42", "6 * 7 is 42, not {answer}");
        let refused = program().arg("--no-such-option").output().context("a wrong option")?;
        ensure!(refused.status.code() == Some(USAGE), "{}", refused.status);
        Ok(())
    }

    /// Checks that a program finds the SDK of each language beside it.
    pub(super) fn check_sdks(&self, program: impl Fn() -> Command) -> anyhow::Result<()> {
        for language in LANGUAGES {
            let project = format!("words-{language}");
            run(program().args(["new", &project, "--lang", language]), "making a project")?;
        }
        Ok(())
    }
}
