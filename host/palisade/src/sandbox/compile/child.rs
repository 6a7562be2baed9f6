//! The child's side of a compilation: it gives up its rights, reads a component, writes compiled
//! code and exits.

use super::order::Order;
use super::threads::{CompileThreads, cores};
use crate::sandbox::bulk_memory::Sliced;
use crate::sandbox::error_text::error_line;
use crate::sandbox::{engine, limits};
use std::io::{self, Read, Write};

/// The answer kind of compiled code. An answer is its kind, the length of its body (64 bits,
/// little-endian) and its body.
pub(super) const CODE: u8 = 0;
pub(super) const REFUSED: u8 = 1;
pub(super) const NO_MEMORY: u8 = 2;
/// The answer kind of a failure of the compiler or the machine, which says nothing about the
/// component.
pub(super) const FAILED: u8 = 3;
/// The maximum length of the text of a rejection, in bytes.
pub(super) const MAX_REASON: usize = 4 << 10;

/// The reason why a child could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// The process was not started by a host.
    #[error("this subcommand is for palisade itself: it compiles a plugin for another process")]
    NotForYou,
    /// The process could not limit itself. It compiles nothing without limits.
    #[error("cannot limit itself: {0}")]
    Limits(io::Error),
    /// The exchange with the host failed, for example because the host exited.
    #[error("cannot talk to the host: {0}")]
    Talk(#[from] io::Error),
}

/// Compiles one plugin for the process that started this one as a
/// [`ChildCompiler`](super::ChildCompiler).
///
/// `order` holds the arguments that follow those configured in the host. Must be called first in
/// `main`, while the process has one thread. The process should exit when this function returns.
///
/// # Errors
///
/// Returns [`ChildError`] if the process cannot limit itself or cannot communicate with the host. A
/// plugin that does not compile is not an error: the host receives the reason.
pub fn answer_compilation(
    order: &[String],
    input: &mut dyn Read,
    output: &mut dyn Write,
) -> Result<(), ChildError> {
    let order = Order::parse(order).ok_or(ChildError::NotForYou)?;
    let cores = cores();
    // Before the file limit, because the creation of a Landlock ruleset needs a file descriptor,
    // and before the threads, which inherit it.
    restrict_access();
    let threads = CompileThreads::start(cores, || {});
    confine(order).map_err(ChildError::Limits)?;
    let mut bytes = Vec::new();
    let (kind, answer) = match input.take(limits::COMPONENT + 1).read_to_end(&mut bytes) {
        Ok(_) => compile(order, &bytes, &threads),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => (NO_MEMORY, Vec::new()),
        Err(error) => return Err(error.into()),
    };
    output.write_all(&[kind])?;
    output.write_all(&(answer.len() as u64).to_le_bytes())?;
    output.write_all(&answer)?;
    output.flush()?;
    Ok(())
}

fn compile(order: Order, bytes: &[u8], threads: &CompileThreads) -> (u8, Vec<u8>) {
    let engine = threads.engine(order.kind).map_err(|error| (FAILED, error));
    let compiled = engine.and_then(|engine| {
        let sliced = Sliced::new(bytes).map_err(wasmtime::Error::new);
        let code = sliced.and_then(|sliced| threads.precompile(&engine, &sliced));
        code.map_err(|error| (REFUSED, error))
    });
    match compiled {
        Ok(code) => (CODE, code),
        Err((_, error)) if engine::is_out_of_memory(&error) => (NO_MEMORY, Vec::new()),
        Err((kind, error)) => {
            (kind, crate::tool::text::cut(&error_line(&error), MAX_REASON).as_bytes().to_vec())
        }
    }
}

/// Sets resource limits that this process cannot raise again.
fn confine(order: Order) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // A limit above the hard limit inherited from the host cannot be set.
    let most = |resource, value: u64| {
        Some(getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value)))
    };
    let limit = |resource, value| {
        let value = most(resource, value);
        setrlimit(resource, Rlimit { current: value, maximum: value })
    };
    limit(Resource::Core, 0)?;
    // The soft limit sends SIGXCPU, which tells the host the cause. At the hard limit, one second
    // later, the kernel sends SIGKILL.
    let current = most(Resource::Cpu, order.seconds);
    let maximum = most(Resource::Cpu, order.seconds.saturating_add(1));
    setrlimit(Resource::Cpu, Rlimit { current, maximum })?;
    limit(Resource::As, order.memory)?;
    // The child writes only to a pipe, and opens and starts nothing.
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nproc, 0)?;
    limit(Resource::Nofile, 0)?;
    Ok(())
}

/// Applies Linux-only restrictions: no file access and no TCP where the kernel has Landlock, and
/// termination together with the host.
#[cfg(target_os = "linux")]
fn restrict_access() {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetStatus, Scope,
    };
    let restrict = || -> Result<RulesetStatus, landlock::RulesetError> {
        let ruleset = Ruleset::default().handle_access(AccessFs::from_all(ABI::V5))?;
        let ruleset =
            ruleset.handle_access(AccessNet::from_all(ABI::V5))?.scope(Scope::from_all(ABI::V6))?;
        Ok(ruleset.create()?.restrict_self()?.ruleset)
    };
    // Best effort: only the resource limits are guaranteed.
    if let Err(error) = restrict() {
        tracing::debug!("the compiler is not confined by Landlock: {error}");
    }
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

#[cfg(not(target_os = "linux"))]
fn restrict_access() {}
