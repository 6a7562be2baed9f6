//! Who compiles plugins: this process, or a child of it that has little time, little memory, and nothing to reach.

mod child;
mod error;
mod parent;

pub use child::{ChildError, answer_compilation};
pub use error::CompileError;

use super::{cache, engine};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wasmtime::component::Component;

/// Who compiles the plugins that come from files. Those that come with the host are part of it: they are compiled in place, unless the
/// address space is short.
#[derive(Debug, Clone, Default)]
pub enum Compiler {
    /// This process does.
    ///
    /// It is the weaker way: compilation of a hostile plugin has no bound on time or memory beyond the caps on what is compiled, cannot be interrupted, takes
    /// every core, and a flaw of the compiler runs with the rights of this process. It needs nothing but the library.
    #[default]
    InProcess,
    /// A child process does, within limits, and is killed at their end.
    Child(ChildCompiler),
}

/// A program that compiles one plugin and ends.
#[derive(Debug, Clone)]
pub struct ChildCompiler {
    program: PathBuf,
    arguments: Vec<OsString>,
    limits: CompileLimits,
    cancelled: CancellationToken,
}

impl ChildCompiler {
    /// The hidden verb by which the program `palisade` compiles.
    pub const VERB: &'static str = "compile-child";

    /// A program `palisade`, by its absolute path: of this very version, since code of another is not loaded.
    #[must_use]
    pub fn palisade(program: impl Into<PathBuf>) -> Self {
        Self::program(program, [Self::VERB])
    }

    /// Any program that, started with these arguments and some more, hands the others to [`answer_compilation`]. Its path must be absolute.
    #[must_use]
    pub fn program<A: Into<OsString>>(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self {
            program: program.into(),
            arguments,
            limits: CompileLimits::default(),
            cancelled: CancellationToken::new(),
        }
    }

    /// What the compilation of one plugin may take.
    #[must_use]
    pub fn limits(mut self, limits: CompileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Kills what is being compiled, and starts no more, once this token is cancelled. The plugins concerned are rejected.
    #[must_use]
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.cancelled = token;
        self
    }
}

/// What the compilation of one plugin may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Time, from the start of the child to its end.
    pub time: Duration,
    /// Address space of the child, in bytes: the program itself, what it reads, and what it makes.
    pub memory: u64,
}

impl CompileLimits {
    /// 20 MB that are nothing but code take one slow core a minute, and a Python component of that size some two thirds of that; the rest is for machines that do
    /// something else as well.
    pub const TIME: Duration = Duration::from_secs(180);
    /// The most time that can be asked for.
    pub const MAX_TIME: Duration = Duration::from_secs(3600);
    /// The largest component that is accepted, if it were nothing but code, takes about this much: 28 bytes for each of its own (measured).
    pub const MEMORY: u64 = 2 << 30;
    /// The least that can be asked for: less would not hold the program.
    pub const MIN_MEMORY: u64 = 256 << 20;
    /// The most that can be asked for.
    pub const MAX_MEMORY: u64 = 64 << 30;
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { time: Self::TIME, memory: Self::MEMORY }
    }
}

/// What a child has to know before it reads anything; it travels as three arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Order {
    allocation: engine::Allocation,
    /// Time of the processor, in seconds: the parent's clock stops a child earlier, unless the parent is gone.
    seconds: u64,
    /// Address space, in bytes.
    memory: u64,
}

impl Order {
    fn new(allocation: engine::Allocation, limits: CompileLimits) -> Self {
        Self { allocation, seconds: limits.time.as_secs().saturating_add(1), memory: limits.memory }
    }

    fn arguments(self) -> [String; 3] {
        let allocation = match self.allocation {
            engine::Allocation::Pooled => "pooled",
            engine::Allocation::OnDemand => "on-demand",
        };
        [allocation.to_owned(), self.seconds.to_string(), self.memory.to_string()]
    }

    fn parse(arguments: &[String]) -> Option<Self> {
        let [allocation, seconds, memory] = arguments else { return None };
        let allocation = match allocation.as_str() {
            "pooled" => engine::Allocation::Pooled,
            "on-demand" => engine::Allocation::OnDemand,
            _ => return None,
        };
        Some(Self { allocation, seconds: u64::from_str(seconds).ok()?, memory: u64::from_str(memory).ok()? })
    }
}

/// Compiled code, and what it is once it is loaded.
pub(super) struct Compiled {
    pub(super) component: Component,
    pub(super) code: Vec<u8>,
}

/// Compiles in this process.
pub(super) fn in_process(runtime: &engine::Runtime, bytes: &[u8]) -> Result<Compiled, CompileError> {
    // `from_binary`, not `new`: the latter would accept text as well.
    let component = Component::from_binary(&runtime.engine, bytes).map_err(|error| CompileError::invalid(&error))?;
    let code = component.serialize().map_err(|error| CompileError::invalid(&error))?;
    Ok(Compiled { component, code })
}

/// Compiles in a child, and loads what it made. The child is killed when this is given up.
pub(super) fn in_child(
    runtime: &engine::Runtime,
    compiler: &ChildCompiler,
    bytes: &[u8],
    given_up: &CancellationToken,
) -> Result<Compiled, CompileError> {
    let code = parent::compile(compiler, Order::new(runtime.allocation, compiler.limits), bytes, given_up)?;
    let component = cache::deserialize(&runtime.engine, &cache::Code::Made(&code))
        .map_err(|error| CompileError::invalid(&error))?;
    Ok(Compiled { component, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_the_command_line() {
        for allocation in [engine::Allocation::Pooled, engine::Allocation::OnDemand] {
            let order = Order::new(allocation, CompileLimits::default());
            assert_eq!(Order::parse(&order.arguments()), Some(order));
        }
        for wrong in [&["pooled", "1"][..], &["pool", "1", "1"], &["pooled", "-1", "1"], &["pooled", "1", "1", "1"]] {
            let wrong: Vec<String> = wrong.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(Order::parse(&wrong), None);
        }
    }
}
