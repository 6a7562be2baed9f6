//! Compilation of plugins: in this process, or in a child process with limited time, memory and
//! access.

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

/// The place where plugins from files are compiled. Plugins embedded in the host are compiled in
/// this process, unless the address space is short.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// This process, on up to four threads, within these limits.
    ///
    /// This is the weaker choice. A plugin that takes too long is rejected and the host goes on,
    /// but its threads cannot be stopped: they run until the compiler is done. At most two
    /// compilations run at once, abandoned ones included; while two abandoned ones run, every
    /// further compilation is rejected. The memory limit is checked beforehand against an estimate,
    /// from the size of the plugin and the memory per byte of ordinary code, and is not enforced. A
    /// compiler flaw runs with the rights of this process. This choice needs nothing but the
    /// library.
    InProcess(CompileLimits),
    /// A child process, within limits that the kernel enforces. The host kills it when they are
    /// exceeded.
    Child(ChildCompiler),
}

impl Default for Compiler {
    fn default() -> Self {
        Self::InProcess(CompileLimits::default())
    }
}

impl Compiler {
    /// Returns the CPU time limit for the compilation of one plugin.
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

/// A program that compiles one plugin and exits.
#[derive(Debug, Clone)]
pub struct ChildCompiler {
    program: PathBuf,
    arguments: Vec<OsString>,
    limits: CompileLimits,
    cancelled: CancellationToken,
}

impl ChildCompiler {
    /// The hidden subcommand by which the program `palisade` compiles.
    pub const VERB: &'static str = "compile-child";

    /// Creates a compiler that runs the program `palisade` at this absolute path. The program must
    /// have the version of this library, because code of another version is not loaded.
    #[must_use]
    pub fn palisade(program: impl Into<PathBuf>) -> Self {
        Self::program(program, [Self::VERB])
    }

    /// Creates a compiler that runs any program which passes the arguments that follow `arguments`
    /// to [`answer_compilation`]. The path must be absolute.
    #[must_use]
    pub fn program<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self {
            program: program.into(),
            arguments,
            limits: CompileLimits::default(),
            cancelled: CancellationToken::new(),
        }
    }

    /// Sets the limits for the compilation of one plugin.
    #[must_use]
    pub fn limits(mut self, limits: CompileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Kills running compilations, and starts no more, once this token is cancelled. The affected
    /// plugins are rejected.
    #[must_use]
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.cancelled = token;
        self
    }
}

/// The limits for the compilation of one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// CPU time: 1 ms to [`MAX_TIME`](Self::MAX_TIME). A compilation also ends after ten times as
    /// long in wall-clock time, whatever CPU time it was given.
    ///
    /// A child process counts CPU time in whole seconds, rounded up.
    pub time: Duration,
    /// Address space of the child, in bytes, including the program, its input and its output.
    pub memory: u64,
}

impl CompileLimits {
    /// The default CPU time. 20 MB of pure code take one minute on a slow core, and a Python
    /// component of that size about two thirds of that; the rest is margin for slower cores.
    pub const TIME: Duration = Duration::from_secs(180);
    /// The largest CPU time that can be configured.
    pub const MAX_TIME: Duration = Duration::from_secs(3600);
    /// The default address space. The largest accepted component, if it were pure code, takes about
    /// this much: 28 bytes per byte of code (measured).
    pub const MEMORY: u64 = 2 << 30;
    /// The smallest address space that can be configured. Less would not hold the program.
    pub const MIN_MEMORY: u64 = 256 << 20;
    /// The largest address space that can be configured.
    pub const MAX_MEMORY: u64 = 64 << 30;
    /// The ratio of wall-clock time to CPU time. On a busy machine a compilation gets only part of
    /// a core.
    const PATIENCE: u32 = 10;

    /// Returns the wall-clock limit.
    fn wall(self) -> Duration {
        self.time.saturating_mul(Self::PATIENCE)
    }

    /// Returns the limits as a child enforces them: the kernel counts CPU time in whole seconds.
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

/// The parameters that a child needs before it reads its input. They are passed as three arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Order {
    allocation: engine::Allocation,
    /// CPU time, in seconds.
    seconds: u64,
    /// Address space, in bytes.
    memory: u64,
}

