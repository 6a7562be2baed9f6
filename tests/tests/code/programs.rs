//! The values that programs return, print and throw, and the environment of programs.

use super::{failure, granting, output, run};
use palisade::json;

#[tokio::test]
async fn program_calls_tools_as_functions() {
    let stage = granting(&["*"], |builder| builder);
    stage.world.file("a.txt", "one\ntwo\n");
    let code = "const text = tools.read_file({path: 'a.txt'});
        const lines = text.trim().split('\\n');
        return {lines: lines.length, sum: tools.calculate({expression: `${lines.length} * 21`})};";
    assert_eq!(output(&run(&stage, code).await), r#"{"lines":2,"sum":"42"}"#);
    let names = stage.recorder.names_of("program.1");
    assert_eq!(names, ["tool.called", "tool.completed"]);
}

#[tokio::test]
async fn output_is_what_was_printed_and_returned() {
    let stage = granting(&["calculate"], |builder| builder);
    for (code, expected) in [
        ("return 'plain'", "plain"),
        ("return {a: [1, 2.5, null, true]}", r#"{"a":[1,2.5,null,true]}"#),
        ("console.log('a', 1, {b: [2]}); console.error('c')", "a 1 {\"b\":[2]}\nc\n"),
        ("return new Map([['a', [1]]])", r#"[["a",[1]]]"#),
        ("return new Set([1, 2])", "[1,2]"),
        ("return [3, 1, undefined, 2].sort()", "[1,2,3,null]"),
        ("return [10, 9, 1].toSorted((a, b) => a - b)", "[1,9,10]"),
        ("return [...Array(60).keys()].sort(() => 0.5 - Math.random()).length", "60"),
        ("return new Float64Array(60).fill(1).sort(() => 0.5 - Math.random()).length", "60"),
        ("return [...new Int8Array([3, -1, 20]).toSorted((a, b) => b - a)]", "[20,3,-1]"),
        ("return [...new Uint8Array([9, 30, 4]).sort()]", "[4,9,30]"),
        ("return '\u{1F600}abc'.slice(1)", "\u{FFFD}abc"),
        ("return await Promise.all([1, Promise.resolve(2)])", "[1,2]"),
        ("return 10n ** 20n", r#""100000000000000000000""#),
        ("return [NaN, undefined, () => 1, {x: undefined}]", "[null,null,null,{}]"),
        ("return new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
    ] {
        assert_eq!(output(&run(&stage, code).await), expected, "{code}");
    }
    let nothing = output(&run(&stage, "1 + 1").await);
    assert!(nothing.starts_with("the program returned nothing"), "{nothing}");
    let much =
        output(&run(&stage, "for (let i = 0; i < 3000; i++) console.log('x'.repeat(1e3))").await);
    assert!(much.ends_with("x\n[the rest of what the program printed is left out]\n"));
    let both = run(&stage, "console.log('first'); return 2").await;
    assert_eq!(both.content().len(), 2);
}

#[tokio::test]
async fn error_names_its_place_and_nothing_of_the_engine() {
    let stage = granting(&["calculate"], |builder| builder);
    for (code, words) in [
        ("let x = ;", "SyntaxError: unexpected token ';', primary expression at line 1, column 9"),
        (
            "console.log('before');\nthrow new TypeError('bad')",
            "before\nTypeError: bad (line 2, column 7)",
        ),
        ("throw 'words'", "the program threw words"),
        ("await 0; throw new RangeError('late')", "RangeError: late (line 1, column 16)"),
        ("\nfunction native() {\n  null.x\n}\nnative()", "to object (line 3, column 8)"),
        ("eval('\\n\\n\\nnull.x')", "to object (line 1, column 5)"),
        ("throw new Error('CSV error at line 1, col 30')", "error at line 1, col 30 (line 1, "),
        ("\nthrow new Error('a\\n    at f (program:77:5)\\nb')", "b (line 2, column 7)"),
        ("\nthrow new Error('a\\n    at f (program:77:5)')", "(line 2, column 7)"),
        ("let e = new Error('own'); e.line = 42; throw e", "Error: own (line 1, "),
        ("Object.getPrototypeOf(Int8Array.prototype).sort.call([2, 1], () => 1)", "TypeError"),
        ("Object.prototype.line = 777; throw new Error('z')", "Error: z (line 1, column 36)"),
        ("Object.prototype.class = 'timeout'; null.x", "TypeError: cannot"),
        ("await new Promise(() => {})", "waits for a promise that nothing settles"),
        ("const f = () => f(); f()", "reached the maximum number of recursive calls"),
        ("const o = {}; o.o = o; return o", "nested more than 64 deep, or in itself"),
        (
            "let a = []; for (let i = 0; i < 5000; i++) a = [a]; return a",
            "nested more than 64 deep",
        ),
        ("1;\ntools.calculate({expression: 7})", "validation_error"),
        ("1;\ntools.calculate({expression: 7})", "(line 2)"),
        ("tools.calculate('1')", "the input of calculate is an object"),
        ("(async () => { throw new Error('unseen') })(); return 1", "Error: unseen"),
        ("async function main() { tools.calculate({}) } main()", "validation_error: "),
        ("Promise.reject(new Error('nobody')); return 1", "Error: nobody"),
        ("`${tools}`", "TypeError"),
    ] {
        let failure = failure(&run(&stage, code).await);
        assert!(failure.contains(words), "{code}: {failure}");
        assert!(!failure.contains("boa") && !failure.contains("native"), "{code}: {failure}");
    }
}

#[tokio::test]
async fn unknown_name_has_its_place() {
    let stage = granting(&["calculate"], |builder| builder);
    let failed = failure(&run(&stage, "let a = 1;\nlet b = 2;\nmissing.x;").await);
    assert!(failed.starts_with("ReferenceError: missing is not defined (line 3, "), "{failed}");
    // The engine knows no place of these two.
    let failed = failure(&run(&stage, "let a = 1;\nlet b = 2;\nmissing;").await);
    assert_eq!(failed, "ReferenceError: missing is not defined");
    let failed = failure(&run(&stage, "const a = null;\n\na.foo();").await);
    assert!(failed.starts_with("TypeError: ") && !failed.contains("line"), "{failed}");
}

#[tokio::test]
async fn promise_that_is_rejected_later_can_be_caught() {
    let stage = granting(&["calculate", "read_file"], |builder| builder);
    let fail = "const fail = async n => { await 0; throw new Error('e' + n) };";
    for (code, expected) in [
        ("return Promise.resolve(1).then(() => { throw 1 }).catch(() => 'caught')", "caught"),
        ("try { await fail(1) } catch (error) { return error.message }", "e1"),
        (
            "try { await Promise.all([fail(1), fail(2)]) } catch (error) { return error.message }",
            "e1",
        ),
        ("return (await Promise.allSettled([fail(1), 2])).length", "2"),
        (
            "const load = async path => { await 0; return tools.read_file({path}) };
          try { await load('missing') } catch (error) { return error.class }",
            "execution_error",
        ),
    ] {
        let ended = run(&stage, &format!("{fail}\n{code}")).await;
        assert_eq!(output(&ended), expected, "{code}");
    }
    let lost = format!("{fail}\nfail('lost'); await 0; await 0; return 1");
    assert!(failure(&run(&stage, &lost).await).starts_with("Error: elost"));
}

#[tokio::test]
async fn unhandled_rejection_is_found_among_many_that_are_handled() {
    let stage = granting(&["calculate"], |builder| builder);
    let code = |lost: &str| {
        format!(
            "const fail = async (i) => {{ throw new Error('e' + i) }};
            const all = Array.from({{length: 2000}}, (_, i) => fail(i));
            {lost}
            return (await Promise.allSettled(all)).length"
        )
    };
    assert_eq!(output(&run(&stage, &code("")).await), "2000");
    for converted in [
        "return {toJSON() { (async () => { tools.calculate({}) })(); return 'saved' }}",
        "return {get saved() { (async () => { await 0; tools.calculate({}) })(); return true }}",
    ] {
        let failure = failure(&run(&stage, converted).await);
        assert!(failure.starts_with("validation_error: "), "{failure}");
    }
    let lost = "(async () => { tools.calculate({}) })();";
    let failure = failure(&run(&stage, &code(lost)).await);
    assert!(failure.starts_with("validation_error: "), "{failure}");
}

#[tokio::test]
async fn failed_call_can_be_caught() {
    let stage = granting(&["calculate"], |builder| builder);
    let code = "try { tools.calculate({}) } catch (error) {
        return [error.class, error instanceof Error, error.line, error.message.includes(error.class)]
    }";
    assert_eq!(output(&run(&stage, code).await), r#"["validation_error",true,1,false]"#);
    let handled = "const failed = Promise.reject(new Error('seen'));
        return await failed.catch(error => error.message)";
    assert_eq!(output(&run(&stage, handled).await), "seen");
}

#[tokio::test]
async fn calls_at_once_return_values_and_errors_in_order() {
    let stage = granting(&["calculate"], |builder| builder);
    let code = "return tools.all([
        ['calculate', {expression: '1'}], ['calculate', {}], ['calculate', {expression: '3'}],
    ]).map(result => result.error ? result.error.class : result.value)";
    assert_eq!(output(&run(&stage, code).await), r#"["1","validation_error","3"]"#);
    let many = "return tools.all(Array(33).fill(['calculate', {expression: '1'}]))";
    assert!(failure(&run(&stage, many).await).contains("at most 32 calls"));
}

#[tokio::test]
async fn program_has_no_clock_no_network_and_the_same_random_numbers() {
    let stage = granting(&["calculate"], |builder| builder);
    let code = "return [Date.now(), new Date().getTime(), Math.random(), Math.random(),
        typeof fetch, typeof require, typeof process, typeof setTimeout]";
    let first = output(&run(&stage, code).await);
    assert_eq!(first, output(&run(&stage, code).await));
    let values: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!([&values[0], &values[1]], [&json!(0), &json!(0)]);
    assert_ne!(values[2], values[3]);
    assert!((4..8).all(|index| values[index] == "undefined"), "{first}");
    let other = output(&run(&stage, &format!("{code};")).await);
    assert_ne!(first, other, "another program has other numbers");
}

#[tokio::test]
async fn program_finds_tools_by_words() {
    let stage = granting(&["read_file", "calculate", "search_files"], |builder| builder);
    let found = output(&run(&stage, "return tools.search('read a file')").await);
    assert!(found.starts_with("/** Reads a text file"), "{found}");
    assert!(found.contains("read_file(input: { /** The file"), "{found}");
    assert!(!found.contains("write_file"), "{found}");
    let none = output(&run(&stage, "return tools.search('xylophone')").await);
    assert!(none.starts_with("no tool has these words"), "{none}");
    let searched = stage.host.call("search_tools", json!({"words": "expression"}), json!({})).await;
    assert!(output(&searched).contains("calculate(input: {"), "{searched}");
}
