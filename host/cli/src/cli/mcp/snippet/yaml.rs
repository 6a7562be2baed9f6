//! Writes the few shapes of YAML that the clients' files need: block mappings and lists, with each
//! string in double quotes as in JSON, which YAML 1.2 contains.

use serde_json::Value;

/// Words that YAML reads as something else than a string, in any case.
const OTHERS: [&str; 7] = ["true", "false", "null", "yes", "no", "on", "off"];

/// Writes the members of a mapping, each line indented by this number of spaces.
pub(super) fn mapping(members: &[(&str, &Value)], indent: usize) -> String {
    let pad = " ".repeat(indent);
    let member = |(name, value): &(&str, &Value)| match value {
        Value::Object(inner) if !inner.is_empty() => {
            let inner: Vec<_> = inner.iter().map(|(name, value)| (name.as_str(), value)).collect();
            format!("{pad}{}:\n{}", key(name), mapping(&inner, indent + 2))
        }
        Value::Array(elements) if !elements.is_empty() => {
            let lines = elements.iter().map(|element| format!("{pad}  - {element}\n"));
            format!("{pad}{}:\n{}", key(name), lines.collect::<String>())
        }
        // All other values are written on one line, in the syntax of JSON.
        plain => format!("{pad}{}: {plain}\n", key(name)),
    };
    members.iter().map(member).collect()
}

/// Writes the name of a member: letters, digits, `-` and `_`.
pub(super) fn key(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() > 1
        && !OTHERS.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { Value::from(name).to_string() }
}
