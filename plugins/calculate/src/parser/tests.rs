//! Tests of the grammar.

use super::{MAX_BYTES, MAX_DEPTH, evaluate};
use crate::problem::Problem;

fn value(expression: &str) -> f64 {
    match evaluate(expression) {
        Ok(value) => value,
        Err(problem) => panic!("{expression}: {problem}"),
    }
}

fn text(expression: &str) -> String {
    match evaluate(expression) {
        Ok(value) => panic!("{expression} is {value}"),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn operators_have_the_usual_precedence() {
    assert_eq!(value("1 + 2 * 3"), 7.0);
    assert_eq!(value("(1 + 2) * 3"), 9.0);
    assert_eq!(value("10 - 4 - 3"), 3.0);
    assert_eq!(value("100 / 10 / 2"), 5.0);
    assert_eq!(value("2 * 3 ^ 2"), 18.0);
}

#[test]
fn powers_are_right_associative_above_signs() {
    assert_eq!(value("2 ^ 3 ^ 2"), 512.0);
    assert_eq!(value("-2 ^ 2"), -4.0);
    assert_eq!(value("2 ^ -1"), 0.5);
    assert_eq!(value("2 ^ -1 * 4"), 2.0);
    assert_eq!(value("(-2) ^ 2"), 4.0);
}

#[test]
fn operand_may_have_several_signs() {
    assert_eq!(value("-3 + +2"), -1.0);
    assert_eq!(value("3 - -2"), 5.0);
    assert_eq!(value("--3"), 3.0);
    assert_eq!(value("-(1 + 2)"), -3.0);
}

#[test]
fn remainder_has_the_sign_of_the_dividend() {
    assert_eq!(value("7 % 3"), 1.0);
    assert_eq!(value("-7 % 3"), -1.0);
    assert_eq!(value("7.5 % -2"), 1.5);
}

#[test]
fn numbers_may_have_fractions_exponents_and_separators() {
    assert_eq!(value(".5 + 5."), 5.5);
    assert_eq!(value("1e-3"), 0.001);
    assert_eq!(value("2E+2"), 200.0);
    assert_eq!(value("1_000_000.000_1"), 1_000_000.000_1);
}

#[test]
fn malformed_number_is_named() {
    for (bad, at) in [
        ("1.2.3", 1),
        ("2 + 1_", 5),
        ("1__0_.5", 1),
        (".", 1),
        ("1e999", 1),
        ("1_e3", 1),
        ("._5", 1),
    ] {
        assert!(
            matches!(evaluate(bad), Err(Problem::BadNumber { at: found, .. }) if found == at),
            "{bad}: {:?}",
            evaluate(bad)
        );
    }
}

#[test]
fn every_function_computes_its_name() {
    for (expression, wanted) in [
        ("sqrt(16)", 4.0),
        ("abs(-3)", 3.0),
        ("floor(-1.5)", -2.0),
        ("ceil(-1.5)", -1.0),
        ("round(2.5)", 3.0),
        ("round(-2.5)", -3.0),
        ("min(3, 1, 2)", 1.0),
        ("max(3)", 3.0),
        ("max(1, 7, 3)", 7.0),
        ("pow(2, 10)", 1024.0),
        ("ln(1)", 0.0),
        ("log10(1000)", 3.0),
        ("log2(8)", 3.0),
        ("exp(0)", 1.0),
        ("cos(0)", 1.0),
    ] {
        assert_eq!(value(expression), wanted, "{expression}");
    }
    for (expression, wanted) in [
        ("sin(pi / 2)", 1.0),
        ("tan(pi / 4)", 1.0),
        ("cos(pi)", -1.0),
        ("ln(e)", 1.0),
        ("exp(1) - e", 0.0),
    ] {
        assert!((value(expression) - wanted).abs() < 1e-12, "{expression}");
    }
}

#[test]
fn whole_numbers_are_exact_up_to_2_to_the_53() {
    assert_eq!(value("2 ^ 53"), 9_007_199_254_740_992.0);
    assert_eq!(value("2 ^ 53 - 1"), 9_007_199_254_740_991.0);
    assert_eq!(value("94906265 * 94906265"), 9_007_199_136_250_225.0);
}

#[test]
fn syntax_error_names_the_expected_token() {
    assert_eq!(text("1 + )"), "expected a number, a name, a sign or `(` at character 5, found `)`");
    assert_eq!(text("(1 + 2"), "expected an operator or `)` at character 7, found the end");
    assert_eq!(text("2 pi"), "expected an operator or the end at character 3, found `pi`");
    assert_eq!(text("2e"), "expected an operator or the end at character 2, found `e`");
    assert_eq!(text("1 2"), "expected an operator or the end at character 3, found 2");
    assert_eq!(text("sqrt 4"), "expected `(` and the function's arguments at character 6, found 4");
    assert_eq!(text("max(1; 2)"), "expected an operator, `,` or `)` at character 6, found `;`");
    assert_eq!(
        text("1 +"),
        "expected a number, a name, a sign or `(` at character 4, found the end"
    );
    assert_eq!(
        text("π × 2"),
        "`π` at character 1 is not known; the functions are sqrt, abs, floor, ceil, round, \
         min, max, sin, cos, tan, ln, log10, log2, exp, pow and the constants are pi and e"
    );
    assert_eq!(text("1 + 2 × 2"), "expected an operator or the end at character 7, found `×`");
}

#[test]
fn argument_count_error_has_the_expected_count() {
    assert_eq!(text("pow(2)"), "`pow` at character 1 takes 2 arguments, not 1");
    assert_eq!(text("1 + sqrt(1, 2)"), "`sqrt` at character 5 takes 1 argument, not 2");
    assert_eq!(text("min()"), "`min` at character 1 takes 1 argument or more, not 0");
}

#[test]
fn division_by_zero_is_an_error() {
    for expression in ["1 / 0", "1 % 0", "0 ^ -1", "1 / (2 - 2)", "0 / -0"] {
        assert!(
            matches!(evaluate(expression), Err(Problem::DivisionByZero { .. })),
            "{expression}"
        );
    }
}

#[test]
fn non_finite_value_is_an_error_with_its_place() {
    assert_eq!(text("1 + sqrt(-1)"), "`sqrt(-1)` at character 5 has no finite real value");
    assert_eq!(text("ln(0)"), "`ln(0)` at character 1 has no finite real value");
    assert_eq!(text("(-8) ^ .5"), "`-8 ^ 0.5` at character 6 has no finite real value");
    assert_eq!(
        text("1e300 * 1e300"),
        "the result of `1e300 * 1e300` at character 7 is larger than a double holds, which is about 1.8e308"
    );
    assert!(matches!(evaluate("pow(0, -1)"), Err(Problem::NoValue { .. })));
    assert!(matches!(evaluate("exp(1000)"), Err(Problem::NoValue { .. })));
}

#[test]
fn empty_expression_is_an_error() {
    assert_eq!(evaluate(" \t\n"), Err(Problem::Empty));
}

#[test]
fn length_is_bounded() {
    let longest = format!("1{}", "+1".repeat((MAX_BYTES - 1) / 2));
    assert_eq!(value(&longest), 2048.0);
    assert_eq!(
        evaluate(&format!("{longest}+1")),
        Err(Problem::TooLong { bytes: 4097, limit: MAX_BYTES })
    );
}

#[test]
fn every_form_of_nesting_is_bounded() {
    let parentheses = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    let sums = |depth: usize| format!("{}1{}", "1+(".repeat(depth), ")".repeat(depth));
    let calls = |depth: usize| format!("{}1{}", "abs(".repeat(depth), ")".repeat(depth));
    let signs = |depth: usize| format!("{}1", "-".repeat(depth));
    let powers = |depth: usize| format!("{}1", "1^".repeat(depth));
    for nest in [parentheses, sums, calls, signs, powers] as [fn(usize) -> String; 5] {
        assert!(evaluate(&nest(MAX_DEPTH)).is_ok(), "{}", nest(MAX_DEPTH));
        assert!(
            matches!(evaluate(&nest(MAX_DEPTH + 1)), Err(Problem::TooDeep { .. })),
            "{}",
            nest(MAX_DEPTH + 1)
        );
    }
}

#[test]
fn depth_decreases_when_a_level_ends() {
    assert_eq!(value(&format!("0{}", "+(1)".repeat(200))), 200.0);
}
