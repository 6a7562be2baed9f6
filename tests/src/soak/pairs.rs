//! A soak test for schemas and inputs that are designed to be expensive: each pair must be judged
//! within a bound.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use palisade::tool::json::{JsonBounds, parse_bounded};
use palisade::tool::schema::Schema;

use super::Report;
use crate::dice::Dice;
use crate::fuzz;

/// The maximum time of a pair; ten times as much without optimization.
const EACH: Duration = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });
/// The number of retries of a slow pair. The time of the work itself recurs, a delay by other
/// processes does not.
const AGAIN: usize = 5;
/// The period of the pairs that are also checked against the underlying validator.
const COMPARED: usize = 16;
/// The maximum nesting of generated schemas and inputs.
const DEPTH: usize = 6;

/// The counters of a run. `longest` is in microseconds, and `of` is the number of that pair.
#[derive(Debug, Default)]
struct Tally {
    schemas: AtomicUsize,
    inputs: AtomicUsize,
    valid: AtomicUsize,
    longest: AtomicUsize,
    of: AtomicUsize,
}

/// Judges `count` pairs on two threads.
///
/// # Panics
///
/// If the host panics, or two validators differ.
pub fn pairs(count: usize) -> Report {
    let (tally, next) = (Tally::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(number) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < count)
                {
                    tally.judge(number);
                }
            });
        }
    });
    let Tally { schemas, inputs, valid, longest, of } = tally;
    let longest = Duration::from_micros(longest.into_inner() as u64);
    let figures = format!(
        "{schemas:?} schemas accepted, {inputs:?} inputs read for them, {valid:?} of these valid; longest {longest:?} (pair {of:?})"
    );
    Report::new(&figures)
        .bound("no panic", next.into_inner() >= count)
        .bound(&format!("each within {EACH:?}"), longest <= EACH)
        .bound(
            "some of each kind",
            schemas.into_inner() > 0 && inputs.into_inner() > 0 && valid.into_inner() > 0,
        )
}

impl Tally {
    fn judge(&self, number: usize) {
        let (schema, input) = pair(number as u64);
        if number.is_multiple_of(COMPARED) {
            fuzz::schema(format!("{schema}\0{input}").as_bytes());
        }
        let timed = || {
            let start = Instant::now();
            let judged = judged(&schema, &input);
            (start.elapsed(), judged)
        };
        let (mut took, (accepted, read, valid)) = timed();
        for _ in 0..AGAIN {
            if took > EACH {
                took = took.min(timed().0);
            }
        }
        let micros = usize::try_from(took.as_micros()).unwrap_or(usize::MAX);
        if self.longest.fetch_max(micros, Ordering::Relaxed) < micros {
            self.of.store(number, Ordering::Relaxed);
        }
        for (counter, counts) in
            [(&self.schemas, accepted), (&self.inputs, read), (&self.valid, valid)]
        {
            counter.fetch_add(usize::from(counts), Ordering::Relaxed);
        }
    }
}

/// Returns whether the schema is accepted, the input is parsed, and the input is valid.
fn judged(schema: &str, input: &str) -> (bool, bool, bool) {
    let Ok(schema) = Schema::parse_input(schema) else { return (false, false, false) };
    let Ok(value) = parse_bounded(input, JsonBounds::CALL_INPUT) else {
        return (true, false, false);
    };
    (true, true, schema.validate(&value).is_ok())
}

/// Generates the pair with this number.
fn pair(number: u64) -> (String, String) {
    let mut dice = Dice::new(number);
    let schema = root(&mut dice);
    let input = format!("{{\"p\":{},\"q\":{}}}", value(&mut dice, 0), value(&mut dice, 0));
    (damaged(&mut dice, schema), damaged(&mut dice, input))
}

