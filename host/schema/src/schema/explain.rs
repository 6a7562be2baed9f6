//! Converts errors of the validator to messages that say what is accepted.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::document::Moved;
use super::violation::Violation;
use crate::json::{footprint, type_name};
use crate::nearest_names;
use crate::text::{elided, elided_json};

/// The maximum length of a quoted part of the schema, in characters.
const MAX_QUOTE: usize = 160;
/// The maximum length of a quoted property name, in characters.
const MAX_SHOWN_NAME: usize = 64;
/// The maximum number of quoted names or values of a list.
const MAX_LISTED: usize = 20;
/// The maximum number of known properties compared with an unknown one.
const MAX_KNOWN: usize = 64;
/// The maximum depth of the search for the closest alternative.
const MAX_CLOSENESS: usize = 8;

/// Returns the maximum part of a schema that an error repeats, in bytes: an excluded schema or a
/// pattern. The validator copies these.
pub(super) fn quoted(schema: &Value) -> u64 {
    let of_keyword = |(keyword, value): (&String, &Value)| match (keyword.as_str(), value) {
        ("not", excluded) => footprint::of(excluded),
        ("pattern", Value::String(pattern)) => pattern.len() as u64,
        _ => quoted(value),
    };
    match schema {
        Value::Array(values) => values.iter().map(quoted).max().unwrap_or(0),
        Value::Object(keywords) => keywords.iter().map(of_keyword).max().unwrap_or(0),
        _ => 0,
    }
}

/// Describes the violation behind `error`, where `value` was validated against `schema`, whose
/// document for the validator has `moved` parts.
pub(super) fn violation(
    error: &ValidationError<'_>,
    value: &Value,
    schema: &Value,
    moved: &Moved,
) -> Violation {
    let hint = match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            meant(unexpected, &moved.original(error.schema_path().as_str()), schema)
        }
        _ => String::new(),
    };
    let reason = reason(error, value, 0) + &hint;
    Violation { pointer: error.instance_path().as_str().to_owned(), reason }
}

/// Suggests known properties similar to the refused ones, for the keyword at `path`.
fn meant(unexpected: &[String], path: &str, schema: &Value) -> String {
    let object =
        path.strip_suffix("/additionalProperties").and_then(|object| schema.pointer(object));
    let Some(known) = object.and_then(|object| object["properties"].as_object()) else {
        return String::new();
    };
    // Bounded, because this work is not charged to the call.
    let known = || {
        known.keys().take(MAX_KNOWN).map(String::as_str).filter(|name| name.len() <= MAX_SHOWN_NAME)
    };
    let nearest =
        unexpected.iter().take(3).filter_map(|one| nearest_names(one, known()).into_iter().next());
    let nearest: Vec<String> = nearest.map(|one| name(&one)).collect();
    if nearest.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", nearest.join(" and "))
    }
}

fn reason(error: &ValidationError<'_>, value: &Value, depth: usize) -> String {
    match error.kind() {
        Kind::Type { kind } => format!("want {}, got {}", types(kind), found(error, value)),
        Kind::Required { property } => {
            format!("{} is missing", property.as_str().map(name).unwrap_or_default())
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("{} not accepted here", names(unexpected.iter(), unexpected.len()))
        }
        Kind::FalseSchema => nothing_accepted(error, value),
        Kind::Enum { options } => format!("want one of {}", options_of(options)),
        Kind::Constant { expected_value } => format!("want {}", quote(expected_value)),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            no_alternative(context, value, depth)
        }
        Kind::PropertyNames { error } => {
            format!("a property name is not accepted: {}", reason(error, value, depth))
        }
        other => plain(other),
    }
}

/// Returns the reasons that need only numbers of the schema.
fn plain(kind: &Kind) -> String {
    match kind {
        Kind::Minimum { limit } => format!("want at least {limit}"),
        Kind::Maximum { limit } => format!("want at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("want more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("want less than {limit}"),
        // From `multipleOf` or `pattern`, the only custom keywords.
        Kind::Custom { message, .. } => message.clone(),
        Kind::MinLength { limit } => format!("want at least {}", count(*limit, "character")),
        Kind::MaxLength { limit } => format!("want at most {}", count(*limit, "character")),
        Kind::MinItems { limit } => format!("want at least {}", count(*limit, "element")),
        Kind::MaxItems { limit } => format!("want at most {}", count(*limit, "element")),
        Kind::AdditionalItems { limit } => {
            format!("want at most {}", count(*limit as u64, "element"))
        }
        Kind::MinProperties { limit } => format!("want at least {}", count(*limit, "member")),
        Kind::MaxProperties { limit } => format!("want at most {}", count(*limit, "member")),
        Kind::UniqueItems => "want elements that all differ".to_owned(),
        Kind::UnevaluatedItems { .. } => "has elements that are not accepted here".to_owned(),
        Kind::Contains => "want elements, in a certain number, that match `contains`".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "matches more than one alternative of `oneOf`; want exactly one".to_owned()
        }
        Kind::Not { .. } => "is what `not` excludes".to_owned(),
        other => format!("breaks `{}`", other.keyword()),
    }
}

