//! Each cap, obeyed and violated.

use super::super::cap;
use super::{Cap, PrecheckError, binary, check, text, too_many};
use std::time::{Duration, Instant};

/// Returns components nested in each other, `levels` deep.
fn nested(levels: u64) -> String {
    "(component ".repeat(levels as usize) + &")".repeat(levels as usize)
}

#[test]
fn components_nest_at_most_sixteen_deep() {
    assert_eq!(text(&nested(cap::NESTING)), Ok(()));
    assert_eq!(too_many(Cap::Nesting, &nested(cap::NESTING + 1)), 17);
}

/// Returns a component that instantiates its child twice, which instantiates its child twice, and
/// so on, `levels` deep down to a core module.
fn doubling(levels: u32) -> String {
    let leaf = "(component (core module $m) (core instance (instantiate $m)))".to_owned();
    (0..levels).fold(leaf, |inner, _| {
        let named = inner.replacen("(component", "(component $c", 1);
        format!("(component {named} (instance (instantiate $c)) (instance (instantiate $c)))")
    })
}

/// Returns a component with the same number of instances without nesting: each component
/// instantiates its predecessor twice, through an outer alias.
fn flat_doubling(levels: u32) -> String {
    let mut parts = "(component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for level in 1..=levels {
        let inner = level - 1;
        parts += &format!(
            "(component $c{level} (alias outer $root $c{inner} (component $i)) (instance (instantiate $i)) (instance (instantiate $i)))"
        );
    }
    format!("(component $root {parts} (instance (instantiate $c{levels})))")
}

#[test]
fn exponential_instances_are_refused_at_once() {
    let component = binary(&flat_doubling(30));
    let start = Instant::now();
    let refused = check(&component);
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    // 2^30 core instances and 2^31 - 1 component instances.
    assert_eq!(
        refused,
        Err(PrecheckError::Cap { cap: Cap::Instances, found: (1 << 30) + (1 << 31) - 1 })
    );
    assert!(component.len() < 4096, "{}", component.len());
}

#[test]
fn overflowing_instance_count_is_refused() {
    assert_eq!(too_many(Cap::Instances, &flat_doubling(90)), u64::MAX);
}

#[test]
fn instance_count_is_exact() {
    // 2^n core instances and 2^(n+1) - 2 component instances: 94 for n = 5, 190 for n = 6.
    assert_eq!(text(&doubling(5)), Ok(()));
    assert_eq!(too_many(Cap::Instances, &doubling(6)), 190);
}

fn instances(count: u64) -> String {
    format!(
        "(component (core module $m) {})",
        "(core instance (instantiate $m))".repeat(count as usize)
    )
}

#[test]
fn as_many_instances_as_a_call_holds_pass() {
    assert_eq!(text(&instances(cap::INSTANCES)), Ok(()));
    assert_eq!(too_many(Cap::Instances, &instances(cap::INSTANCES + 1)), cap::INSTANCES + 1);
}

#[test]
fn export_bundles_are_not_counted_as_instances() {
    let bundles = "(core instance (export \"m\" (memory 0)))".repeat(500);
    let component = format!(
        "(component (core module $m (memory (export \"m\") 1)) (core instance $i (instantiate $m)) (alias core export $i \"m\" (core memory)) {bundles})"
    );
    assert_eq!(text(&component), Ok(()));
}

#[test]
fn uninstantiated_component_counts_nothing() {
    assert_eq!(text(&format!("(component {})", instances(cap::INSTANCES + 1))), Ok(()));
}

#[test]
fn parts_are_multiplied_like_instances() {
    let exports = |count: usize| -> String {
        let bundle: String = (0..10_000).map(|n| format!("(export \"e{n}\" (func $x))")).collect();
        let inner = format!(
            "(component $c (core module $m (func (export \"m\"))) (core instance $i (instantiate $m)) (alias core export $i \"m\" (core func $x)) {})",
            format!("(core instance {bundle})").repeat(2)
        );
        format!("(component {inner} {})", "(instance (instantiate $c))".repeat(count))
    };
    assert_eq!(text(&exports(40)), Ok(()));
    assert!(too_many(Cap::Parts, &exports(60)) > cap::PARTS);
}

#[test]
fn imported_component_cannot_be_instantiated() {
    let given =
        r#"(component (component $c (import "x" (component $x)) (instance (instantiate $x))))"#;
    assert_eq!(text(given), Err(PrecheckError::ForeignComponent));
    let own = r#"(component (component $c (component $x) (instance (instantiate $x))) (instance (instantiate $c)))"#;
    assert_eq!(text(own), Ok(()));
}

#[test]
fn exported_component_cannot_be_instantiated() {
    let taken = r#"(component
        (component $c (component $x) (export "x" (component $x)))
        (instance $i (instantiate $c)) (alias export $i "x" (component $y)) (instance (instantiate $y)))"#;
    assert_eq!(text(taken), Err(PrecheckError::ForeignComponent));
}

