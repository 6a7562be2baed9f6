//! A hand-written wasmtime host that mounts a directory read-only for a component, here the plugin
//! of Palisade that reads and writes files.

#![allow(clippy::print_stdout, reason = "an example shows what it has done")]

use palisade_wasi_fs::{
    Access, Filesystem, FilesystemView, HasFilesystem, Mount, Options, ProtectedPaths,
};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime::error::Context as _;
use wasmtime::{Engine, Result, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../palisade/wit",
        world: "plugin",
        exports: { default: async },
    });
}

use bindings::Plugin;
use bindings::exports::palisade::tool::tool::{Call, Output};
use bindings::palisade::tool::host;
use bindings::palisade::tool::types::{Content, ToolError};

/// The data of the store of one call.
struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    files: Filesystem,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl HasFilesystem for State {
    fn filesystem(&mut self) -> FilesystemView<'_> {
        FilesystemView { filesystem: &mut self.files, table: &mut self.table }
    }
}

/// The imports of the plugin beside WASI.
impl host::Host for State {
    fn log(&mut self, _: host::Level, _: String) {}
    fn progress(&mut self, _: f64, _: Option<f64>, _: Option<String>) {}
    fn emit(&mut self, _: String) {}
    fn cancelled(&mut self) -> bool {
        false
    }
}

/// The plugin, and the directory that its calls see.
struct Host {
    linker: Linker<State>,
    component: Component,
    mount: Mount,
    protected: Arc<ProtectedPaths>,
}

impl Host {
    fn new(directory: &Path) -> Result<Self> {
        let root = directory.canonicalize()?;
        let handle = File::open(&root)?;
        let mount = Mount::new(&handle)?;
        let protected = Arc::new(ProtectedPaths::new(&handle, &root)?);

        let engine = Engine::default();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        linker.allow_shadowing(true);
        palisade_wasi_fs::add_to_linker(&mut linker)?;
        host::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;

        let plugin = palisade_plugins::all().iter().find(|plugin| plugin.name == "files");
        let bytes = plugin.context("the plugin is shipped")?.bytes();
        let component = Component::from_binary(&engine, &bytes)?;
        Ok(Self { linker, component, mount, protected })
    }

    /// Calls a tool in a store of its own, and returns its answer and the file system after it.
    async fn call(&self, tool: &str, input: &str) -> Result<(String, Filesystem)> {
        let protected = Arc::clone(&self.protected);
        let files = Filesystem::new(&self.mount, Access::ReadOnly, protected, Options::default());
        let wasi = WasiCtx::builder().build();
        let state = State { wasi, table: ResourceTable::new(), files };
        let mut store = Store::new(self.component.engine(), state);
        let plugin = Plugin::instantiate_async(&mut store, &self.component, &self.linker).await?;
        let call = Call {
            call_id: "1".to_owned(),
            session_id: None,
            turn_id: None,
            tool: tool.to_owned(),
            input: input.to_owned(),
            remaining_ms: 60_000,
            context: "{}".to_owned(),
            metadata: "{}".to_owned(),
        };
        let output = plugin.palisade_tool_tool().call_execute(&mut store, &call).await?;
        Ok((shown(output), store.into_data().files))
    }
}

fn shown(output: Result<Output, ToolError>) -> String {
    match output.map(|output| output.content) {
        Ok(content) => match content.as_slice() {
            [Content::Text(text)] => text.clone(),
            _ => "something other than one text".to_owned(),
        },
        Err(error) => error.to_string(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("notes.txt"), "tea at four")?;
    let host = Host::new(directory.path())?;

    let (text, files) = host.call("read_file", r#"{"path": "notes.txt"}"#).await?;
    println!("read {} bytes: {text}", files.bytes_read());

    let input = r#"{"path": "notes.txt", "content": "coffee"}"#;
    let (_, files) = host.call("write_file", input).await?;
    let refusal = files.refusal().context("the write was refused")?;
    println!("refused: {refusal}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Host, Result};
    use palisade_wasi_fs::Refusal;

    #[tokio::test]
    async fn the_component_reads_the_directory_and_changes_nothing() -> Result<()> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("notes.txt");
        std::fs::write(&file, "tea at four")?;
        let host = Host::new(directory.path())?;
        let (text, files) = host.call("read_file", r#"{"path": "notes.txt"}"#).await?;
        assert_eq!((text.as_str(), files.bytes_read(), files.refusal()), ("tea at four", 11, None));
        let input = r#"{"path": "notes.txt", "content": "coffee"}"#;
        let (_, files) = host.call("write_file", input).await?;
        assert_eq!(files.refusal(), Some(&Refusal::ReadOnly));
        let (_, files) = host.call("read_file", r#"{"path": "../outside"}"#).await?;
        assert_eq!(files.refusal(), Some(&Refusal::Escape));
        assert_eq!(std::fs::read_to_string(&file)?, "tea at four");
        Ok(())
    }
}
