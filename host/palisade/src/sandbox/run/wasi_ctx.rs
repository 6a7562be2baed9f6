//! The WASI context of a guest except for files: an empty standard input, captured output, clocks
//! and randomness. No environment, no arguments, no network.

use super::stdio::Captured;
use crate::sandbox::limits;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

/// A function that returns the builder of a context other than the default one.
type Builder = Box<dyn FnOnce() -> WasiCtxBuilder + Send>;

/// The WASI context of a guest, created at its first use, which most guests never make. The builder
/// makes two random number generators and their state twice, which took 7,400 of 113,600
/// instructions of an echo call.
#[derive(Default)]
pub(crate) struct LazyWasiCtx {
    builder: Option<Builder>,
    built: Option<Box<WasiCtxWithOutput>>,
}

/// A context that exists, and its captured output.
struct WasiCtxWithOutput {
    wasi: WasiCtx,
    stdout: Captured,
    stderr: Captured,
}

impl LazyWasiCtx {
    /// Creates a context other than that of a call.
    pub(crate) fn with_builder(builder: impl FnOnce() -> WasiCtxBuilder + Send + 'static) -> Self {
        Self { builder: Some(Box::new(builder)), built: None }
    }

    /// Returns the WASI context.
    pub(crate) fn get(&mut self) -> &mut WasiCtx {
        &mut self.build().wasi
    }

    /// Takes the captured standard output, and returns it with the number of dropped bytes.
    pub(crate) fn take_output(&self) -> (Vec<u8>, u64) {
        self.built.as_ref().map(|built| built.stdout.take()).unwrap_or_default()
    }

    /// Takes the captured standard error, and returns it with the number of dropped bytes.
    pub(crate) fn take_errors(&self) -> (Vec<u8>, u64) {
        self.built.as_ref().map(|built| built.stderr.take()).unwrap_or_default()
    }

    /// Returns the stream of standard output.
    #[cfg(test)]
    pub(crate) fn stdout(&mut self) -> Captured {
        self.build().stdout.clone()
    }

    fn build(&mut self) -> &mut WasiCtxWithOutput {
        let builder = &mut self.builder;
        self.built.get_or_insert_with(|| Box::new(WasiCtxWithOutput::new(builder.take())))
    }
}

impl WasiCtxWithOutput {
    fn new(builder: Option<Builder>) -> Self {
        let mut wasi = builder.map_or_else(WasiCtx::builder, |build| build());
        let stdout = Captured::default();
        let stderr = Captured::default();
        wasi.stdout(stdout.clone())
            .stderr(stderr.clone())
            .max_random_size(limits::RANDOM)
            // File operations run on the guest's thread. The guarded file system implements them,
            // and no file that it opens can block.
            .allow_blocking_current_thread(true);
        Self { wasi: wasi.build(), stdout, stderr }
    }
}
