//! `calculate`: evaluates one expression, or reports the place of its error.

use crate::call;
use serde_json::json;

#[test]
fn operators_have_the_usual_precedence() {
    for (expression, value) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("10 - 4 - 3", "3"),
        ("100 / 10 / 2", "5"),
        ("2 ^ 3 ^ 2", "512"),
        ("-2 ^ 2", "-4"),
        ("2 ^ -1", "0.5"),
        ("7 % 4 * 2", "6"),
        ("- -3", "3"),
        ("0 * -1", "0"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("2 ^ 53", "9007199254740992"),
        ("1e300 * 10", "1e301"),
        (".5 + 1_000 + 1e-3", "1000.501"),
        ("sqrt(16) + abs(-2) + min(3, 1, 2) + max(4, 5)", "12"),
        (
            "round(cos(pi)) + ln(e) + log10(1000) + log2(8) + pow(2, 3) + floor(1.9) + ceil(0.1)",
            "16",
        ),
        ("(3 + 4) * 2 ^ 10 / sqrt(2)", "5068.541407545173"),
    ] {
        let seen = call("calculate", json!({"expression": expression})).check_library(|call| call);
        assert_eq!(seen.output(), value, "{expression}");
    }
}

#[test]
fn undefined_value_is_refused_with_its_place() {
    for (expression, said) in [
        ("", "the expression is empty"),
        ("1 +", "at character 4, found the end"),
        ("1 2", "expected an operator or the end at character 3, found 2"),
        ("(1", "`)`"),
        ("1 / 0", "division by zero: the right side of `/` at character 3"),
        ("5 % 0", "division by zero"),
        ("0 ^ -1", "division by zero"),
        ("10 ^ 400", "is larger than a double holds"),
        ("sqrt(-1)", "`sqrt(-1)` at character 1 has no finite real value"),
        ("sqrt()", "takes 1 argument, not 0"),
        ("foo(1)", "`foo` at character 1 is not known; the functions are sqrt, abs"),
        ("1.2.3", "is not a number"),
        ("1 = 1", "character 3"),
    ] {
        let seen = call("calculate", json!({"expression": expression})).check_library(|call| call);
        let error = seen.error("execution_error");
        assert_eq!(
            (&error["detail"]["kind"], &error["detail"]["field"]),
            (&json!("invalid-input"), &json!("expression")),
            "{error:#}"
        );
        assert!(seen.message("execution_error").contains(said), "{expression}: {error:#}");
    }
}

#[test]
fn too_long_or_deep_expression_is_refused() {
    let deep = format!("{}1{}", "(".repeat(65), ")".repeat(65));
    let long = format!("1{}", "+1".repeat(2_048));
    for (expression, said) in [
        (deep, "nested deeper than 64 levels"),
        (long, "4096 is the most"),
        ("-".repeat(4_000), "nested deeper"),
    ] {
        let seen = call("calculate", json!({"expression": expression})).check();
        assert!(seen.message("execution_error").contains(said), "{:#}", seen.result);
    }
    let fits = format!("{}1{}", "(".repeat(64), ")".repeat(64));
    assert_eq!(call("calculate", json!({"expression": fits})).check().output(), "1");
}
