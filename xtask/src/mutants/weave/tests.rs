//! Tests weaving with small sources.

use super::*;
use crate::mutants::fault::Kind;

fn fault(number: usize, kind: Kind, line: usize, column: usize, replacement: &str) -> Fault {
    let site = Site { kind, line, column };
    Fault {
        number,
        name: String::new(),
        file: "a.rs".to_owned(),
        site,
        replacement: replacement.to_owned(),
    }
}

/// Returns the woven source on one line.
fn woven(source: &str, faults: &[Fault]) -> String {
    let woven = weave(source, &faults.iter().collect::<Vec<_>>()).expect("it parses");
    assert_eq!(woven.faults.len(), faults.len(), "all of them");
    syn::parse_file(&woven.text).unwrap_or_else(|error| panic!("{error}: {}", woven.text));
    woven.text.replace('\n', " ")
}

#[test]
fn body_starts_with_its_faults() {
    let faults = [fault(1, Kind::Body, 1, 18, "true"), fault(2, Kind::Body, 1, 18, "false")];
    assert_eq!(
        woven("fn f() -> bool { g() }", &faults),
        "fn f() -> bool {/*fault:1,2*/ if crate::fault(1) { return true; } \
         if crate::fault(2) { return false; } /*fault:*/ g() }"
    );
}

#[test]
fn comparison_checks_a_fault_only_if_relevant() {
    let text = woven("fn f() -> bool { 1 < 2 }", &[fault(3, Kind::Binary, 1, 20, "<=")]);
    assert!(text.contains(
        "(match (&(1 ), &( 2)) { (__l, __r) => { let __is = *__l < *__r; __is != (false"
    ));
    assert!(text.contains("|| ((*__l <= *__r) != __is && crate::fault(3))"));
}

#[test]
fn nested_faults_stay_inside_the_outer_ones() {
    let faults = [
        fault(1, Kind::Binary, 1, 26, "||"),
        fault(2, Kind::Unary, 1, 23, ""),
        fault(3, Kind::Binary, 1, 31, "-"),
        fault(4, Kind::Binary, 1, 35, "!="),
        fault(5, Kind::Body, 1, 23, "true"),
    ];
    let text = woven("fn f(a: bool) -> bool{!a && 1 + 1 == 2}", &faults);
    let order = [
        "fault:5*/",
        "fault:1*/",
        "fault:2*/",
        "!__v",
        "fault:4*/",
        "fault:3*/",
        "__l + __r",
        "*__l == *__r",
    ];
    let places: Vec<_> = order.map(|part| text.find(part)).into_iter().collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
}

#[test]
fn place_change_keeps_a_single_value() {
    let text = woven("fn f(n: &mut u8) { *n += 1; }", &[fault(1, Kind::Binary, 1, 23, "-=")]);
    assert!(
        text.contains(
            "(match (1) { __r =>  if crate::fault(1) { *n -= __r } else { *n += __r } })"
        ),
        "{text}"
    );
}

#[test]
fn arm_is_removed_by_a_guard_and_a_guard_by_a_switch() {
    let faults = [
        fault(1, Kind::Arm, 1, 29, ""),
        fault(2, Kind::Guard, 1, 46, "true"),
        fault(3, Kind::Guard, 1, 46, "false"),
        fault(4, Kind::Arm, 1, 41, ""),
    ];
    let text = woven("fn f(n: u8) -> u8 { match n{1 => 2,     3 if g() => 4, _ => 5 } }", &faults);
    assert!(text.contains("1/*fault:1*/ if !crate::fault(1) /*fault:*/ => 2"), "{text}");
    assert!(text.contains(
        "(match (g()) { __g => (__g || crate::fault(2) ) && !crate::fault(3) && !crate::fault(4)"
    ));
}

#[test]
fn deleted_field_keeps_the_base_value() {
    let text =
        woven("fn f(a: A) -> A { A { b, ..a.other() } }", &[fault(1, Kind::Field, 1, 23, "")]);
    assert!(text.contains("b: /*fault:1*/") || text.contains("b: "), "{text}");
    assert!(
        text.contains("if crate::fault(1) { let __rest: A = a.other(); __rest.b } else { b }"),
        "{text}"
    );
}

#[test]
fn const_code_and_let_chains_are_unchanged() {
    let source = "const A: u8 = 1 << 2;\nconst fn f() -> u8 { 1 }\nfn g() -> bool { if let A = h() && i { } }";
    let faults = [
        fault(1, Kind::Binary, 1, 17, ">>"),
        fault(2, Kind::Body, 2, 22, "0"),
        fault(3, Kind::Binary, 3, 33, "||"),
    ];
    let woven = weave(source, &faults.iter().collect::<Vec<_>>()).expect("it parses");
    assert_eq!((woven.text.as_str(), woven.faults.len()), (source, 0));
    assert_eq!(woven.unviable, [3].into(), "`||` is not allowed beside `let`");
}

#[test]
fn error_is_attributed_to_its_line_or_innermost_form() {
    let faults = [fault(1, Kind::Body, 2, 1, "7"), fault(2, Kind::Binary, 2, 3, "-")];
    let text = weave("fn f() -> T {\na + b\n}", &faults.iter().collect::<Vec<_>>())
        .expect("it parses")
        .text;
    let at = |part: &str| text.find(part).expect("it is there");
    assert_eq!(blame(&text, at("return")), Some(Blame::Fault(1)));
    assert_eq!(blame(&text, at("__l - __r")), Some(Blame::Fault(2)));
    assert_eq!(blame(&text, at("__l + __r")), Some(Blame::Form(vec![2])));
    assert_eq!(blame(&text, at("fn f")), None);
    assert_eq!(blame(&text, text.len()), None);
}
