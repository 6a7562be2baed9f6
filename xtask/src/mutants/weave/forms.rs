//! The forms: code around an expression that switches its faults. Each line that only one fault
//! needs contains its switch, so that a compiler error shows which fault does not compile.
//!
//! The parts of an expression keep their places and occur once, so that their own faults can be
//! woven as well.

use super::Fault;
use std::fmt::Write as _;

/// The start of a switch, before the number of its fault.
pub(super) const SWITCH: &str = "crate::fault(";
/// The start of a comment that marks a form: with the numbers of its faults at its start, and
/// without numbers at its end.
pub(super) const MARK: &str = "/*fault:";
pub(super) const END: &str = "/*fault:*/";

pub(super) fn begin(faults: &[&Fault]) -> String {
    let numbers: Vec<String> = faults.iter().map(|fault| fault.number.to_string()).collect();
    format!("{MARK}{}*/", numbers.join(","))
}

fn on(fault: &Fault) -> String {
    format!("{SWITCH}{})", fault.number)
}

/// Returns the form of a binary expression: the texts before it, in place of the operator, and
/// after it.
pub(super) fn binary(op: &str, faults: &[&Fault]) -> [String; 3] {
    let (begin, only) = (begin(faults), faults.first().map(|fault| on(fault)).unwrap_or_default());
    match op {
        // Evaluate the right side if the other operator would.
        "&&" | "||" => {
            let asks = if op == "&&" { "!=" } else { "==" };
            [
                format!("{begin}(match ("),
                format!(") {{ __l =>\nif __l {asks} {only} {{\n("),
                format!(") }} else {{ __l }} }}){END}"),
            ]
        }
        "==" | "!=" | "<" | "<=" | ">" | ">=" => {
            let mut end =
                format!(")) {{ (__l, __r) => {{ let __is = *__l {op} *__r; __is != (false\n");
            for fault in faults {
                let _ = writeln!(
                    end,
                    "|| ((*__l {} *__r) != __is && {})",
                    fault.replacement,
                    on(fault)
                );
            }
            [format!("{begin}(match (&("), "), &(".to_owned(), format!("{end}) }} }}){END}")]
        }
        _ => {
            let other = |fault: &Fault| format!("__l {} __r", fault.replacement);
            let end = format!(
                ")) {{ (__l, __r) => {} }}){END}",
                chosen(faults, other, &format!("__l {op} __r"))
            );
            [format!("{begin}(match (("), "), (".to_owned(), end]
        }
    }
}

/// Returns the form of a compound assignment (`place op value`): the texts in place of `place op`,
/// and after the value.
pub(super) fn assignment(place: &str, op: &str, faults: &[&Fault]) -> [String; 2] {
    let other = |fault: &Fault| format!("{place} {} __r", fault.replacement);
    let end =
        format!(") {{ __r => {} }}){END}", chosen(faults, other, &format!("{place} {op} __r")));
    [format!("{}(match (", begin(faults)), end]
}

/// Returns the form of a unary expression: the texts in place of the operator, and after the
/// operand.
pub(super) fn unary(op: &str, faults: &[&Fault]) -> [String; 2] {
    let end = format!(
        ") {{ __v => {} }}){END}",
        chosen(faults, |_| "__v".to_owned(), &format!("{op}__v"))
    );
    [format!("{}(match (", begin(faults)), end]
}

/// Returns the text at the start of a function body.
pub(super) fn body(faults: &[&Fault]) -> String {
    let mut text = begin(faults);
    for fault in faults {
        let _ = write!(
            text,
            "\nif {} {{ return {}; }}",
            on(fault),
            fault.replacement.replace('\n', " ")
        );
    }
    format!("{text}\n{END}")
}

/// Returns the texts before and after a guard, for the faults of the guard and of its arm.
pub(super) fn guard(guards: &[&Fault], arm: &[&Fault]) -> [String; 2] {
    let all: Vec<&Fault> = guards.iter().chain(arm).copied().collect();
    let mut end = ") { __g => (__g".to_owned();
    for fault in guards.iter().filter(|fault| fault.replacement == "true") {
        let _ = write!(end, "\n|| {}", on(fault));
    }
    end.push_str("\n)");
    for fault in guards.iter().filter(|fault| fault.replacement == "false").chain(arm) {
        let _ = write!(end, "\n&& !{}", on(fault));
    }
    [format!("{}(match (", begin(&all)), format!("{end}\n}}){END}")]
}

/// Returns the guard for an arm without one.
pub(super) fn arm(faults: &[&Fault]) -> String {
    let switches: Vec<String> = faults.iter().map(|fault| format!("!{}", on(fault))).collect();
    format!("{} if\n{}\n{END}", begin(faults), switches.join(" && "))
}

/// Returns the texts before and after the value of a field, in a struct expression with the base
/// `rest`.
pub(super) fn field(name: &str, structure: &str, rest: &str, faults: &[&Fault]) -> [String; 2] {
    let kept = || format!("let __rest: {structure} = {}; __rest.{name}", rest.replace('\n', " "));
    let mut begin = begin(faults);
    for fault in faults {
        let _ = write!(begin, "\nif {} {{\n{} }} else", on(fault), kept());
    }
    [format!("{begin}\n{{ "), format!(" }}{END}")]
}

fn chosen(faults: &[&Fault], other: impl Fn(&Fault) -> String, own: &str) -> String {
    let mut text = String::new();
    for fault in faults {
        let _ = write!(text, "\nif {} {{ {} }} else", on(fault), other(fault));
    }
    format!("{text}\n{{ {own} }}")
}
