//! Each call of an imported function, which the host may carry out, comes after a check of the
//! epoch.

use super::super::SliceError;
use super::{SharedTables, USUAL, binary, changed, engine, module, rewritten};
use wasmtime::{
    Caller, Func, Instance, Module, Ref, RefType, Store, Table, TableType, UpdateDeadline,
};

/// The epoch checks so far, and those at the last call of the host.
#[derive(Default)]
struct Counts {
    checks: u64,
    at_last_call: Option<u64>,
    calls: u64,
    unchecked: u64,
}

/// A module that imports `$host` and calls it three times in each run of `f`.
fn calling(fields: &str, call: &str) -> Vec<u8> {
    binary(&format!(
        "(module (type $t (func (param i32 f64) (result i32 i64)))
           (import \"a\" \"host\" (func $host (type $t)))
           {fields}
           (func $tail (type $t) (return_call $host (local.get 0) (local.get 1)))
           (func (export \"f\") {}))",
        format!("(i32.const 7) (f64.const 0.5) {call} drop drop\n").repeat(3)
    ))
}

/// Runs the module, and returns the counts.
fn run(bytes: &[u8]) -> Counts {
    let mut store = Store::new(&engine(), Counts::default());
    store.set_epoch_deadline(0);
    store.epoch_deadline_callback(|mut store| {
        store.data_mut().checks += 1;
        Ok(UpdateDeadline::Continue(0))
    });
    let host = Func::wrap(&mut store, |mut caller: Caller<'_, Counts>, number: i32, float: f64| {
        let counts = caller.data_mut();
        counts.calls += 1;
        counts.unchecked += u64::from(counts.at_last_call == Some(counts.checks));
        counts.at_last_call = Some(counts.checks);
        (number + 1, (float * 4.0) as i64)
    });
    let module = Module::from_binary(store.engine(), bytes).unwrap();
    let instance = Instance::new(&mut store, &module, &[host.into()]).unwrap();
    let run = instance.get_typed_func::<(), ()>(&mut store, "f").unwrap();
    run.call(&mut store, ()).unwrap();
    store.into_data()
}

#[test]
fn no_call_reaches_the_host_without_a_check() {
    const INDIRECT: &str = "(call_indirect (type $t) (i32.const 0))";
    let set = |reference: &str| format!("(table.set (i32.const 0) {reference}) {INDIRECT}");
    let table = "(table $table 1 funcref)";
    for (fields, call) in [
        ("", "(call $host)".to_owned()),
        ("", "(call $tail)".to_owned()),
        ("(table funcref (elem $host))", INDIRECT.to_owned()),
        ("(table funcref (elem (ref.func $host)))", INDIRECT.to_owned()),
        (
            "(table funcref (elem $host)) (func $by_table (type $t)
               (return_call_indirect (type $t) (local.get 0) (local.get 1) (i32.const 0)))",
            "(call $by_table)".to_owned(),
        ),
        (
            &format!("{table} (elem $late func $host)"),
            format!("(table.init $late (i32.const 0) (i32.const 0) (i32.const 1)) {INDIRECT}"),
        ),
        (&format!("{table} (elem declare func $host)"), set("(ref.func $host)")),
        (&format!("{table} (export \"host\" (func $host))"), set("(ref.func $host)")),
        (&format!("{table} (global $g funcref (ref.func $host))"), set("(global.get $g)")),
    ] {
        let original = calling(fields, &call);
        let counts = run(&rewritten(&original));
        assert_eq!((counts.calls, counts.unchecked), (3, 0), "{fields} {call}");
        // So the counts show a missing check. The tail call has one in its own function.
        let counts = run(&original);
        let is_checked = call.contains("$tail") || call.contains("$by_table");
        assert_eq!((counts.calls, counts.unchecked > 0), (3, !is_checked), "{fields} {call}");
    }
}

/// Returns the checks of a call through a table of another module, which this one fills.
fn checks_behind_filled_table(filling: &[u8]) -> u64 {
    let mut store = Store::new(&engine(), 0_u64);
    store.set_epoch_deadline(0);
    store.epoch_deadline_callback(|mut store| {
        *store.data_mut() += 1;
        Ok(UpdateDeadline::Continue(0))
    });
    let host = Func::wrap(&mut store, |number: i32| number + 1);
    let ty = TableType::new(RefType::FUNCREF, 2, None);
    let table = Table::new(&mut store, ty, Ref::Func(None)).unwrap();
    let module = Module::from_binary(store.engine(), filling).unwrap();
    Instance::new(&mut store, &module, &[host.into(), table.into()]).unwrap();
    let Some(Ref::Func(Some(function))) = table.get(&mut store, 1) else { panic!("empty") };
    let function = function.typed::<i32, i32>(&store).unwrap();
    assert_eq!(function.call(&mut store, 4).unwrap(), 5);
    store.into_data()
}

/// Such a module has no function and no code of its own.
#[test]
fn table_of_another_module_gets_checked_functions_or_is_checked_at_calls() {
    let filling = binary(
        "(module (import \"a\" \"host\" (func $host (param i32) (result i32)))
           (import \"a\" \"table\" (table 2 funcref))
           (@custom \"before\" \"x\") (elem (i32.const 1) func $host) (data \"passive\"))",
    );
    assert!(changed(&filling).is_none());
    let mixed = module::rewritten(&filling, SharedTables::CheckedInFunctions).unwrap().unwrap();
    assert_eq!(checks_behind_filled_table(&mixed), checks_behind_filled_table(&filling) + 1);

    const CHECK: [u8; 3] = [0x03, 0x40, 0x0b];
    let checks = |fields: &str, body: &str, tables: SharedTables| {
        let module = binary(&format!("(module (table 1 funcref) {fields} (func {body}))"));
        let code = module::rewritten(&module, tables).unwrap().unwrap_or_default();
        code.windows(3).filter(|window| *window == CHECK).count()
    };
    let calls = "(call_indirect (i32.const 0))".repeat(4);
    let calls = format!("{calls} (return_call_indirect (i32.const 0))");
    let shared = "(export \"t\" (table 0))";
    assert_eq!(checks(shared, &calls, USUAL), 4, "one before each call but the first");
    assert_eq!(checks("", &calls, USUAL), 0, "no other module fills this table");
    assert_eq!(checks(shared, &calls, SharedTables::CheckedInFunctions), 0);
}

#[test]
fn component_that_moves_functions_between_tables_gets_checked_functions() {
    let of = |modules: &str| SharedTables::of(&binary(&format!("(component {modules})"))).unwrap();
    let shim =
        "(core module (table (export \"t\") 1 funcref) (func (call_indirect (i32.const 0))))";
    let fills = "(core module (import \"a\" \"t\" (table 1 funcref)) (import \"a\" \"f\" (func))
        (elem (i32.const 0) func 0))";
    assert_eq!(of(&format!("{shim} {fills}")), USUAL);
    for mixing in [
        "(import \"a\" \"t\" (table 1 funcref)) (func (call_indirect (i32.const 0)))",
        "(func (param funcref))",
        "(func (result funcref) unreachable)",
        "(import \"a\" \"g\" (global funcref))",
        "(import \"a\" \"g\" (global (mut funcref)))",
    ] {
        for module in
            [format!("(core module {mixing})"), format!("(component (core module {mixing}))")]
        {
            let tables = of(&format!("{shim} {fills} {module}"));
            assert_eq!(tables, SharedTables::CheckedInFunctions, "{mixing}");
        }
    }
}

#[test]
fn loop_of_tail_calls_between_modules_needs_no_stack() {
    let one = "(module (table (export \"t\") 1 funcref) (type $f (func (param i32) (result i32)))
      (func (export \"step\") (type $f) (if (i32.eqz (local.get 0)) (then (return (i32.const 42))))
        (return_call_indirect (type $f) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0))))";
    let other = "(module (type $f (func (param i32) (result i32)))
      (import \"a\" \"t\" (table 1 funcref)) (import \"a\" \"step\" (func $step (type $f)))
      (func $back (type $f) (return_call $step (local.get 0))) (elem (i32.const 0) func $back))";
    let mut store = Store::new(&engine(), ());
    store.set_epoch_deadline(1);
    let mut imports = Vec::new();
    let instances = [one, other].map(|text| {
        let mixed = SharedTables::CheckedInFunctions;
        let bytes = binary(text);
        let bytes = module::rewritten(&bytes, mixed).unwrap().unwrap_or(bytes);
        let module = Module::from_binary(store.engine(), &bytes).unwrap();
        let instance = Instance::new(&mut store, &module, &imports).unwrap();
        imports = instance.exports(&mut store).map(wasmtime::Export::into_extern).collect();
        instance
    });
    let step = instances[0].get_typed_func::<i32, i32>(&mut store, "step").unwrap();
    assert_eq!(step.call(&mut store, 1_000_000).unwrap(), 42);
}

#[test]
fn unused_import_gets_no_function() {
    let bytes = binary("(module (import \"a\" \"host\" (func)) (func (call 1)))");
    assert!(changed(&bytes).is_none());
}

#[test]
fn imports_with_too_many_parameters_in_all_are_refused() {
    let calling = |functions: usize| {
        let parameters = "i32 ".repeat(998);
        let import = format!("(import \"a\" \"host\" (func (param {parameters})))");
        let calls: String = (0..functions).map(|it| format!("(ref.func {it}) drop ")).collect();
        let declared: String = (0..functions).map(|it| format!("{it} ")).collect();
        let imports = import.repeat(functions);
        binary(&format!("(module {imports} (elem declare func {declared}) (func {calls}))"))
    };
    assert!(changed(&calling(65)).is_some());
    let refused = module::rewritten(&calling(66), USUAL).unwrap_err();
    assert!(matches!(refused, SliceError::Imports { max: 65_536 }), "{refused}");
}
