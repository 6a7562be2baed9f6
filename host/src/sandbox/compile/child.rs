//! The child's side: it takes away what it may do, reads a component, writes compiled code, and ends.

use super::Order;
use crate::sandbox::{engine, limits, prepare::brief};
use std::io::{self, Read, Write};
use wasmtime::Engine;

/// An answer begins with one of these, and goes on with its length and its bytes.
pub(super) const CODE: u8 = 0;
pub(super) const REFUSED: u8 = 1;
pub(super) const NO_MEMORY: u8 = 2;
/// The compiler or the machine failed, which says nothing of the component.
pub(super) const FAILED: u8 = 3;
/// The longest words of a refusal, in bytes.
pub(super) const MAX_WORDS: usize = 4 << 10;

/// Why a child could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// It was not started by a host.
    #[error("this verb is for palisade itself: it compiles a plugin for another process")]
    NotForYou,
    /// It could not limit itself, and compiles nothing without limits.
    #[error("cannot limit itself: {0}")]
    Limits(io::Error),
    /// The host went away, or sent nothing.
    #[error("cannot talk to the host: {0}")]
    Talk(#[from] io::Error),
}

/// Compiles one plugin for the process that started this one as a [`ChildCompiler`](super::ChildCompiler).
///
/// `order` are the arguments behind those that the host was told to give. To be called first of all in `main`, while there is one thread; the process should end
/// when it returns.
///
/// # Errors
///
/// [`ChildError`] where it cannot limit itself or cannot talk to the host. A plugin that does not compile is no error: the host is told.
pub fn answer_compilation(order: &[String], input: &mut dyn Read, output: &mut dyn Write) -> Result<(), ChildError> {
    let order = Order::parse(order).ok_or(ChildError::NotForYou)?;
    confine(order).map_err(ChildError::Limits)?;
    let mut bytes = Vec::new();
    let (kind, answer) = match input.take(limits::COMPONENT + 1).read_to_end(&mut bytes) {
        Ok(_) => compile(order, &bytes),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => (NO_MEMORY, Vec::new()),
        Err(error) => return Err(error.into()),
    };
    output.write_all(&[kind])?;
    output.write_all(&(answer.len() as u64).to_le_bytes())?;
    output.write_all(&answer)?;
    output.flush()?;
    Ok(())
}

fn compile(order: Order, bytes: &[u8]) -> (u8, Vec<u8>) {
    let engine = Engine::new(&engine::for_compilation(order.allocation)).map_err(|error| (FAILED, error));
    match engine.and_then(|engine| precompile(&engine, bytes).map_err(|error| (REFUSED, error))) {
        Ok(code) => (CODE, code),
        Err((_, error)) if is_out_of_memory(&error) => (NO_MEMORY, Vec::new()),
        Err((kind, error)) => (kind, crate::tool::text::cut(&brief(&error), MAX_WORDS).as_bytes().to_vec()),
    }
}

/// The engine would take text as well; the border has seen to it that there is none.
pub(super) fn precompile(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Vec<u8>> {
    if !wasmparser::Parser::is_component(bytes) {
        wasmtime::bail!("it is not a component in binary form");
    }
    engine.precompile_component(bytes)
}

pub(super) fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    let of_system = |error: &io::Error| error.kind() == io::ErrorKind::OutOfMemory;
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(of_system) || cause.to_string().contains("(os error 12)")
    })
}

/// Limits that nothing in this process can raise again.
#[cfg(unix)]
fn confine(order: Order) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // What the host itself was not allowed is not asked for.
    let most = |resource, value: u64| Some(getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value)));
    let limit = |resource, value| {
        let value = most(resource, value);
        setrlimit(resource, Rlimit { current: value, maximum: value })
    };
    // First, since it takes a descriptor for a moment.
    beyond_limits();
    limit(Resource::Core, 0)?;
    // A second later the kernel would not say why it kills.
    let (current, maximum) = (most(Resource::Cpu, order.seconds), most(Resource::Cpu, order.seconds.saturating_add(1)));
    setrlimit(Resource::Cpu, Rlimit { current, maximum })?;
    limit(Resource::As, order.memory)?;
    // It writes into a pipe, opens nothing, and starts nothing.
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nproc, 0)?;
    limit(Resource::Nofile, 0)?;
    Ok(())
}

#[cfg(not(unix))]
fn confine(_: Order) -> io::Result<()> {
    Ok(())
}

/// What only Linux has: no files and no TCP at all, where the kernel has Landlock, and an end with the host.
#[cfg(target_os = "linux")]
fn beyond_limits() {
    use landlock::{ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetStatus, Scope};
    let restrict = || -> Result<RulesetStatus, landlock::RulesetError> {
        let ruleset = Ruleset::default().handle_access(AccessFs::from_all(ABI::V5))?;
        let ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V5))?.scope(Scope::from_all(ABI::V6))?;
        Ok(ruleset.create()?.restrict_self()?.ruleset)
    };
    // Neither is promised: the limits are.
    if let Err(error) = restrict() {
        tracing::debug!("the compiler is not confined by Landlock: {error}");
    }
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

#[cfg(all(unix, not(target_os = "linux")))]
fn beyond_limits() {}
