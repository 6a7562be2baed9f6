//! The groups of the suite whose schemas are refused, each with its reason. Every refusal is a
//! decision; none is a wrong answer.

use palisade::tool::schema::SchemaError;

/// The reason why a group's schema is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// `$dynamicRef` and `$dynamicAnchor`: their meaning depends on the path of evaluation, which a
    /// reviewer of a tool cannot see.
    Dynamic,
    /// `$id` below the root moves the base of references, so that the same `$ref` means two things
    /// in one document.
    MovedBase,
    /// Two anchors with the same name, told apart only by an `$id` that is refused as well.
    TwoAnchors,
    /// `$ref` to another document. Documents are never fetched, and none is built in.
    Elsewhere,
    /// `$ref` to the document's own `$id` in place of `#`. It could be resolved; tools do not need
    /// it.
    OwnName,
    /// A custom meta-schema with vocabularies.
    Dialect,
    /// A property name with a control character, which could deceive a reader.
    ControlCharacter,
}

impl Reason {
    /// Returns true if the refusal has this reason.
    pub(crate) fn explains(self, error: &SchemaError) -> bool {
        match self {
            Self::Dynamic => matches!(
                error,
                SchemaError::Keyword { keyword: "$dynamicRef" | "$dynamicAnchor", .. }
            ),
            Self::MovedBase => matches!(error, SchemaError::Keyword { keyword: "$id", .. }),
            Self::TwoAnchors => matches!(error, SchemaError::Keyword { keyword: "$anchor", .. }),
            Self::Elsewhere | Self::OwnName => matches!(error, SchemaError::Reference { .. }),
            Self::Dialect => matches!(error, SchemaError::Dialect { .. }),
            Self::ControlCharacter => matches!(error, SchemaError::Name { .. }),
        }
    }
}

