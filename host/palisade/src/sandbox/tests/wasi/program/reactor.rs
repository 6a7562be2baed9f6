//! The one program that is not a command. Its functions take and return lists, a stream of the
//! host, and a record of `wasi:filesystem`.

use crate::sandbox::run::State;
use wasmtime::Store;
use wasmtime::component::{ComponentType, Instance, Lift, Lower, Resource};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::StdoutStream;
use wasmtime_wasi::p2::DynOutputStream;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, DescriptorType};

/// Calls each function of the program once. The text written to the stream is in the captured
/// standard output afterwards.
pub(super) async fn call(
    program: Instance,
    store: &mut Store<State>,
) -> wasmtime::Result<Result<(), ()>> {
    let said = ["hello".to_owned(), "$GOOD_DOG".to_owned()].to_vec();
    let count: u32 = one(program, store, "add-strings", said).await?;
    let strings: Vec<String> = all(program, store, "get-strings", ()).await?;
    let out: DynOutputStream = store.data_mut().wasi_ctx.stdout().p2_stream();
    let out: Resource<DynOutputStream> = store.data_mut().ctx().table.push(out)?;
    let written: Result<(), ()> = one(program, store, "write-strings-to", out).await?;
    let stat = stat();
    let expected = format!("{stat:?}");
    let told: String = one(program, store, "pass-an-imported-record", stat).await?;
    let as_told = count == 2 && strings == ["hello", "gussie"] && told == expected;
    Ok(if as_told { written } else { Err(()) })
}

async fn one<P, R>(
    program: Instance,
    store: &mut Store<State>,
    name: &str,
    argument: P,
) -> wasmtime::Result<R>
where
    P: ComponentType + Lower + Send + Sync + 'static,
    R: ComponentType + Lift + Send + Sync + 'static,
{
    all(program, store, name, (argument,)).await
}

async fn all<P, R>(
    program: Instance,
    store: &mut Store<State>,
    name: &str,
    arguments: P,
) -> wasmtime::Result<R>
where
    P: wasmtime::component::ComponentNamedList + Lower + Send + Sync + 'static,
    R: ComponentType + Lift + Send + Sync + 'static,
{
    let function = program.get_typed_func::<P, (R,)>(&mut *store, name)?;
    Ok(function.call_async(&mut *store, arguments).await?.0)
}

fn stat() -> DescriptorStat {
    let at = |seconds, nanoseconds| Some(Datetime { seconds, nanoseconds });
    DescriptorStat {
        type_: DescriptorType::RegularFile,
        link_count: 1,
        size: 23,
        data_access_timestamp: at(45, 123),
        data_modification_timestamp: at(10, 789),
        status_change_timestamp: None,
    }
}
