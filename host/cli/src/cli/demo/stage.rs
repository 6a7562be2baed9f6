//! The environment of the demo: a workspace with planted symlinks and a named pipe, and a directory
//! beside it that must stay out of reach.

use super::attempts::{Attempt, Calls};
use crate::cli::exit::{Exit, Failure};
use crate::cli::{scratch, setup};
use palisade::Host;
use palisade::policy::Policy;
use palisade::{Call, SideEffects, ToolResult};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The content of the outside file; no result may contain it.
const SECRET: &str = "what-no-plugin-may-read";

pub(super) struct Stage {
    directory: TempDir,
    host: Host,
}

impl Stage {
    /// Builds the workspace and the host. Returns `None` if a signal arrives meanwhile, because the
    /// plugins may have to be compiled.
    pub(super) async fn new(told: &CancellationToken) -> Result<Option<Self>, Failure> {
        let directory = scratch::directory()?;
        let workspace = directory.path().join("workspace");
        prepare(directory.path(), &workspace)?;
        let plugin = palisade_plugins::hostile();
        let file = directory.path().join(plugin.file);
        fs::write(&file, plugin.bytes())?;
        let host = Host::builder()
            .workspace(&workspace)
            .plugin_file(file)
            .policy(Policy::default().allowing(SideEffects::Write))
            .cache(setup::cache_mode());
        let host = tokio::select! {
            biased;
            () = told.cancelled() => return Ok(None),
            host = tokio::task::spawn_blocking(|| host.build()) => host.map_err(io::Error::other)??,
        };
        match host.rejected().as_slice() {
            [] => Ok(Some(Self { directory, host })),
            [rejected, ..] => Err(Failure::new(Exit::Internal, &rejected.reason)),
        }
    }

    /// Makes an attempt, and then a call of a harmless tool, which must still work.
    pub(super) async fn try_out(
        &self,
        attempt: &Attempt,
        told: &CancellationToken,
    ) -> (Result<String, String>, Duration) {
        if attempt.calls == Calls::Twice {
            self.call(attempt, told).await;
        }
        let result = self.call(attempt, told).await;
        let verdict = self.outside_is_whole(&result).and_then(|()| attempt.judge(&result));
        let next = self.host.call("calculate", json!({"expression": "6 * 7"}), json!({})).await;
        let verdict = match next.output() {
            Some(output) if output == "42" => verdict,
            _ => Err("the next call of another tool failed".to_owned()),
        };
        (verdict, result.duration())
    }

    async fn call(&self, attempt: &Attempt, told: &CancellationToken) -> ToolResult {
        let cancel = told.child_token();
        let call = Call::new(attempt.tool, json!({"attempt": attempt.name}))
            .with_cancellation(cancel.clone());
        let call = match attempt.calls.time() {
            Some(time) => call.with_timeout(time),
            None => call,
        };
        let ended = self.host.dispatch(self.host.session(), call);
        match attempt.calls.cancelled_after() {
            None => ended.await,
            Some(after) => {
                let cancelled = async {
                    tokio::time::sleep(after).await;
                    cancel.cancel();
                };
                tokio::join!(ended, cancelled).0
            }
        }
    }

    /// Checks that the outside directory is unchanged and that the result does not contain its
    /// content.
    fn outside_is_whole(&self, result: &ToolResult) -> Result<(), String> {
        let outside = self.directory.path().join("outside");
        let names: Vec<_> = fs::read_dir(&outside)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        let secret = fs::read_to_string(outside.join("secret")).unwrap_or_default();
        if names != ["secret"] || secret != SECRET {
            return Err("something outside of the workspace has changed".to_owned());
        }
        if result.to_json().to_string().contains(SECRET) {
            return Err("it read a file outside of the workspace".to_owned());
        }
        Ok(())
    }
}

fn prepare(directory: &Path, workspace: &Path) -> io::Result<()> {
    let outside = directory.join("outside");
    for folder in [&outside, &workspace.join("notes"), &workspace.join(".git/hooks")] {
        fs::create_dir_all(folder)?;
    }
    fs::write(outside.join("secret"), SECRET)?;
    fs::write(workspace.join("readme.txt"), "An ordinary file.\n")?;
    snares(&outside, workspace)
}

fn snares(outside: &Path, workspace: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::symlink;
    symlink(outside.join("secret"), workspace.join("link-to-secret"))?;
    symlink("../outside", workspace.join("link-to-outside"))?;
    mknodat(CWD, workspace.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    Ok(())
}