impl Order {
    fn new(allocation: engine::Allocation, limits: CompileLimits) -> Self {
        Self {
            allocation,
            seconds: limits.in_whole_seconds().time.as_secs(),
            memory: limits.memory,
        }
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
        Some(Self {
            allocation,
            seconds: u64::from_str(seconds).ok()?,
            memory: u64::from_str(memory).ok()?,
        })
    }
}

/// Compiled code in serialised form, and the component loaded from it.
pub(super) struct Compiled {
    pub(super) component: Component,
    pub(super) code: Vec<u8>,
}

/// Compiles an embedded plugin in this process, on every core.
pub(super) fn in_place(runtime: &engine::Runtime, bytes: &[u8]) -> Result<Compiled, CompileError> {
    // `Component::new` would accept the text format as well.
    let component = Component::from_binary(&runtime.engine, bytes)
        .map_err(|error| CompileError::invalid(&error))?;
    let code = component.serialize().map_err(|error| CompileError::failed(&error))?;
    Ok(Compiled { component, code })
}

/// Compiles on threads of this process, and loads the result.
pub(super) fn on_a_thread(
    runtime: &engine::Runtime,
    limits: CompileLimits,
    bytes: &[u8],
    given_up: &CancellationToken,
) -> Result<Compiled, CompileError> {
    let code = thread::compile(runtime.allocation, limits, bytes, given_up)?;
    loaded(runtime, code)
}

/// Compiles in a child process, and loads the result. The child is killed when `given_up` is
/// cancelled.
pub(super) fn in_child(
    runtime: &engine::Runtime,
    compiler: &ChildCompiler,
    bytes: &[u8],
    given_up: &CancellationToken,
) -> Result<Compiled, CompileError> {
    let code = parent::compile(
        compiler,
        Order::new(runtime.allocation, compiler.limits),
        bytes,
        given_up,
    )?;
    loaded(runtime, code)
}

/// Loads compiled code. A failure is the compiler's fault, such as a compiler of another version,
/// because the component itself was accepted.
fn loaded(runtime: &engine::Runtime, code: Vec<u8>) -> Result<Compiled, CompileError> {
    let component = cache::deserialize(&runtime.engine, &cache::Code::Made(&code))
        .map_err(|error| CompileError::failed(&error))?;
    Ok(Compiled { component, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_has_whole_cpu_seconds_and_ten_times_the_wall_time() {
        for (millis, seconds) in [(1, 1), (999, 1), (1_000, 1), (1_001, 2), (180_000, 180)] {
            let limits =
                CompileLimits { time: Duration::from_millis(millis), ..CompileLimits::default() };
            assert_eq!(Order::new(engine::Allocation::Pooled, limits).seconds, seconds, "{millis}");
            assert_eq!(limits.wall(), Duration::from_millis(millis * 10));
            assert_eq!(
                limits.in_whole_seconds().wall(),
                Duration::from_secs(seconds * 10),
                "{millis}"
            );
        }
    }

    #[test]
    fn order_survives_the_command_line() {
        for allocation in
            [engine::Allocation::Pooled, engine::Allocation::OnDemand, engine::Allocation::Scarce]
        {
            let order = Order::new(allocation, CompileLimits::default());
            assert_eq!(Order::parse(&order.arguments()), Some(order));
        }
        for wrong in [
            &["pooled", "1"][..],
            &["pool", "1", "1"],
            &["pooled", "-1", "1"],
            &["pooled", "1", "1", "1"],
        ] {
            let wrong: Vec<String> = wrong.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(Order::parse(&wrong), None);
        }
    }

    #[test]
    fn limits_are_those_of_the_compiler() {
        let limits = CompileLimits { time: Duration::from_secs(7), memory: 8 };
        let child = ChildCompiler::palisade("/bin/palisade").limits(limits);
        for compiler in [Compiler::InProcess(limits), Compiler::Child(child)] {
            assert_eq!((compiler.limits(), compiler.time()), (limits, limits.time));
        }
    }
}
