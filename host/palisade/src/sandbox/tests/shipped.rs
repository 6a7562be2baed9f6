//! The descriptions of the shipped plugins, which the program has before it compiles them.

use crate::sandbox::powers::{CallState, PluginPowers, PoweredCall, Powers};
use crate::sandbox::stored_description::StoredDescription;
use crate::sandbox::{Cache, Sandbox, Trust};
use crate::tool::Digest;
use std::any::Any;
use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::{WasiHttp, WasiHttpCtxView};

/// The variable that makes the test store the descriptions in place of comparing them.
const KEEP: &str = "PALISADE_KEEP_DESCRIPTIONS";

/// Powers that link `wasi:http`. A plugin that describes itself calls nothing of it.
struct Linked;

impl Powers for Linked {
    fn of(&self, digest: Digest) -> Option<Arc<dyn PluginPowers>> {
        let is_meant = |plugin: &&palisade_plugins::Plugin| {
            plugin.requires.is_some() && digest == Digest::from_bytes(plugin.digest)
        };
        palisade_plugins::all().iter().any(|plugin| is_meant(&plugin)).then(|| Arc::new(Self) as _)
    }
}

impl PluginPowers for Linked {
    fn meaning(&self, interface: &str) -> Option<&'static str> {
        interface.starts_with("wasi:http/").then_some("every request")
    }

    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
        let options = LinkOptions::default();
        outgoing_handler::add_to_linker::<_, WasiHttp>(linker, view)?;
        types::add_to_linker::<_, WasiHttp>(linker, &options.into(), view)
    }

    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn begin(&self, _: PoweredCall) -> Box<dyn Any + Send> {
        Box::new(())
    }

    fn grants(&self) -> Vec<String> {
        Vec::new()
    }
}

fn view(_: &mut CallState) -> WasiHttpCtxView<'_> {
    unreachable!("a definition is made without a request")
}

#[test]
fn embedded_descriptions_are_in_the_words_of_the_shipped_plugins() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(Cache::open(&directory.path().join("cache")).unwrap()).unwrap();
    let sandbox = sandbox.with_powers(Some(Arc::new(Linked)));
    for plugin in palisade_plugins::all() {
        sandbox.prepare(&plugin.bytes(), Trust::Embedded).unwrap();
        let (engine, digest) = (&sandbox.runtime.engine, Digest::from_bytes(plugin.digest));
        let own = StoredDescription::from(&sandbox.cache.description(engine, digest).unwrap());
        if env::var_os(KEEP).is_some() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/descriptions");
            let text = serde_json::to_string_pretty(&own).unwrap() + "\n";
            fs::write(folder.join(format!("{}.json", plugin.name)), text).unwrap();
            continue;
        }
        let embedded = StoredDescription::parse(plugin.description).unwrap();
        assert_eq!(
            StoredDescription::from(&embedded),
            own,
            "{} has changed: run this test with {KEEP}=1, and commit plugins/descriptions",
            plugin.name
        );
    }
}
