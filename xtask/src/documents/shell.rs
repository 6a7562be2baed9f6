//! Runs the commands of a document in one shell, in a fresh copy of the repository.

use super::parse::Step;
use crate::place::Place;
use anyhow::{Context as _, anyhow, ensure};
use palisade_wasip2::command::scrubbed;
use palisade_wasip2::{TARGET, Target, Toolchain};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;

/// The separator between the outputs of two commands.
const MARK: &str = "\u{1}end of output\u{1}";

/// Commands that are not run here, with the reason.
const ELSEWHERE: [(&str, &str); 2] =
    [("cargo test", "a step of its own in .ci/run"), ("cargo xtask", "it would run itself")];

/// The prefix of commands that run another program of the workspace.
const EXAMPLE: &str = "cargo run --release -p ";

/// The outcome of a command.
pub(super) enum Outcome {
    /// The command was not run, for this reason.
    LeftOut(&'static str),
    /// Its output, stdout and stderr combined.
    Printed(String),
}

/// The build that the commands are run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The release build, as the documents say; built if it is missing.
    Release,
    /// The debug build that `cargo build --workspace --bins` has left, without building.
    Debug,
}

impl Profile {
    /// Returns the built program.
    pub(crate) fn program(self, place: &Place) -> PathBuf {
        place.target.join(self.folder()).join("palisade")
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Debug => "debug",
        }
    }
}

/// A temporary directory with a copy of the repository, named `palisade`.
pub(super) struct Trial<'a> {
    place: &'a Place,
    profile: Profile,
    directory: TempDir,
}

impl<'a> Trial<'a> {
    pub(super) fn prepare(place: &'a Place, profile: Profile) -> anyhow::Result<Self> {
        let trial = Self { place, profile, directory: tempfile::tempdir()? };
        place.copy_sources(&trial.copy())?;
        Ok(trial)
    }

    /// Writes a file that the document asks its readers to write. A new package gets the
    /// repository's lock file.
    pub(super) fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let file = self.copy().join(path);
        let directory = file.parent().with_context(|| format!("{path} has no directory"))?;
        fs::create_dir_all(directory)
            .with_context(|| format!("creating {}", directory.display()))?;
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        if file.ends_with("Cargo.toml") {
            fs::copy(self.place.root.join("Cargo.lock"), directory.join("Cargo.lock"))?;
        }
        Ok(())
    }

    /// Runs the commands one after the other in one shell, so that `cd` and `export` affect the
    /// following commands.
    pub(super) fn run(&self, steps: &[Step]) -> anyhow::Result<Vec<Outcome>> {
        let commands = self.commands(steps);
        let script: String =
            commands.iter().map(|command| wrapped(command.as_deref().unwrap_or(":"))).collect();
        let output = self.shell(&format!("exec 2>&1\n{script}"))?;
        let mut printed = output.split(MARK).map(|text| text.trim_matches('\n').to_owned());
        let outcome = |command: Result<String, &'static str>| {
            let text = printed.next().unwrap_or_default();
            command.map_or_else(Outcome::LeftOut, |_| Outcome::Printed(text))
        };
        ensure!(output.matches(MARK).count() == steps.len(), "the shell ended early:\n{output}");
        Ok(commands.into_iter().map(outcome).collect())
    }

    /// Returns the commands that are actually run. `cargo run` runs in the repository itself, where
    /// everything is built already. After the first one, the others call the program directly.
    fn commands(&self, steps: &[Step]) -> Vec<Result<String, &'static str>> {
        let mut shown = self.profile == Profile::Debug;
        let mut command = |step: &Step| {
            if let Some((_, reason)) =
                ELSEWHERE.iter().find(|(start, _)| step.command.starts_with(start))
            {
                return Err(*reason);
            }
            match step.command.strip_prefix("cargo run --release -- ") {
                Some(arguments) if std::mem::replace(&mut shown, true) => {
                    Ok(format!("palisade {arguments}"))
                }
                None if self.profile == Profile::Debug && step.command.starts_with(EXAMPLE) => {
                    Ok(self.example(&step.command))
                }
                _ if step.command.starts_with("cargo run ") => {
                    Ok(self.in_repository(&step.command))
                }
                _ => Ok(step.command.clone()),
            }
        };
        steps.iter().map(&mut command).collect()
    }

    /// Returns the command for another program of the workspace that is built already.
    fn example(&self, command: &str) -> String {
        let Place { root, target } = self.place;
        let package = command.trim_start_matches(EXAMPLE);
        let program = package.split_once(" --bin ").map_or(package, |(_, program)| program);
        format!("(cd '{}' && '{}'/debug/{program})", root.display(), target.display())
    }

    fn in_repository(&self, command: &str) -> String {
        let Place { root, target } = self.place;
        format!("(cd '{}' && CARGO_TARGET_DIR='{}' {command})", root.display(), target.display())
    }

    /// Runs a script without a terminal, so that nothing prompts, and without the developer's
    /// configuration and state.
    fn shell(&self, script: &str) -> anyhow::Result<String> {
        let mut shell = scrubbed("setsid");
        for (name, _) in
            env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PALISADE_"))
        {
            shell.env_remove(name);
        }
        shell
            .args(["--wait", "bash", "-c", script])
            .current_dir(self.copy())
            .env("PATH", self.path()?)
            .env("XDG_CONFIG_HOME", self.directory.path().join("config"))
            .env("XDG_CACHE_HOME", self.directory.path().join("cache"))
            .env("XDG_STATE_HOME", self.directory.path().join("state"))
            .env_remove("XDG_RUNTIME_DIR")
            .env(
                format!("CARGO_TARGET_{}_RUSTFLAGS", TARGET.replace('-', "_").to_uppercase()),
                self.target_flags()?,
            )
            .stderr(Stdio::inherit());
        let output = shell.output().context("running the commands with setsid and bash")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns a `PATH` that starts with the built program.
    fn path(&self) -> anyhow::Result<OsString> {
        let others = env::var_os("PATH").unwrap_or_default();
        let own = self.place.target.join(self.profile.folder());
        let all = [own].into_iter().chain(env::split_paths(&others));
        env::join_paths(all).context("putting the program on the PATH")
    }

    /// Returns compiler flags that replace a missing WebAssembly target of the toolchain; empty
    /// otherwise.
    fn target_flags(&self) -> anyhow::Result<String> {
        let toolchain = Toolchain::of_this_build().map_err(|error| anyhow!("{error}"))?;
        let home = self.place.target.join("wasm32-wasip2-sysroot");
        let target =
            Target::find(&toolchain, &home, &mut |_| ()).map_err(|error| anyhow!("{error}"))?;
        Ok(target.flags().join(" "))
    }

    fn copy(&self) -> PathBuf {
        self.directory.path().join("palisade")
    }
}

/// Wraps a command so that a separator follows its output; `$?` is preserved.
fn wrapped(command: &str) -> String {
    format!("{command}\nstatus=$?; printf '\\n{MARK}\\n'; (exit $status)\n")
}
