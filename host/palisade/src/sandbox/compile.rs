//! Compilation of plugins: in this process, or in a child process with limited time, memory and
//! access.

mod child;
mod compiler;
mod error;
mod order;
mod parent;
mod thread;
mod threads;

pub use child::{ChildError, answer_compilation};
pub use compiler::{ChildCompiler, CompileLimits, Compiler};
pub use error::CompileError;

use super::bulk_memory::Sliced;
use super::deserialize::{CompiledCode, deserialize};
use super::engine::CodeKind;
use order::Order;
use threads::CompileThreads;
use tokio_util::sync::CancellationToken;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Compiled code in serialised form, and the component loaded from it.
pub(super) struct Compiled {
    pub(super) component: Component,
    pub(super) code: Vec<u8>,
}

/// The engine that loads the code, and the kind of the code.
pub(super) struct Target<'a> {
    pub(super) engine: &'a Engine,
    pub(super) kind: CodeKind,
}

impl Target<'_> {
    /// Compiles an embedded plugin in this process.
    pub(super) fn compile_in_place(&self, bytes: &[u8]) -> Result<Compiled, CompileError> {
        let sliced = Sliced::new(bytes)?;
        let threads = CompileThreads::start(threads::cores(), || {});
        let engine = threads.engine(self.kind).map_err(|error| CompileError::failed(&error))?;
        let code = threads.precompile(&engine, &sliced);
        self.load(code.map_err(|error| CompileError::invalid(&error))?)
    }

    /// Compiles on threads of this process, and loads the result.
    pub(super) fn compile_on_thread(
        &self,
        limits: CompileLimits,
        bytes: &[u8],
        cancel: &CancellationToken,
    ) -> Result<Compiled, CompileError> {
        self.load(thread::compile(self.kind, limits, bytes, cancel)?)
    }

    /// Compiles in a child process, and loads the result. The child is killed when `cancel` is
    /// cancelled.
    pub(super) fn compile_in_child(
        &self,
        compiler: &ChildCompiler,
        bytes: &[u8],
        cancel: &CancellationToken,
    ) -> Result<Compiled, CompileError> {
        let order = Order::new(self.kind, compiler.limits);
        self.load(parent::compile(compiler, order, bytes, cancel)?)
    }

    /// Loads compiled code. A failure is the compiler's fault, such as a compiler of another
    /// version, because the component itself was accepted.
    fn load(&self, code: Vec<u8>) -> Result<Compiled, CompileError> {
        let component = deserialize(self.engine, &CompiledCode::Fresh(&code))
            .map_err(|error| CompileError::failed(&error))?;
        Ok(Compiled { component, code })
    }
}
