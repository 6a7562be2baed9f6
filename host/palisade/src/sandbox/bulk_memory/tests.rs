//! Tests of the splitting of bulk memory instructions.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod behaviour;
mod form;
mod host_calls;
mod hostile;

use super::shared_tables::SharedTables;
use super::slow_path::SLICE;
use super::{Sliced, module};
use palisade_tests::wat::binary;
use std::borrow::Cow;
use wasmtime::{Config, Engine, Instance, Module, Store, UpdateDeadline};

/// An instance of a core module, with a count of its epoch checks.
struct Running {
    store: Store<u64>,
    instance: Instance,
}

fn engine() -> Engine {
    Engine::new(Config::new().epoch_interruption(true)).unwrap()
}

/// The usual form of components.
const USUAL: SharedTables = SharedTables::CheckedAtCalls;

/// Returns a module as the compiler gets it, if it is changed, in a component of the usual form.
fn changed(bytes: &[u8]) -> Option<Vec<u8>> {
    module::rewritten(bytes, USUAL).unwrap()
}

/// Returns a module that is changed.
fn rewritten(bytes: &[u8]) -> Vec<u8> {
    changed(bytes).unwrap()
}

impl Running {
    fn new(engine: &Engine, bytes: &[u8]) -> Self {
        let mut store = Store::new(engine, 0);
        // The deadline has always passed, so that each check counts.
        store.set_epoch_deadline(0);
        store.epoch_deadline_callback(|mut store| {
            *store.data_mut() += 1;
            Ok(UpdateDeadline::Continue(0))
        });
        let module = Module::from_binary(engine, bytes).unwrap();
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        Self { store, instance }
    }

    /// Calls a function of three numbers, and returns whether it returned.
    fn call(&mut self, name: &str, operands: [u32; 3]) -> bool {
        let operands = operands.map(u32::cast_signed).into();
        let function = self.instance.get_typed_func::<(i32, i32, i32), ()>(&mut self.store, name);
        function.unwrap().call(&mut self.store, operands).is_ok()
    }

    fn memory(&mut self, name: &str) -> &[u8] {
        self.instance.get_memory(&mut self.store, name).unwrap().data(&self.store)
    }

    fn checks(&mut self) -> u64 {
        std::mem::take(self.store.data_mut())
    }
}
