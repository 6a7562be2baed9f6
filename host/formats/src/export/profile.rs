//! The part of JSON Schema that each provider reads.

use serde_json::Value;

use palisade_schema::schema::{PATH_ACCESS, WORKSPACE_PATH};

/// The values of `format` that a provider accepts.
#[derive(Debug)]
pub(super) enum Formats {
    /// Any value.
    Any,
    /// Any value of the specification, which excludes `workspace-path`.
    Known,
    /// The listed values.
    These(&'static [&'static str]),
}

/// The property names that a provider accepts.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameRule {
    pub(super) accepts: fn(&str) -> bool,
    /// A description of the rule.
    pub(super) accepted: &'static str,
}

/// The rules for writing schemas for one provider.
#[derive(Debug)]
pub(super) struct Profile {
    /// The accepted keywords, or `None` for all.
    pub(super) keywords: Option<&'static [&'static str]>,
    pub(super) formats: Formats,
    /// The keywords that are not accepted at the root.
    pub(super) never_at_root: &'static [&'static str],
    /// The accepted property names, or `None` for all.
    pub(super) names: Option<NameRule>,
    /// True if every object must forbid members that it does not list.
    pub(super) closes_objects: bool,
    /// True if every member must be required, so that `null` stands for absence.
    pub(super) requires_all_members: bool,
    /// True if an array must have `items` and an object `properties`, even if empty.
    pub(super) requires_empty_keywords: bool,
    /// The largest accepted `minItems`.
    pub(super) min_items: u64,
    pub(super) types: Types,
}

/// The forms of `type` that the readers of a format accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Types {
    /// One type or a list of types, as in the specification.
    OneOrMore,
    /// One type. A list becomes `anyOf`, and an optional member does not accept `null`.
    One,
}

/// The treatment of a keyword.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Keep the keyword.
    Keep,
    /// Rename `oneOf` to `anyOf`.
    AnyOf,
    /// Replace `const` with an equivalent `enum` of one value.
    Enum,
    /// Replace `"format": "workspace-path"` with a sentence in the description, unless the
    /// description mentions the workspace already.
    Sentence,
    /// Move the keyword into a note in the description.
    Note,
    /// Drop the keyword, which does not concern a model.
    Drop,
}

impl Profile {
    /// Returns the treatment of a keyword, at the root or elsewhere.
    pub(super) fn treatment(&self, keyword: &str, value: &Value, is_root: bool) -> Treatment {
        let is_accepted = self.keywords.is_none_or(|keywords| keywords.contains(&keyword));
        match keyword {
            _ if is_root && self.never_at_root.contains(&keyword) => Treatment::Note,
            "format" => self.format_treatment(value),
            // It says to the host how a path is used, and every exported schema has words for it.
            PATH_ACCESS => Treatment::Drop,
            "oneOf" if !is_accepted => Treatment::AnyOf,
            "const" if !is_accepted && (value.is_string() || value.is_number()) => Treatment::Enum,
            "minItems" if is_accepted && value.as_u64().is_none_or(|min| min > self.min_items) => {
                Treatment::Note
            }
            "$schema" | "$id" | "$comment" | "$anchor" if !is_accepted => Treatment::Drop,
            _ if !is_accepted && keyword.starts_with("x-") => Treatment::Drop,
            _ if is_accepted => Treatment::Keep,
            _ => Treatment::Note,
        }
    }

    fn format_treatment(&self, value: &Value) -> Treatment {
        let name = value.as_str().unwrap_or_default();
        match &self.formats {
            Formats::Any => Treatment::Keep,
            Formats::These(formats) if formats.contains(&name) => Treatment::Keep,
            Formats::Known | Formats::These(_) if name == WORKSPACE_PATH => Treatment::Sentence,
            Formats::Known => Treatment::Keep,
            Formats::These(_) => Treatment::Note,
        }
    }
}

const BASE: Profile = Profile {
    keywords: None,
    formats: Formats::Known,
    never_at_root: &[],
    names: None,
    closes_objects: false,
    requires_all_members: false,
    requires_empty_keywords: false,
    min_items: u64::MAX,
    types: Types::OneOrMore,
};

/// MCP: the clients convert a schema for the API of their model, and many of them accept one type
/// only and no unknown format.
pub(super) static MCP: Profile = Profile { types: Types::One, ..BASE };

/// OpenAI outside strict mode: most of JSON Schema, but not these keywords at the root, and with
/// `items` and `properties` required.
pub(super) static OPENAI: Profile = Profile {
    never_at_root: &["anyOf", "oneOf", "allOf", "not", "enum"],
    requires_empty_keywords: true,
    ..BASE
};

/// OpenAI's Structured Outputs.
pub(super) static OPENAI_STRICT: Profile = Profile {
    keywords: Some(super::strict::OPENAI.keywords),
    formats: Formats::These(super::strict::OPENAI.formats),
    never_at_root: &["anyOf", "oneOf", "enum"],
    closes_objects: true,
    requires_all_members: true,
    requires_empty_keywords: true,
    ..BASE
};

/// Anthropic: JSON Schema 2020-12 with any `format`, but no alternatives at the root.
pub(super) static ANTHROPIC: Profile = Profile {
    formats: Formats::Any,
    never_at_root: &["anyOf", "oneOf", "allOf"],
    names: Some(NameRule {
        accepts: is_anthropic_name,
        accepted: "1 to 64 letters, digits, `_`, `.` and `-`",
    }),
    ..BASE
};

/// Anthropic's strict mode: the keywords that Anthropic's own libraries keep.
pub(super) static ANTHROPIC_STRICT: Profile = Profile {
    keywords: Some(super::strict::ANTHROPIC.keywords),
    formats: Formats::These(super::strict::ANTHROPIC.formats),
    never_at_root: &["anyOf", "oneOf", "allOf"],
    names: ANTHROPIC.names,
    closes_objects: true,
    min_items: 1,
    ..BASE
};

/// Gemini: `parametersJsonSchema` takes a plain JSON Schema.
pub(super) static GEMINI: Profile = Profile {
    names: Some(NameRule {
        accepts: is_gemini_name,
        accepted: "1 to 64 letters, digits and `_`, not beginning with a digit",
    }),
    ..BASE
};

/// Gemini's strict mode: the keywords that its documentation lists.
pub(super) static GEMINI_STRICT: Profile = Profile {
    keywords: Some(&[
        "$id",
        "$defs",
        "$ref",
        "$anchor",
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
        "required",
    ]),
    formats: Formats::These(&["date-time", "date", "time"]),
    names: GEMINI.names,
    ..BASE
};

fn is_anthropic_name(name: &str) -> bool {
    let is_accepted = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_accepted)
}

fn is_gemini_name(name: &str) -> bool {
    let is_accepted = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=64).contains(&name.len())
        && name.bytes().all(is_accepted)
        && !name.starts_with(|c: char| c.is_ascii_digit())
}
