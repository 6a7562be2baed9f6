//! Who compiles plugins: this process, or a child of it that has little time, little memory, and nothing to reach.

mod child;
mod error;
mod parent;
mod thread;

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
#[derive(Debug, Clone)]
pub enum Compiler {
    /// This process does, on up to four threads that are waited for within these limits.
    ///
    /// It is the weaker way. A plugin that takes too long is refused and the host goes on, but nothing can stop its threads: they run until the compiler is done,
    /// and two compilations run at once at most, those left running among them: beside two of these every further one is refused. Memory is judged beforehand, by the size of the plugin
    /// and by what a byte of ordinary code takes, and is not enforced. A flaw of the compiler runs with the rights of this process. It needs nothing but the
    /// library.
    InProcess(CompileLimits),
    /// A child process does, within limits that the kernel keeps, and is killed at their end.
    Child(ChildCompiler),
}

impl Default for Compiler {
    fn default() -> Self {
        Self::InProcess(CompileLimits::default())
    }
}

impl Compiler {
    /// How much processor time the compilation of one plugin may take.
    pub(crate) fn time(&self) -> Duration {
        self.limits().time
    }

    pub(super) fn limits(&self) -> CompileLimits {
        match self {
            Self::InProcess(limits) => *limits,
            Self::Child(child) => child.limits,
        }
    }
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
    /// Processor time: 1 ms to [`MAX_TIME`](Self::MAX_TIME). A compilation is also ended where it is not done after ten times as long, however little of the
    /// processor it was given.
    ///
    /// A child counts it in whole seconds, rounded up.
    pub time: Duration,
    /// Address space of the child, in bytes: the program itself, what it reads, and what it makes.
    pub memory: u64,
}

impl CompileLimits {
    /// 20 MB that are nothing but code take one slow core a minute, and a Python component of that size some two thirds of that; the rest is for slower cores.
    pub const TIME: Duration = Duration::from_secs(180);
    /// The most time that can be asked for.
    pub const MAX_TIME: Duration = Duration::from_secs(3600);
    /// The largest component that is accepted, if it were nothing but code, takes about this much: 28 bytes for each of its own (measured).
    pub const MEMORY: u64 = 2 << 30;
    /// The least that can be asked for: less would not hold the program.
    pub const MIN_MEMORY: u64 = 256 << 20;
    /// The most that can be asked for.
    pub const MAX_MEMORY: u64 = 64 << 30;
    /// How much longer than its processor time a compilation is waited for: a machine with other work gives it a part of a core.
    const PATIENCE: u32 = 10;

    /// The longest that a compilation is waited for.
    fn wall(self) -> Duration {
        self.time.saturating_mul(Self::PATIENCE)
    }

    /// The limits as a child keeps them: the kernel counts its time in whole seconds.
    fn in_whole_seconds(self) -> Self {
        let begun = u64::from(self.time.subsec_nanos() > 0);
        Self { time: Duration::from_secs(self.time.as_secs().saturating_add(begun).max(1)), ..self }
    }
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
    /// Time of the processor, in seconds.
    seconds: u64,
    /// Address space, in bytes.
    memory: u64,
}

impl Order {
    fn new(allocation: engine::Allocation, limits: CompileLimits) -> Self {
        Self { allocation, seconds: limits.in_whole_seconds().time.as_secs(), memory: limits.memory }
    }

    fn arguments(self) -> [String; 3] {
        let allocation = match self.allocation {
            engine::Allocation::Pooled => "pooled",
            engine::Allocation::OnDemand => "on-demand",
            engine::Allocation::Scarce => "scarce",
        };
        [allocation.to_owned(), self.seconds.to_string(), self.memory.to_string()]
    }

    fn parse(arguments: &[String]) -> Option<Self> {
        let [allocation, seconds, memory] = arguments else { return None };
        let allocation = match allocation.as_str() {
            "pooled" => engine::Allocation::Pooled,
            "on-demand" => engine::Allocation::OnDemand,
            "scarce" => engine::Allocation::Scarce,
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

/// Compiles in this process what is part of it, on every core.
pub(super) fn in_place(runtime: &engine::Runtime, bytes: &[u8]) -> Result<Compiled, CompileError> {
    // `from_binary`, not `new`: the latter would accept text as well.
    let component = Component::from_binary(&runtime.engine, bytes).map_err(|error| CompileError::invalid(&error))?;
    let code = component.serialize().map_err(|error| CompileError::failed(&error))?;
    Ok(Compiled { component, code })
}

/// Compiles on a thread of this process, and loads what it made.
pub(super) fn on_a_thread(
    runtime: &engine::Runtime,
    limits: CompileLimits,
    bytes: &[u8],
    given_up: &CancellationToken,
) -> Result<Compiled, CompileError> {
    let code = thread::compile(runtime.allocation, limits, bytes, given_up)?;
    loaded(runtime, code)
}

/// Compiles in a child, and loads what it made. The child is killed when this is given up.
pub(super) fn in_child(
    runtime: &engine::Runtime,
    compiler: &ChildCompiler,
    bytes: &[u8],
    given_up: &CancellationToken,
) -> Result<Compiled, CompileError> {
    let code = parent::compile(compiler, Order::new(runtime.allocation, compiler.limits), bytes, given_up)?;
    loaded(runtime, code)
}

/// Code that does not load is the compiler's fault, such as one of another version: the component has been accepted.
fn loaded(runtime: &engine::Runtime, code: Vec<u8>) -> Result<Compiled, CompileError> {
    let component =
        cache::deserialize(&runtime.engine, &cache::Code::Made(&code)).map_err(|error| CompileError::failed(&error))?;
    Ok(Compiled { component, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_its_processor_time_in_whole_seconds_and_ten_times_as_long_to_be_done() {
        for (millis, seconds) in [(1, 1), (999, 1), (1_000, 1), (1_001, 2), (180_000, 180)] {
            let limits = CompileLimits { time: Duration::from_millis(millis), ..CompileLimits::default() };
            assert_eq!(Order::new(engine::Allocation::Pooled, limits).seconds, seconds, "{millis}");
            assert_eq!(limits.wall(), Duration::from_millis(millis * 10));
            assert_eq!(limits.in_whole_seconds().wall(), Duration::from_secs(seconds * 10), "{millis}");
        }
    }

    #[test]
    fn an_order_survives_the_command_line() {
        for allocation in [engine::Allocation::Pooled, engine::Allocation::OnDemand, engine::Allocation::Scarce] {
            let order = Order::new(allocation, CompileLimits::default());
            assert_eq!(Order::parse(&order.arguments()), Some(order));
        }
        for wrong in [&["pooled", "1"][..], &["pool", "1", "1"], &["pooled", "-1", "1"], &["pooled", "1", "1", "1"]] {
            let wrong: Vec<String> = wrong.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(Order::parse(&wrong), None);
        }
    }

    #[test]
    fn the_limits_are_those_of_whoever_compiles() {
        let limits = CompileLimits { time: Duration::from_secs(7), memory: 8 };
        let child = ChildCompiler::palisade("/bin/palisade").limits(limits);
        for compiler in [Compiler::InProcess(limits), Compiler::Child(child)] {
            assert_eq!((compiler.limits(), compiler.time()), (limits, limits.time));
        }
    }
}
