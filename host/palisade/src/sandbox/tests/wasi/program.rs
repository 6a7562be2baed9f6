//! One program, checked as a plugin is and run as a call is: with the same engine, linker, store,
//! limits and file system.

mod reactor;

use super::lists::Run;
use crate::execution::clock::CallClock;
use crate::execution::{FirstTick, OwnerShares};
use crate::sandbox::compile::Target;
use crate::sandbox::engine::CodeTier;
use crate::sandbox::error_text::error_line;
use crate::sandbox::load::{PluginRefused, check_imports, import_names};
use crate::sandbox::run::{
    ClientRequests, ExitReason, LazyWasiCtx, Limiter, Messages, RunBounds, Runtime, State, Stop,
    new_store, run_bounded,
};
use crate::sandbox::{Limits, limits, precheck};
use crate::tool::Digest;
use crate::workspace::Workspace;
use palisade_wasi_fs::{Access, Filesystem, Mount, Options};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wasmtime::Store;
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, I32Exit, WasiCtx, WasiCtxBuilder};

/// A program, or the reason why it cannot run.
pub(super) struct Program {
    name: String,
    linked: Result<CommandPre<State>, String>,
}

/// The way in which paths are resolved. Programs must not see a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paths {
    /// The best way that this system has.
    Best,
    /// Step by step, as on a system without `openat2`.
    Walked,
}

/// The outcome of a run.
pub(super) struct Outcome {
    /// The error, with what the host knows about it.
    pub(super) result: Result<(), String>,
    /// The standard output.
    pub(super) stdout: Vec<u8>,
    workspace: TempDir,
}

impl Outcome {
    /// Creates the outcome of a run without output or files.
    pub(super) fn bare(result: Result<(), String>) -> Self {
        Self { result, stdout: Vec::new(), workspace: TempDir::new().unwrap() }
    }

    /// Returns a file of the workspace as it is now.
    pub(super) fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.workspace.path().join(name)).ok()
    }
}

impl Program {
    pub(super) fn new(name: &str, bytes: &[u8]) -> Self {
        let runtime = Runtime::of(CodeTier::Optimized).unwrap();
        Self { name: name.to_owned(), linked: linked(&runtime, bytes) }
    }

    /// Runs the program in a fresh workspace.
    pub(super) fn run(&self, run: &Run, paths: Paths) -> Outcome {
        let workspace = TempDir::new().unwrap();
        furnish(workspace.path(), run);
        let (result, stdout) = match &self.linked {
            Ok(linked) => self.call(linked, run, filesystem(workspace.path(), run, paths)),
            Err(why) => (Err(why.clone()), Vec::new()),
        };
        Outcome { result, stdout, workspace }
    }

    fn call(
        &self,
        linked: &CommandPre<State>,
        run: &Run,
        filesystem: Filesystem,
    ) -> (Result<(), String>, Vec<u8>) {
        let runtime = Runtime::of(CodeTier::Optimized).unwrap();
        let clock = CallClock::new(run.seconds.map_or(limits::TIMEOUT, Duration::from_secs));
        let deadline = clock.deadline().into_std();
        let messages = Messages::silent();
        let owner = OwnerShares::new(Digest::of(self.name.as_bytes()));
        let limiter =
            Limiter::new(limits::MEMORY, runtime.kind.allocation, &Limits::default().account());
        let signals = messages.signals().clone();
        let state =
            State::new(filesystem, limiter, messages, ClientRequests::without_client(), deadline);
        let wasi = self.wasi_ctx(run);
        let state = state.with_wasi_ctx(LazyWasiCtx::with_builder(move || wasi));
        let mut store = new_store(&runtime.engine, state);
        run.fuel.into_iter().for_each(|fuel| store.set_hostcall_fuel(fuel));
        let _running = runtime.running();
        let nobody_cancels = CancellationToken::new();
        let bounds = RunBounds {
            clock: &clock,
            cancel: &nobody_cancels,
            signals,
            turns: &owner.turns,
            first_tick: FirstTick::Free,
        };
        let work = async {
            if run.reactor {
                return reactor::call(
                    linked.instance_pre().instantiate_async(&mut store).await?,
                    &mut store,
                )
                .await;
            }
            let command = linked.instantiate_async(&mut store).await?;
            command.wasi_cli_run().call_run(&mut store).await
        };
        let ended = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(run_bounded(work, &bounds));
        let (stdout, _) = store.data().wasi_ctx.take_output();
        (judged(ended, &store), stdout)
    }

