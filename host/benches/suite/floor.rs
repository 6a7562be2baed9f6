//! The floor: hand-written wasmtime at its best settings, on the same guests, with nothing of Palisade in it.

use std::path::{Path, PathBuf};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store, StoreLimits,
    StoreLimitsBuilder,
};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "plugin",
        ownership: Borrowing { duplicate_if_necessary: true },
        exports: { default: async },
    });
}

use bindings::PluginPre;
use bindings::exports::palisade::tool::tool::Call;
use bindings::palisade::tool::types::Content;

/// What a guest may have, in bytes; the pool's slots are as large.
const MEMORY: usize = 64 << 20;

/// Hand-written wasmtime with two plugins loaded.
pub(crate) struct Floor {
    engine: Engine,
    plugins: Vec<(&'static [&'static str], PluginPre<State>)>,
    workspace: PathBuf,
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl bindings::palisade::tool::host::Host for State {
    fn log(&mut self, _: bindings::palisade::tool::host::Level, _: String) {}
    fn progress(&mut self, _: f64, _: Option<f64>, _: Option<String>) {}
    fn emit(&mut self, _: String) {}
    fn cancelled(&mut self) -> bool {
        false
    }
}

impl bindings::palisade::tool::types::Host for State {}

impl Floor {
    pub(crate) fn new(workspace: &Path) -> Self {
        let engine = Engine::new(&config()).expect("an engine");
        let mut linker: Linker<State> = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI");
        bindings::palisade::tool::host::add_to_linker::<_, wasmtime::component::HasSelf<_>>(&mut linker, |state| state)
            .expect("the host interface");
        let prepare = |bytes: &[u8]| {
            let component = Component::from_binary(&engine, bytes).expect("a component");
            PluginPre::new(linker.instantiate_pre(&component).expect("known imports")).expect("a plugin")
        };
        let bench = std::fs::read(palisade_tests::guest::BENCH_CALLS.file()).expect("the benchmark's guest");
        let files = palisade_plugins::all().iter().find(|plugin| plugin.name == "files").expect("a shipped plugin");
        let plugins: Vec<(&[&str], _)> =
            vec![(&["echo", "read"], prepare(&bench)), (&["read_file"], prepare(files.bytes))];
        Self { engine, plugins, workspace: workspace.to_owned() }
    }

    /// One call: everything from the store to its drop.
    pub(crate) async fn call(&self, tool: &str, input: &str) -> usize {
        let (_, plugin) =
            self.plugins.iter().find(|(tools, _)| tools.contains(&tool)).expect("a plugin with this tool");
        let mut wasi = WasiCtx::builder();
        wasi.allow_blocking_current_thread(true)
            .preopened_dir(&self.workspace, "/", FsPerms::ReadOnly)
            .expect("a directory");
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY).build();
        let mut store = Store::new(&self.engine, State { wasi: wasi.build(), table: ResourceTable::new(), limits });
        store.limiter(|state| &mut state.limits);
        store.set_epoch_deadline(1_000);
        let instance = plugin.instantiate_async(&mut store).await.expect("an instance");
        let call = Call {
            call_id: "1",
            session_id: None,
            turn_id: None,
            tool,
            input,
            remaining_ms: 60_000,
            context: "{}",
            metadata: "{}",
        };
        let output =
            instance.palisade_tool_tool().call_execute(&mut store, call).await.expect("no trap").expect("an output");
        match output.content.as_slice() {
            [Content::Text(text)] => text.len(),
            _ => panic!("one block of text"),
        }
    }
}

/// The settings of the hand-written program behind the figures in ARCHITECTURE.md.
fn config() -> Config {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(64)
        .total_core_instances(256)
        .total_memories(64)
        .total_tables(256)
        .total_stacks(64)
        .max_memory_size(MEMORY)
        .linear_memory_keep_resident(512 << 10)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config.epoch_interruption(true).concurrency_support(false).memory_reservation(MEMORY as u64);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}
