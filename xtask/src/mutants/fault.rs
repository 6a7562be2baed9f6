//! A fault: one small change at one place of the sources, as listed by cargo-mutants.

use anyhow::Context as _;
use serde_json::Value;

/// One fault.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// The number that switches it on; starts at 1.
    pub(super) number: usize,
    /// The name: file, line, column and change.
    pub(super) name: String,
    pub(super) file: String,
    pub(super) site: Site,
    /// The replacement of the operator, the guard or the body.
    pub(super) replacement: String,
}

/// The place of a fault, with its kind: an expression and its first operator may start at the same
/// place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) kind: Kind,
    /// The line; starts at 1.
    pub(super) line: usize,
    /// The column, in characters; starts at 1.
    pub(super) column: usize,
}

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A function returns a constant at once.
    Body,
    /// A binary operator is replaced.
    Binary,
    /// A unary operator is deleted.
    Unary,
    /// An arm of a `match` is deleted.
    Arm,
    /// A guard of an arm is always true, or always false.
    Guard,
    /// A field of a struct expression takes its value from the base.
    Field,
}

impl Kind {
    fn parse(genre: &str) -> Option<Self> {
        Some(match genre {
            "FnValue" => Self::Body,
            "BinaryOperator" => Self::Binary,
            "UnaryOperator" => Self::Unary,
            "MatchArm" => Self::Arm,
            "MatchArmGuard" => Self::Guard,
            "StructField" => Self::Field,
            _ => return None,
        })
    }
}

/// Parses the output of `cargo mutants --list --json`, and numbers the faults in its order.
pub(super) fn parse(json: &[u8]) -> anyhow::Result<Vec<Fault>> {
    let all: Vec<Value> =
        serde_json::from_slice(json).context("the output of cargo-mutants is not a list")?;
    let faults = all.iter().enumerate();
    faults
        .map(|(n, fault)| read(n + 1, fault).with_context(|| format!("an unknown fault: {fault}")))
        .collect()
}

fn read(number: usize, fault: &Value) -> Option<Fault> {
    let text = |key: &str| Some(fault.get(key)?.as_str()?.to_owned());
    let start = |key: &str| usize::try_from(fault.pointer("/span/start")?.get(key)?.as_u64()?).ok();
    let site = Site {
        kind: Kind::parse(&text("genre")?)?,
        line: start("line")?,
        column: start("column")?,
    };
    Some(Fault {
        number,
        name: text("name")?,
        file: text("file")?,
        site,
        replacement: text("replacement")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_is_read_with_place_and_change() {
        let json = br#"[{"file": "a.rs", "name": "a.rs:2:7: replace < with > in f", "genre": "BinaryOperator",
            "replacement": ">", "span": {"start": {"line": 2, "column": 7}, "end": {"line": 2, "column": 8}}}]"#;
        let faults = parse(json).expect("a list");
        assert_eq!(faults.len(), 1);
        assert_eq!((faults[0].number, faults[0].replacement.as_str()), (1, ">"));
        assert_eq!(faults[0].site, Site { kind: Kind::Binary, line: 2, column: 7 });
        assert!(parse(br#"[{"file": "a.rs", "genre": "Unknown"}]"#).is_err());
    }
}