    /// Returns the WASI context that a command-line program expects and a plugin does not get.
    fn wasi_ctx(&self, run: &Run) -> WasiCtxBuilder {
        let mut wasi = WasiCtx::builder();
        wasi.arg(&self.name);
        match &run.args {
            Some(args) => wasi.args(args),
            None => wasi.arg("/"),
        };
        match &run.env {
            Some(env) => wasi.envs(&env.iter().collect::<Vec<_>>()),
            None => wasi.env("ERRNO_MODE_UNIX", "1"),
        };
        for number in 0..run.more_env {
            wasi.env(format!("KEY{number}"), "x".repeat(1 << 10));
        }
        if run.set_clocks {
            wasi.wall_clock(SetWall).monotonic_clock(SetMonotonic::default());
        }
        wasi
    }
}

/// Checks, compiles and links a program, as a plugin before its description.
fn linked(runtime: &Runtime, bytes: &[u8]) -> Result<CommandPre<State>, String> {
    let refused = |refused: PluginRefused| refused.to_string();
    precheck::check(bytes).map_err(|error| refused(error.into()))?;
    let target = Target { engine: &runtime.engine, kind: runtime.kind };
    let compiled = target.compile_in_place(bytes).map_err(|error| refused(error.into()))?;
    let component = compiled.component;
    check_imports(import_names(&runtime.engine, &component), None).map_err(refused)?;
    let pre = runtime.linker.instantiate_pre(&component).and_then(CommandPre::new);
    pre.map_err(|error| error_line(&error))
}

fn furnish(workspace: &Path, run: &Run) {
    for (name, text) in &run.files {
        let path = workspace.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::write(path, text).unwrap();
        }
    }
    for (name, size) in &run.zeroes {
        fs::write(workspace.join(name), vec![0; *size]).unwrap();
    }
    for (name, seconds) in &run.changed {
        let file = fs::File::options().write(true).open(workspace.join(name)).unwrap();
        let away = Duration::from_secs(seconds.unsigned_abs());
        let time = if *seconds < 0 {
            SystemTime::UNIX_EPOCH - away
        } else {
            SystemTime::UNIX_EPOCH + away
        };
        // Some file systems refuse such a time, and some store the nearest one. The file exists in
        // any case.
        let _ = file.set_modified(time);
    }
}

fn filesystem(workspace: &Path, run: &Run, paths: Paths) -> Filesystem {
    let workspace = Workspace::open(workspace).unwrap();
    let mount = match paths {
        Paths::Best => Mount::new(workspace.dir()),
        Paths::Walked => Mount::walked(workspace.dir()),
    }
    .unwrap();
    let access = if run.read_only { Access::ReadOnly } else { Access::ReadWrite };
    let named = run.preopen.clone().into_iter();
    let options = named.fold(Options::default(), Options::with_preopen_name);
    Filesystem::new(&mount, access, workspace.rules(), options)
}

/// Describes the end of a run as the host does, with the first refusal of the file system, if there
/// was one.
fn judged(ended: Result<Result<(), ()>, Stop>, store: &Store<State>) -> Result<(), String> {
    let what = match ended {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(())) => format!("it reports failure; its last words: {}", last_words(store)),
        // A program may exit with code 0 in place of returning; a plugin may not.
        Err(Stop::Error(error))
            if error.downcast_ref::<I32Exit>().is_some_and(|exit| exit.0 == 0) =>
        {
            return Ok(());
        }
        Err(stop) => match stop.into_exit_reason(store) {
            ExitReason::Deadline | ExitReason::Cancelled => "its time is up".to_owned(),
            ExitReason::Limit(limit, value) => format!("it reached the limit `{limit}` of {value}"),
            ExitReason::Client(exit) => exit.to_string(),
            ExitReason::Trap(crash) => crash.message.replace('\n', " "),
        },
    };
    match store.data().filesystem.refusal() {
        Some(refusal) => Err(format!("{what}; refused: {refusal}")),
        None => Err(what),
    }
}

fn last_words(store: &Store<State>) -> String {
    let (stderr, _) = store.data().wasi_ctx.take_errors();
    String::from_utf8_lossy(&stderr).trim().replace('\n', " ")
}

/// A wall clock that shows the time that `p2_api_time` expects.
struct SetWall;

impl HostWallClock for SetWall {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::new(1_431_648_000, 100)
    }
}

/// A monotonic clock that advances by 42 seconds at each reading.
#[derive(Default)]
struct SetMonotonic(AtomicU64);

impl HostMonotonicClock for SetMonotonic {
    fn resolution(&self) -> u64 {
        1_000_000_000
    }

    fn now(&self) -> u64 {
        self.0.fetch_add(42_000_000_000, Ordering::Relaxed)
    }
}
