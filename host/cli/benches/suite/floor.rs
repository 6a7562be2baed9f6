//! The floor: hand-written wasmtime at its best settings, on the same guests, without any Palisade
//! code.

use crate::world::World;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    StoreLimits, StoreLimitsBuilder,
};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "plugin",
        ownership: Borrowing { duplicate_if_necessary: true },
        exports: { default: async },
    });
}

use bindings::PluginPre;
use bindings::exports::palisade::tool::tool::Call;
use bindings::palisade::tool::types::Content;

/// The memory limit of a guest, in bytes, which is also the slot size of the pool.
const MEMORY: usize = 64 << 20;

/// Hand-written wasmtime with its plugins loaded.
pub(crate) struct Floor {
    engine: Engine,
    linker: Linker<State>,
    plugins: Vec<(&'static [&'static str], PluginPre<State>)>,
    workspace: PathBuf,
    cache: PathBuf,
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
    /// Returns a host without plugins.
    pub(crate) fn new(world: &World) -> Self {
        let engine = Engine::new(&config()).expect("an engine");
        let mut linker: Linker<State> = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI");
        bindings::palisade::tool::host::add_to_linker::<_, wasmtime::component::HasSelf<_>>(
            &mut linker,
            |state| state,
        )
        .expect("the host interface");
        let cache = world.floor_cache();
        std::fs::create_dir_all(&cache).expect("a directory for compiled code");
        Self { engine, linker, plugins: Vec::new(), workspace: world.workspace().to_owned(), cache }
    }

    /// Adds a plugin that offers these tools.
    pub(crate) fn with(mut self, tools: &'static [&'static str], bytes: &[u8]) -> Self {
        let component = self.mapped(&self.compiled(bytes));
        let plugin =
            PluginPre::new(self.linker.instantiate_pre(&component).expect("known imports"));
        self.plugins.push((tools, plugin.expect("a plugin")));
        self
    }

    /// Adds a shipped plugin.
    pub(crate) fn with_shipped(self, plugin: &str, tools: &'static [&'static str]) -> Self {
        let shipped = palisade_plugins::all().iter().find(|shipped| shipped.name == plugin);
        self.with(tools, &shipped.expect("a shipped plugin").bytes())
    }

    /// Returns the file with the compiled code of these bytes; compiles unless an earlier run has.
    pub(crate) fn compiled(&self, bytes: &[u8]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        self.engine.precompile_compatibility_hash().hash(&mut hasher);
        bytes.hash(&mut hasher);
        let file = self.cache.join(format!("{:016x}.code", hasher.finish()));
        if !file.is_file() {
            let code = self.engine.precompile_component(bytes).expect("a component");
            std::fs::write(&file, code).expect("compiled code can be kept");
        }
        file
    }

    /// Maps and links compiled code: the minimum cost of loading.
    pub(crate) fn load(&self, compiled: &Path) {
        let component = self.mapped(compiled);
        let plugin =
            PluginPre::new(self.linker.instantiate_pre(&component).expect("known imports"));
        std::hint::black_box(plugin.expect("a plugin"));
    }

    #[allow(
        unsafe_code,
        reason = "this is how compiled code is mapped; it lies below the target directory, where cargo would run anything as well"
    )]
    fn mapped(&self, compiled: &Path) -> Component {
        // SAFETY: this program has written the file, for an engine of this configuration.
        unsafe { Component::deserialize_file(&self.engine, compiled) }.expect("compiled code")
    }

    /// Makes one call, from creating the store to dropping it.
    pub(crate) async fn call(&self, tool: &str, input: &str) -> usize {
        let (_, plugin) = self
            .plugins
            .iter()
            .find(|(tools, _)| tools.contains(&tool))
            .expect("a plugin with this tool");
        let mut wasi = WasiCtx::builder();
        wasi.allow_blocking_current_thread(true)
            .preopened_dir(&self.workspace, "/", FsPerms::ReadOnly)
            .expect("a directory");
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY).build();
        let mut store = Store::new(
            &self.engine,
            State { wasi: wasi.build(), table: ResourceTable::new(), limits },
        );
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
        let output = instance
            .palisade_tool_tool()
            .call_execute(&mut store, call)
            .await
            .expect("no trap")
            .expect("an output");
        match output.content.as_slice() {
            [Content::Text(text)] => text.len(),
            _ => panic!("one block of text"),
        }
    }
}

/// Returns the settings of the hand-written program behind the aims in docs/performance.md.
fn config() -> Config {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(64)
        .total_core_instances(256)
        .total_memories(64)
        .total_tables(256)
        .total_stacks(64)
        .max_tables_per_module(4)
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
