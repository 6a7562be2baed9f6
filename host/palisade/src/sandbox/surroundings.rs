//! The WASI context of a guest except for files: an empty standard input, captured output, clocks
//! and randomness. No environment, no arguments, no network.

use super::limits;
use super::stdio::Captured;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

/// A function that returns a context to use in place of the default one.
type Maker = Box<dyn FnOnce() -> WasiCtxBuilder + Send>;

/// The WASI context of a guest, created at its first use, which most guests never make. The builder
/// makes two random number generators and their state twice, which took 7,400 of 113,600
/// instructions of an echo call.
#[derive(Default)]
pub(super) struct Surroundings {
    maker: Option<Maker>,
    made: Option<Box<Made>>,
}

/// A context that exists, and its captured output.
struct Made {
    wasi: WasiCtx,
    stdout: Captured,
    stderr: Captured,
}

impl Surroundings {
    /// Creates surroundings other than those of a call.
    pub(super) fn by(maker: impl FnOnce() -> WasiCtxBuilder + Send + 'static) -> Self {
        Self { maker: Some(Box::new(maker)), made: None }
    }

    /// Returns the WASI context.
    pub(super) fn wasi(&mut self) -> &mut WasiCtx {
        &mut self.made().wasi
    }

    /// Takes the captured standard output, and returns it with the number of dropped bytes.
    pub(super) fn take_output(&self) -> (Vec<u8>, u64) {
        self.made.as_ref().map(|made| made.stdout.take()).unwrap_or_default()
    }

    /// Takes the captured standard error, and returns it with the number of dropped bytes.
    pub(super) fn take_errors(&self) -> (Vec<u8>, u64) {
        self.made.as_ref().map(|made| made.stderr.take()).unwrap_or_default()
    }

    /// Returns the stream of standard output.
    #[cfg(test)]
    pub(super) fn stdout(&mut self) -> Captured {
        self.made().stdout.clone()
    }

    fn made(&mut self) -> &mut Made {
        let maker = &mut self.maker;
        self.made.get_or_insert_with(|| Box::new(Made::by(maker.take())))
    }
}

impl Made {
    fn by(maker: Option<Maker>) -> Self {
        let mut wasi = maker.map_or_else(WasiCtx::builder, |make| make());
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
