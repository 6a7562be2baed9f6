//! Initialises a plugin in advance: runs it until it has described its tools, and stores the memory
//! that it has then with its code.
//!
//! The WebAssembly is transformed by `wasmtime-wizer`, and run by the interpreter `wasmi`, which is
//! built in seconds. The interpreter has no imports: what a plugin prepares depends on its code
//! alone, so that every build makes the same bytes.

use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmi::{Caller, Engine, ExternType, Instance, Linker, Module, Store, Val};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

/// The exported function that describes the tools (`wit/tool.wit`).
const DEFINITIONS: &str = "palisade:tool/tool@0.1.0#definitions";
/// The exported function that frees the description.
const FREE: &str = "cabi_post_palisade:tool/tool@0.1.0#definitions";

/// Returns the component with the memory that its main module has once the tools are described.
///
/// # Errors
/// Says why the plugin cannot be initialised: it is no such component, it calls the host, or it
/// fails.
pub(crate) fn initialised(component: &[u8]) -> Result<Vec<u8>, String> {
    let place = main_module(component)?;
    let module = module_initialised(&component[place.clone()])?;
    replaced(component, &place, &module)
}

/// Returns the place of the largest module. The others connect it to its imports.
fn main_module(component: &[u8]) -> Result<Range<usize>, String> {
    let mut largest = 0..0;
    for payload in wasmparser::Parser::new(0).parse_all(component) {
        if let wasmparser::Payload::ModuleSection { unchecked_range, .. } = payload.map_err(text)?
            && unchecked_range.len() > largest.len()
        {
            largest = unchecked_range;
        }
    }
    if largest.is_empty() {
        Err("it is not a component with a module".to_owned())
    } else {
        Ok(largest)
    }
}

fn module_initialised(module: &[u8]) -> Result<Vec<u8>, String> {
    let mut wizer = Wizer::new();
    wizer.init_func(DEFINITIONS).keep_init_func(true);
    let (context, instrumented) = wizer.instrument(module).map_err(text)?;
    let mut running = Running::start(&instrumented)?;
    running.describe()?;
    at_once(wizer.snapshot(&context, &mut running))?.map_err(text)
}

/// Returns the component with another module at this place.
fn replaced(component: &[u8], place: &Range<usize>, module: &[u8]) -> Result<Vec<u8>, String> {
    let size = leb128(place.len());
    let head = &component[..place.start];
    let Some(before) = head.strip_suffix(&*size) else {
        return Err("the size of its module is not in the shortest form".to_owned());
    };
    Ok([before, &leb128(module.len()), module, &component[place.end..]].concat())
}

/// Encodes the size of a section.
fn leb128(mut size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (size & 0x7f) as u8;
        size >>= 7;
        if size == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// The module in the interpreter.
struct Running {
    store: Store<()>,
    instance: Instance,
}

impl Running {
    fn start(module: &[u8]) -> Result<Self, String> {
        let engine = Engine::default();
        let module = Module::new(&engine, module).map_err(text)?;
        let mut store = Store::new(&engine, ());
        let mut linker = Linker::new(&engine);
        for import in module.imports() {
            let ExternType::Func(ty) = import.ty() else { continue };
            let (interface, name) = (import.module(), import.name());
            let refusal = format!("it calls {name} of {interface}");
            let refuse = move |_: Caller<'_, ()>, _: &[Val], _: &mut [Val]| {
                Err(wasmi::Error::new(refusal.clone()))
            };
            linker.func_new(interface, name, ty.clone(), refuse).map_err(text)?;
        }
        let instance = linker.instantiate_and_start(&mut store, &module).map_err(text)?;
        Ok(Self { store, instance })
    }

    /// Lets the plugin describe its tools, and free the description.
    fn describe(&mut self) -> Result<(), String> {
        let Self { store, instance } = self;
        let describe = instance.get_typed_func::<(), i32>(&*store, DEFINITIONS).map_err(text)?;
        let free = instance.get_typed_func::<i32, ()>(&*store, FREE).map_err(text)?;
        let description = describe.call(&mut *store, ()).map_err(text)?;
        free.call(store, description).map_err(text)
    }
}

impl InstanceState for Running {
    async fn global_get(&mut self, name: &str, _type_hint: ValType) -> SnapshotVal {
        let global = self.instance.get_global(&self.store, name);
        match global.expect("the module has been instrumented").get(&self.store) {
            Val::I32(value) => SnapshotVal::I32(value),
            Val::I64(value) => SnapshotVal::I64(value),
            Val::F32(value) => SnapshotVal::F32(value.to_bits()),
            Val::F64(value) => SnapshotVal::F64(value.to_bits()),
            other => panic!("the global {name} has the type {:?}", other.ty()),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let memory = self.instance.get_memory(&self.store, name);
        contents(memory.expect("the module has been instrumented").data(&self.store));
    }
}

/// Returns the result of a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> Result<T, String> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => Err("the snapshot waits".to_owned()),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    format!("{error:#}")
}
