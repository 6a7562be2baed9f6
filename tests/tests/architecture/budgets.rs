//! Checks that the HTTP API and the formats of providers parse texts of others within the budget of
//! their request: a value takes up to 90 times the memory of its text.

use super::{none, read, rust_files, without_tests};

/// The calls that build a value without a budget.
const UNBUDGETED: [&str; 6] = [
    "parse_bounded(",
    "parse_object(",
    "serde_json::from_str",
    "serde_json::from_slice",
    "serde_json::from_reader",
    "&Unlimited",
];

/// The lines that may, by their file and a part of them.
const ALLOWED: [(&str, &str, &str); 7] = [
    ("host/formats/src/conversation.rs", "&Unlimited", "a program reads its own model's reply"),
    (
        "host/formats/src/conversation/history.rs",
        "&Unlimited",
        "a program reads its own model's reply",
    ),
    ("host/formats/src/conversation/numbers.rs", "IgnoredAny", "it builds no value"),
    ("host/formats/src/conversation/numbers.rs", "<Number>", "it reads one number"),
    ("host/server/src/api/history/page.rs", "parse_bounded(event.line", "the host wrote the line"),
    ("host/server/src/journal/reads.rs", "from_str(json)", "the journal wrote the text"),
    ("host/server/src/journal/reads/calls.rs", "from_str(&json)", "the journal wrote the text"),
];

#[test]
fn texts_of_others_are_parsed_within_budgets() {
    let mut found = Vec::new();
    let mut used = Vec::new();
    for under in ["host/server/src/", "host/formats/src/"] {
        for path in without_tests(rust_files(under).into_iter()) {
            let text = read(&path);
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let lines = code.lines().enumerate().filter(|(_, line)| !line.trim().starts_with("//"));
            for (number, line) in lines.filter(|(_, line)| is_unbudgeted(line)) {
                let allowed =
                    ALLOWED.iter().position(|(file, part, _)| *file == path && line.contains(part));
                match allowed {
                    Some(allowed) => used.push(allowed),
                    None => found.push(format!("{path}:{}: {}", number + 1, line.trim())),
                }
            }
        }
    }
    none(&found);
    let unused = (0..ALLOWED.len()).filter(|at| !used.contains(at));
    none(&unused.map(|at| format!("{:?} is not there", ALLOWED[at])).collect::<Vec<_>>());
}

fn is_unbudgeted(line: &str) -> bool {
    UNBUDGETED.iter().any(|call| line.contains(call))
}