/// File, group, reason.
#[rustfmt::skip]
pub(crate) const REFUSED: &[(&str, &str, Reason)] = &[
    // anchor.json
    ("anchor.json", "Location-independent identifier with absolute URI", Reason::MovedBase),
    ("anchor.json", "Location-independent identifier with base URI change in subschema", Reason::MovedBase),
    ("anchor.json", "same $anchor with different base uri", Reason::MovedBase),
    // defs.json
    ("defs.json", "validate definition against metaschema", Reason::Elsewhere),
    // dependentSchemas.json
    ("dependentSchemas.json", "dependencies with escaped characters", Reason::ControlCharacter),
    // dynamicRef.json
    ("dynamicRef.json", "A $dynamicRef to a $dynamicAnchor in the same schema resource behaves like a normal $ref to an $anchor", Reason::Dynamic),
    ("dynamicRef.json", "A $dynamicRef to an $anchor in the same schema resource behaves like a normal $ref to an $anchor", Reason::Dynamic),
    ("dynamicRef.json", "A $ref to a $dynamicAnchor in the same schema resource behaves like a normal $ref to an $anchor", Reason::Dynamic),
    ("dynamicRef.json", "A $dynamicRef resolves to the first $dynamicAnchor still in scope that is encountered when the schema is evaluated", Reason::Dynamic),
    ("dynamicRef.json", "A $dynamicRef without anchor in fragment behaves identical to $ref", Reason::Dynamic),
    ("dynamicRef.json", "A $dynamicRef with intermediate scopes that don't include a matching $dynamicAnchor does not affect dynamic scope resolution", Reason::Dynamic),
    ("dynamicRef.json", "An $anchor with the same name as a $dynamicAnchor is not used for dynamic scope resolution", Reason::Dynamic),
    ("dynamicRef.json", "A $dynamicRef without a matching $dynamicAnchor in the same schema resource behaves like a normal $ref to $anchor", Reason::Dynamic),
    ("dynamicRef.json", "A $dynamicRef with a non-matching $dynamicAnchor in the same schema resource behaves like a normal $ref to $anchor", Reason::Dynamic),
    ("dynamicRef.json", "A $dynamicRef that initially resolves to a schema with a matching $dynamicAnchor resolves to the first $dynamicAnchor in the dynamic scope", Reason::MovedBase),
    ("dynamicRef.json", "A $dynamicRef that initially resolves to a schema without a matching $dynamicAnchor behaves like a normal $ref to $anchor", Reason::MovedBase),
    ("dynamicRef.json", "multiple dynamic paths to the $dynamicRef keyword", Reason::Dynamic),
    ("dynamicRef.json", "after leaving a dynamic scope, it is not used by a $dynamicRef", Reason::Dynamic),
    ("dynamicRef.json", "strict-tree schema, guards against misspelled properties", Reason::Dynamic),
    ("dynamicRef.json", "tests for implementation dynamic anchor and reference link", Reason::Dynamic),
    ("dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $defs first", Reason::Dynamic),
    ("dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first", Reason::Dynamic),
    ("dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor", Reason::Elsewhere),
    ("dynamicRef.json", "$dynamicRef points to a boolean schema", Reason::Dynamic),
    ("dynamicRef.json", "$dynamicRef skips over intermediate resources - direct reference", Reason::Dynamic),
    // properties.json
    ("properties.json", "properties with escaped characters", Reason::ControlCharacter),
    // ref.json
    ("ref.json", "remote ref, containing refs itself", Reason::Elsewhere),
    ("ref.json", "Recursive references between schemas", Reason::MovedBase),
    ("ref.json", "refs with relative uris and defs", Reason::MovedBase),
    ("ref.json", "relative refs with absolute uris and defs", Reason::MovedBase),
    ("ref.json", "$id must be resolved against nearest parent, not just immediate parent", Reason::MovedBase),
    ("ref.json", "order of evaluation: $id and $ref", Reason::MovedBase),
    ("ref.json", "order of evaluation: $id and $anchor and $ref", Reason::TwoAnchors),
    ("ref.json", "simple URN base URI with $ref via the URN", Reason::OwnName),
    ("ref.json", "URN base URI with URN and JSON pointer ref", Reason::OwnName),
    ("ref.json", "URN base URI with URN and anchor ref", Reason::OwnName),
    ("ref.json", "URN ref with nested pointer ref", Reason::MovedBase),
    ("ref.json", "ref to if", Reason::MovedBase),
    ("ref.json", "ref to then", Reason::MovedBase),
    ("ref.json", "ref to else", Reason::MovedBase),
    ("ref.json", "ref with absolute-path-reference", Reason::MovedBase),
    // refRemote.json
    ("refRemote.json", "remote ref", Reason::Elsewhere),
    ("refRemote.json", "fragment within remote ref", Reason::Elsewhere),
    ("refRemote.json", "anchor within remote ref", Reason::Elsewhere),
    ("refRemote.json", "ref within remote ref", Reason::Elsewhere),
    ("refRemote.json", "base URI change", Reason::MovedBase),
    ("refRemote.json", "base URI change - change folder", Reason::MovedBase),
    ("refRemote.json", "base URI change - change folder in subschema", Reason::MovedBase),
    ("refRemote.json", "root ref in remote ref", Reason::Elsewhere),
    ("refRemote.json", "remote ref with ref to defs", Reason::Elsewhere),
    ("refRemote.json", "Location-independent identifier in remote ref", Reason::Elsewhere),
    ("refRemote.json", "retrieved nested refs resolve relative to their URI not $id", Reason::Elsewhere),
    ("refRemote.json", "remote HTTP ref with different $id", Reason::Elsewhere),
    ("refRemote.json", "remote HTTP ref with different URN $id", Reason::Elsewhere),
    ("refRemote.json", "remote HTTP ref with nested absolute ref", Reason::Elsewhere),
    ("refRemote.json", "$ref to $ref finds detached $anchor", Reason::Elsewhere),
    // unevaluatedItems.json
    ("unevaluatedItems.json", "unevaluatedItems with $dynamicRef", Reason::Dynamic),
    // unevaluatedProperties.json
    ("unevaluatedProperties.json", "unevaluatedProperties with $dynamicRef", Reason::Dynamic),
    // vocabulary.json
    ("vocabulary.json", "schema that uses custom metaschema with with no validation vocabulary", Reason::Dialect),
    ("vocabulary.json", "ignore unrecognized optional vocabulary", Reason::Dialect),
];
