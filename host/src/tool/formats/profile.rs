//! What each provider reads of a schema.

use serde_json::Value;

use crate::tool::schema::WORKSPACE_PATH;

/// Which values of `format` a provider takes.
#[derive(Debug)]
pub(super) enum Formats {
    /// Any.
    Any,
    /// Any that the specification knows, which ours is not.
    Known,
    /// These.
    These(&'static [&'static str]),
}

/// Which names of properties a provider takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameRule {
    pub(super) accepts: fn(&str) -> bool,
    /// The rule in words.
    pub(super) accepted: &'static str,
}

/// How schemas are written for one provider.
#[derive(Debug)]
pub(super) struct Profile {
    /// The keywords that stay; all where `None`.
    pub(super) keywords: Option<&'static [&'static str]>,
    pub(super) formats: Formats,
    /// The keywords that may not stand at the root.
    pub(super) never_at_root: &'static [&'static str],
    /// Which names of properties are accepted; all where `None`.
    pub(super) names: Option<NameRule>,
    /// Whether every object says which members it has, and that it has no others.
    pub(super) closed: bool,
    /// Whether every member is required, so that `null` has to stand for absence.
    pub(super) all_required: bool,
    /// Whether an array has to say `items`, and an object `properties`, even if they say nothing.
    pub(super) completed: bool,
    /// The largest `minItems`.
    pub(super) min_items: u64,
}

/// What becomes of a keyword.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It stays.
    Keep,
    /// `oneOf` becomes `anyOf`.
    AnyOf,
    /// `const` becomes an `enum` of one, which means the same.
    Enum,
    /// `"format": "workspace-path"` becomes a sentence.
    Sentence,
    /// It becomes a note in the description.
    Note,
    /// It says nothing to a model, and goes.
    Drop,
}

impl Profile {
    /// What becomes of a keyword, at the root or elsewhere.
    pub(super) fn treat(&self, keyword: &str, value: &Value, is_root: bool) -> Treatment {
        let stays = self.keywords.is_none_or(|keywords| keywords.contains(&keyword));
        match keyword {
            _ if is_root && self.never_at_root.contains(&keyword) => Treatment::Note,
            "format" => self.format(value),
            "oneOf" if !stays => Treatment::AnyOf,
            "const" if !stays && (value.is_string() || value.is_number()) => Treatment::Enum,
            "minItems" if stays && value.as_u64().is_none_or(|min| min > self.min_items) => Treatment::Note,
            "$schema" | "$id" | "$comment" | "$anchor" if !stays => Treatment::Drop,
            _ if !stays && keyword.starts_with("x-") => Treatment::Drop,
            _ if stays => Treatment::Keep,
            _ => Treatment::Note,
        }
    }

    fn format(&self, value: &Value) -> Treatment {
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
    closed: false,
    all_required: false,
    completed: false,
    min_items: u64::MAX,
};

/// OpenAI outside strict mode reads most of JSON Schema, but not these at the root, and asks for `items` and `properties`.
pub(super) static OPENAI: Profile =
    Profile { never_at_root: &["anyOf", "oneOf", "allOf", "not", "enum"], completed: true, ..BASE };

/// OpenAI's Structured Outputs.
pub(super) static OPENAI_STRICT: Profile = Profile {
    keywords: Some(super::strict::OPENAI.keywords),
    formats: Formats::These(super::strict::OPENAI.formats),
    never_at_root: &["anyOf", "oneOf", "enum"],
    closed: true,
    all_required: true,
    completed: true,
    ..BASE
};

/// Anthropic reads 2020-12 with any `format`, but no alternatives at the root.
pub(super) static ANTHROPIC: Profile = Profile {
    formats: Formats::Any,
    never_at_root: &["anyOf", "oneOf", "allOf"],
    names: Some(NameRule { accepts: is_anthropic_name, accepted: "1 to 64 letters, digits, `_`, `.` and `-`" }),
    ..BASE
};

/// What Anthropic's own libraries leave in a strict schema.
pub(super) static ANTHROPIC_STRICT: Profile = Profile {
    keywords: Some(super::strict::ANTHROPIC.keywords),
    formats: Formats::These(super::strict::ANTHROPIC.formats),
    never_at_root: &["anyOf", "oneOf", "allOf"],
    names: ANTHROPIC.names,
    closed: true,
    min_items: 1,
    ..BASE
};

/// Gemini's `parametersJsonSchema` takes a plain JSON Schema.
pub(super) static GEMINI: Profile = Profile {
    names: Some(NameRule {
        accepts: is_gemini_name,
        accepted: "1 to 64 letters, digits and `_`, not beginning with a digit",
    }),
    ..BASE
};

/// What Gemini documents that it follows.
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
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn is_gemini_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}