fn record(fields: u64) -> String {
    let fields: String = (0..fields).map(|n| format!("(field \"f{n}\" u8)")).collect();
    format!("(component (type (record {fields})))")
}

#[test]
fn record_has_at_most_a_thousand_fields() {
    assert_eq!(text(&record(cap::TYPE_WIDTH)), Ok(()));
    assert_eq!(too_many(Cap::TypeWidth, &record(cap::TYPE_WIDTH + 1)), 1001);
}

/// Returns `levels` list types, each a list of the previous type.
fn lists(levels: u64) -> String {
    (1..levels).fold("(type (list u8))".to_owned(), |types, level| {
        types + &format!("(type (list {}))", level - 1)
    })
}

#[test]
fn types_nest_to_the_cap() {
    let nested = |levels: u64| format!("(component {})", lists(levels));
    assert_eq!(text(&nested(cap::TYPE_NESTING)), Ok(()));
    assert_eq!(too_many(Cap::TypeNesting, &nested(cap::TYPE_NESTING + 1)), 65);
}

#[test]
fn inner_components_do_not_extend_type_nesting() {
    let through = |levels: u64| {
        let types = lists(levels);
        let last = levels - 1;
        format!(
            "(component $root {types} (component (alias outer $root {last} (type)) (type (list 0))))"
        )
    };
    assert_eq!(text(&through(cap::TYPE_NESTING - 1)), Ok(()));
    assert_eq!(too_many(Cap::TypeNesting, &through(cap::TYPE_NESTING)), 65);
}

fn function(nops: usize) -> String {
    format!("(component (core module (func {})))", "nop ".repeat(nops))
}

#[test]
fn function_has_at_most_a_mebibyte() {
    // The local count and the end opcode take one byte each.
    let full = cap::FUNCTION as usize - 2;
    assert_eq!(text(&function(full)), Ok(()));
    assert_eq!(too_many(Cap::Function, &function(full + 1)), cap::FUNCTION + 1);
}

fn locals(count: u64) -> String {
    format!("(component (core module (func (local {}))))", "i32 ".repeat(count as usize))
}

#[test]
fn function_locals_are_bounded() {
    assert_eq!(text(&locals(cap::LOCALS)), Ok(()));
    assert_eq!(too_many(Cap::Locals, &locals(cap::LOCALS + 1)), cap::LOCALS + 1);
}

#[test]
fn modules_and_components_are_counted() {
    let of = |what: &str, count: u64| format!("(component {})", what.repeat(count as usize));
    assert_eq!(text(&of("(core module)", cap::MODULES)), Ok(()));
    assert_eq!(too_many(Cap::Modules, &of("(core module)", cap::MODULES + 1)), 129);
    assert_eq!(text(&of("(component)", cap::COMPONENTS - 1)), Ok(()));
    assert_eq!(too_many(Cap::Components, &of("(component)", cap::COMPONENTS)), 129);
}

