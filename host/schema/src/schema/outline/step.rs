//! The connections between subschemas.

use crate::schema::keyword::Reach;

/// The connection from one subschema to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::schema) enum Step {
    /// `$ref`: to the same value.
    Ref,
    /// `properties`: to one member.
    Property(String),
    /// `items`: to the elements from this index on.
    Items(usize),
    /// Another keyword, to the same value.
    Same(&'static str),
    /// Another keyword, to values inside.
    Inside(&'static str),
}

impl Step {
    /// Returns whether both subschemas apply to the same value.
    pub(in crate::schema) fn stays(&self) -> bool {
        matches!(self, Self::Ref | Self::Same(_))
    }

    pub(in crate::schema) fn keyword(&self) -> &'static str {
        match self {
            Self::Ref => "$ref",
            Self::Property(_) => "properties",
            Self::Items(_) => "items",
            Self::Same(keyword) | Self::Inside(keyword) => keyword,
        }
    }

    /// Creates a step with the keyword's static name, since steps outlive the document.
    pub(super) fn of_keyword(keyword: &str, reach: Reach) -> Self {
        const NAMES: [&str; 17] = [
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "dependentSchemas",
            "dependencies",
            "patternProperties",
            "additionalProperties",
            "propertyNames",
            "contains",
            "additionalItems",
            "prefixItems",
            "unevaluatedItems",
            "unevaluatedProperties",
        ];
        // Only the tuple form of draft-07 reaches this.
        let name = if keyword == "items" {
            "a tuple of items"
        } else {
            NAMES.into_iter().find(|name| *name == keyword).unwrap_or("an applicator")
        };
        if reach == Reach::Same { Self::Same(name) } else { Self::Inside(name) }
    }
}
