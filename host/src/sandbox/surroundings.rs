//! What a guest finds around it besides files: input that is at its end, captured output, clocks and chance. No environment, no arguments, no network.

use super::limits;
use super::stdio::Captured;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

/// Says what there is in place of what every guest finds.
type Maker = Box<dyn FnOnce() -> WasiCtxBuilder + Send>;

/// Made when the guest first looks around, which most never do: two generators of random numbers and what belongs to them, made twice by the builder, took 7,400 of 113,600 instructions of an echo.
#[derive(Default)]
pub(super) struct Surroundings {
    maker: Option<Maker>,
    made: Option<Box<Made>>,
}

/// What there is, and what was written.
struct Made {
    wasi: WasiCtx,
    stdout: Captured,
    stderr: Captured,
}

impl Surroundings {
    /// Other ones than a guest finds in a call.
    pub(super) fn by(maker: impl FnOnce() -> WasiCtxBuilder + Send + 'static) -> Self {
        Self { maker: Some(Box::new(maker)), made: None }
    }

    /// What WASI asks for.
    pub(super) fn wasi(&mut self) -> &mut WasiCtx {
        &mut self.made().wasi
    }

    /// What was written to standard output so far, and how many bytes were dropped.
    pub(super) fn take_output(&self) -> (Vec<u8>, u64) {
        self.made.as_ref().map(|made| made.stdout.take()).unwrap_or_default()
    }

    /// The same, of standard error.
    pub(super) fn take_errors(&self) -> (Vec<u8>, u64) {
        self.made.as_ref().map(|made| made.stderr.take()).unwrap_or_default()
    }

    /// Where standard output goes.
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
        let (stdout, stderr) = (Captured::default(), Captured::default());
        wasi.stdout(stdout.clone())
            .stderr(stderr.clone())
            .max_random_size(limits::RANDOM)
            // For what the guard answers in place of this: file operations run where the guest runs, and nothing that it opens can block.
            .allow_blocking_current_thread(true);
        Self { wasi: wasi.build(), stdout, stderr }
    }
}