/// Describes a value where nothing is accepted. For an object without known properties,
/// `"additionalProperties": false` reports the whole object, so the member names are listed
/// instead.
fn nothing_accepted(error: &ValidationError<'_>, value: &Value) -> String {
    let keyword = error.schema_path().as_str();
    let is_keyword = keyword.ends_with("/additionalProperties")
        && !keyword.ends_with("/properties/additionalProperties");
    match value.pointer(error.instance_path().as_str()) {
        Some(Value::Object(members)) if is_keyword => {
            format!("{} not accepted here", names(members.keys(), members.len()))
        }
        _ => "nothing is accepted here".to_owned(),
    }
}

fn count(count: u64, unit: &str) -> String {
    if count == 1 { format!("1 {unit}") } else { format!("{count} {unit}s") }
}

fn found(error: &ValidationError<'_>, value: &Value) -> &'static str {
    value.pointer(error.instance_path().as_str()).map_or("something else", type_name)
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(many) => {
            many.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn name(name: &str) -> String {
    format!("\"{}\"", elided(name, MAX_SHOWN_NAME))
}

/// Lists the first names. An object may have a million, and each of four hundred errors may be
/// about all of them.
fn names<'n>(unexpected: impl Iterator<Item = &'n String>, count: usize) -> String {
    let shown: Vec<String> = unexpected.take(3).map(|one| name(one)).collect();
    let verb = if count == 1 { "is" } else { "are" };
    match count.saturating_sub(shown.len()) {
        0 => format!("{} {verb}", shown.join(" and ")),
        more => format!("{} and {more} more {verb}", shown.join(", ")),
    }
}

fn quote(value: &Value) -> String {
    elided_json(value, MAX_QUOTE)
}

fn options_of(options: &Value) -> String {
    let all = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let shown: Vec<String> = all.iter().take(MAX_LISTED).map(quote).collect();
    let more = if all.len() > shown.len() { ", …" } else { "" };
    elided(&format!("{}{more}", shown.join(", ")), 2 * MAX_QUOTE)
}

/// Describes a failed choice of alternatives: lists the types if the alternatives differ only in
/// type, otherwise explains the closest one.
fn no_alternative(
    branches: &[Vec<ValidationError<'static>>],
    value: &Value,
    depth: usize,
) -> String {
    if let Some(wanted) = type_of_each(branches) {
        let got =
            branches.iter().flatten().next().map_or("something else", |error| found(error, value));
        return format!("want {wanted}, got {got}");
    }
    let closest = branches
        .iter()
        .filter(|branch| depth < MAX_CLOSENESS && !branch.is_empty())
        .min_by_key(|branch| distance(branch));
    let none = format!("matches none of {} alternatives", branches.len());
    match closest.and_then(|branch| branch.first()) {
        Some(error) => {
            let inner = Violation {
                pointer: error.instance_path().as_str().to_owned(),
                reason: reason(error, value, depth + 1),
            };
            format!("{none}; the closest: {}", elided(&inner.to_string(), 2 * MAX_QUOTE))
        }
        None => none,
    }
}

/// Ranks an alternative by its errors. An alternative with another type or constant ranks last,
/// since the caller did not mean it, however few errors it has.
fn distance(branch: &[ValidationError<'static>]) -> (bool, usize) {
    let another = branch.iter().any(|error| {
        matches!(error.kind(), Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. })
    });
    (another, branch.len())
}

fn type_of_each(branches: &[Vec<ValidationError<'static>>]) -> Option<String> {
    let mut wanted = Vec::new();
    let mut places = Vec::new();
    for branch in branches {
        let [error] = branch.as_slice() else { return None };
        let Kind::Type { kind } = error.kind() else { return None };
        wanted.push(types(kind));
        places.push(error.instance_path().as_str());
    }
    let (first, rest) = places.split_first()?;
    wanted.dedup();
    rest.iter().all(|place| place == first).then(|| wanted.join(" or "))
}