/// Damages one of sixteen texts.
fn damaged(dice: &mut Dice, text: String) -> String {
    if dice.roll(16) > 0 {
        return text;
    }
    let mut bytes = text.into_bytes();
    let (at, to) = (dice.roll(bytes.len()), dice.roll(bytes.len()));
    match dice.roll(3) {
        0 => bytes.truncate(at),
        1 => bytes.swap(at, to),
        _ => bytes[at] = dice.roll(256) as u8,
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn root(dice: &mut Dice) -> String {
    let definitions: Vec<String> =
        (0..2 + dice.roll(3)).map(|n| format!("\"d{n}\":{}", schema(dice, 2))).collect();
    format!(
        "{{\"type\":\"object\",\"$defs\":{{{}}},\"properties\":{{\"p\":{},\"q\":{}}}}}",
        definitions.join(","),
        schema(dice, 0),
        schema(dice, 0)
    )
}

const PATTERNS: [&str; 12] = [
    "^(a+)+$",
    "^(a|a)*$",
    "(.*a){12}",
    "^(a|aa)+$",
    "(a{100}){10}",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "\\\\p{L}+$",
    "a",
    ".*.*.*=.*",
    "^([a-z]+[0-9]*)*x$",
    "(a{1000}){1000}",
    "(a)\\\\1",
];
const COUNTS: [&str; 9] =
    ["0", "1", "2", "3", "64", "1000", "1000000", "18446744073709551616", "-1"];
const NUMBERS: [&str; 9] =
    ["0", "-1", "1e308", "1e-308", "0.1", "18446744073709551616", "3", "1e400", "64"];
const REFERENCES: [&str; 8] = [
    "#/$defs/d0",
    "#/$defs/d1",
    "#/$defs/d0",
    "#/$defs/d1",
    "#/$defs/d4",
    "#",
    "#/properties/p",
    "https://example.com/x",
];
const APPLIED: [&str; 8] = [
    "not",
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "if",
    "then",
    "unevaluatedProperties",
];
const COUNTED: [&str; 8] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "minContains",
    "multipleOf",
    "exclusiveMaximum",
];

/// Generates a schema of up to three keywords, most of which are expensive.
fn schema(dice: &mut Dice, depth: usize) -> String {
    if depth >= DEPTH || dice.roll(12) == 0 {
        return dice
            .pick(&["true", "false", "{}", "{\"type\":\"string\"}", "{\"uniqueItems\":true}"])
            .to_owned();
    }
    let keywords: Vec<String> = (0..1 + dice.roll(3)).map(|_| keyword(dice, depth + 1)).collect();
    format!("{{{}}}", keywords.join(","))
}

fn keyword(dice: &mut Dice, depth: usize) -> String {
    let list = |dice: &mut Dice| {
        (0..1 + dice.roll(4)).map(|_| schema(dice, depth)).collect::<Vec<_>>().join(",")
    };
    match dice.roll(13) {
        0 => format!("\"pattern\":\"{}\"", dice.pick(&PATTERNS)),
        1 => format!(
            "\"patternProperties\":{{\"{}\":{}}}",
            dice.pick(&PATTERNS),
            schema(dice, depth)
        ),
        2 => format!("\"$ref\":\"{}\"", dice.pick(&REFERENCES)),
        3 | 4 => format!(
            "\"{}\":[{}]",
            dice.pick(&["allOf", "anyOf", "oneOf", "prefixItems"]),
            list(dice)
        ),
        5 | 6 => format!("\"{}\":{}", dice.pick(&APPLIED), schema(dice, depth)),
        7 => format!("\"{}\":{}", dice.pick(&COUNTED), dice.pick(&COUNTS)),
        8 => "\"uniqueItems\":true".to_owned(),
        9 => format!("\"enum\":[{},{}]", value(dice, DEPTH - 1), value(dice, DEPTH - 1)),
        10 => format!(
            "\"properties\":{{\"a\":{},\"b\":{}}}",
            schema(dice, depth),
            schema(dice, depth)
        ),
        11 => format!(
            "\"format\":\"{}\"",
            dice.pick(&["workspace-path", "regex", "email", "uri", "idn-hostname"])
        ),
        _ => format!(
            "\"type\":\"{}\"",
            dice.pick(&["array", "object", "string", "number", "integer", "null"])
        ),
    }
}

/// Generates a value that is large, deep, or moderately both.
fn value(dice: &mut Dice, depth: usize) -> String {
    if depth >= DEPTH {
        return dice.pick(&NUMBERS).to_owned();
    }
    match dice.roll(9) {
        0 => format!("\"{}!\"", "a".repeat(1 << dice.roll(17))),
        1 => many(dice, "[", "]", |_, n| format!("{{\"a\":{n}}}")),
        2 => many(dice, "[", "]", |dice, _| {
            dice.pick(&["1", "1.0", "10e-1", "\"1\"", "null"]).to_owned()
        }),
        3 => many(dice, "{", "}", |_, n| format!("\"aaaaaaaaaaaaaaaa{n}\":\"aaaa\"")),
        4 => format!("{}{}", "[".repeat(1 + dice.roll(80)), "]".repeat(1 + dice.roll(80))),
        5 => dice
            .pick(&["null", "true", "\"\\ud800\"", "\"\\u0000\"", "\"../x\"", "{}", "[]"])
            .to_owned(),
        6 => dice.pick(&NUMBERS).to_owned(),
        7 => format!("[{},{}]", value(dice, depth + 1), value(dice, depth + 1)),
        _ => format!("{{\"a\":{},\"b\":{}}}", value(dice, depth + 1), value(dice, depth + 1)),
    }
}

/// Generates a list of up to 4096 entries.
fn many(
    dice: &mut Dice,
    open: &str,
    close: &str,
    one: impl Fn(&mut Dice, usize) -> String,
) -> String {
    let mut text = open.to_owned();
    for number in 0..1 << dice.roll(13) {
        let _ = write!(text, "{}{}", if number == 0 { "" } else { "," }, one(dice, number));
    }
    text + close
}