/// Returns a component with one core module whose only section has this number, claims `count`
/// items and contains none.
fn claims(section: u8, count: u64) -> Vec<u8> {
    let mut claimed = Vec::new();
    let mut rest = count;
    while rest >= 0x80 {
        claimed.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    claimed.push(rest as u8);
    let module =
        [b"\0asm\x01\0\0\0".as_slice(), &[section, claimed.len() as u8], &claimed].concat();
    [b"\0asm\x0d\0\x01\0".as_slice(), &[1, module.len() as u8], &module].concat()
}

#[test]
fn excessive_count_is_refused_before_its_items() {
    for (section, cap) in [
        (1, Cap::Types),
        (2, Cap::Imports),
        (3, Cap::Functions),
        (4, Cap::Tables),
        (5, Cap::Memories),
        (6, Cap::Globals),
        (7, Cap::Exports),
        (9, Cap::Segments),
        (11, Cap::Segments),
    ] {
        let refused = check(&claims(section, cap.max() + 1));
        assert_eq!(
            refused,
            Err(PrecheckError::Cap { cap, found: cap.max() + 1 }),
            "section {section}"
        );
        let obeyed = check(&claims(section, cap.max()));
        assert!(!matches!(obeyed, Err(PrecheckError::Cap { .. })), "section {section}: {obeyed:?}");
    }
}

#[test]
fn elements_that_the_engine_keeps_for_each_instance_are_bounded() {
    let modules = |segment: &str, elements: u64| {
        let elements = "(ref.null func)".repeat(elements as usize);
        let module = format!("(core module (table 0 funcref) (elem {segment} funcref {elements}))");
        format!("(component {} (core module (elem func)))", module.repeat(2))
    };
    // Each of the three segments counts as two more.
    let most = (cap::PASSIVE_ELEMENTS - 6) / 2;
    assert_eq!(text(&modules("", most)), Ok(()));
    assert_eq!(too_many(Cap::PassiveElements, &modules("", most + 1)), cap::PASSIVE_ELEMENTS + 2);
    for not_kept in ["declare", "(table 0) (offset (i32.const 0))"] {
        assert_eq!(text(&modules(not_kept, most + 1)), Ok(()));
    }
}

#[test]
fn names_in_the_frames_of_a_trap_are_bounded() {
    for named in ["(core module $NAME)", "(core module (func) (func $NAME) (func $short))"] {
        let of = |length: u64| {
            let name = "n".repeat(length as usize);
            format!("(component (component {}))", named.replace("NAME", &name))
        };
        assert_eq!(text(&of(cap::NAME)), Ok(()));
        assert_eq!(too_many(Cap::Name, &of(cap::NAME + 1)), cap::NAME + 1);
    }
}

#[test]
fn globals_and_imports_are_multiplied_out_by_instances() {
    let module = |globals: u64| {
        let globals = "(global i32 (i32.const 0))".repeat(globals as usize);
        format!("(core module $m {globals})")
    };
    let hundred = "(core instance (instantiate $m))".repeat(100);
    // 655 globals in each of 100 instances.
    let most = cap::INSTANCE_DATA / 1_600;
    let of = |globals: u64| format!("(component {} {hundred})", module(globals));
    assert_eq!(text(&of(most)), Ok(()));
    assert_eq!(too_many(Cap::InstanceData, &of(most + 1)), 1_600 * (most + 1));
    let ways = [
        // A component inside that names the module outside, and one that gets it as an argument.
        format!(
            "(component $c (alias outer 1 0 (core module $m)) {hundred})
                 (instance (instantiate $c))"
        ),
        format!(
            "(component $c (import \"m\" (core module $m)) {hundred})
                 (instance (instantiate $c (with \"m\" (core module 0))))"
        ),
        format!(
            "(instance $i (export \"m\" (core module 0)))
                 (alias export $i \"m\" (core module $other)) {}",
            hundred.replace("$m", "$other")
        ),
    ];
    for way in ways {
        let of = |globals: u64| format!("(component {} {way})", module(globals).replace("$m", ""));
        assert_eq!(text(&of(most)), Ok(()), "{way}");
        assert_eq!(too_many(Cap::InstanceData, &of(most + 1)), 1_600 * (most + 1), "{way}");
    }
}

#[test]
fn memories_and_tables_are_multiplied_out_by_instances() {
    let of = |part: &str, instances: u64| {
        let instances = "(core instance (instantiate $m))".repeat(instances as usize);
        let inner = format!("(component $c (alias outer 1 0 (core module $m)) {instances})");
        format!("(component (core module {part}) {inner} (instance (instantiate $c)))")
    };
    let memory = |instances| of("(memory 0)", instances);
    assert_eq!(text(&memory(cap::ALL_MEMORIES)), Ok(()));
    assert_eq!(too_many(Cap::AllMemories, &memory(cap::ALL_MEMORIES + 1)), cap::ALL_MEMORIES + 1);
    let tables = |instances| of("(table 0 funcref) (table 0 funcref)", instances);
    assert_eq!(text(&tables(cap::ALL_TABLES / 2)), Ok(()));
    assert_eq!(too_many(Cap::AllTables, &tables(cap::ALL_TABLES / 2 + 1)), cap::ALL_TABLES + 2);
}

#[test]
fn custom_sections_count_by_bytes() {
    let with = |data: usize| {
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        for _ in 0..2 {
            let size = data + 2;
            bytes.push(0);
            bytes.extend(
                (0..5).map(|n| ((size >> (7 * n)) & 0x7f) as u8 | if n < 4 { 0x80 } else { 0 }),
            );
            bytes.extend([1, b'x']);
            bytes.resize(bytes.len() + data, 0);
        }
        check(&bytes)
    };
    let half = cap::CUSTOM as usize / 2;
    assert_eq!(with(half), Ok(()));
    assert_eq!(
        with(half + 1),
        Err(PrecheckError::Cap { cap: Cap::CustomSections, found: cap::CUSTOM + 2 })
    );
}

#[test]
fn module_memories_and_tables_match_the_pool() {
    let module = |parts: &str| format!("(component (core module {parts}))");
    assert_eq!(text(&module("(memory 8192)")), Ok(()));
    assert_eq!(too_many(Cap::Pages, &module("(memory 8193)")), 8193);
    assert_eq!(too_many(Cap::Memories, &module("(memory 1) (memory 1)")), 2);
    assert_eq!(text(&module(&"(table 20000 funcref)".repeat(4))), Ok(()));
    assert_eq!(too_many(Cap::Tables, &module(&"(table 1 funcref)".repeat(5))), 5);
    assert_eq!(too_many(Cap::Elements, &module("(table 20001 funcref)")), 20_001);
}
