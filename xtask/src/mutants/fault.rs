//! A fault: one small change at one place of the sources, as cargo-mutants finds them.

use anyhow::Context as _;
use serde_json::Value;

/// One fault.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// What switches it on; from 1.
    pub(super) number: usize,
    /// File, line, column and change.
    pub(super) name: String,
    pub(super) file: String,
    pub(super) site: Site,
    /// What stands in place of the operator, the guard or the body.
    pub(super) replacement: String,
}

/// Where it is, and what it changes: at one place begin an expression and its first operator alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) kind: Kind,
    /// From 1.
    pub(super) line: usize,
    /// In characters, from 1.
    pub(super) column: usize,
}

/// What a fault changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A function answers at once.
    Body,
    /// An operator between two expressions is another one.
    Binary,
    /// An operator before an expression is not there.
    Unary,
    /// An arm of a `match` is not there.
    Arm,
    /// A guard of an arm always says yes, or no.
    Guard,
    /// A field keeps the value that the rest of its structure has.
    Field,
}

impl Kind {
    fn of(genre: &str) -> Option<Self> {
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

/// What `cargo mutants --list --json` says, numbered in its order.
pub(super) fn listed(json: &[u8]) -> anyhow::Result<Vec<Fault>> {
    let all: Vec<Value> =
        serde_json::from_slice(json).context("what cargo-mutants lists is no list")?;
    let faults = all.iter().enumerate();
    faults
        .map(|(n, fault)| read(n + 1, fault).with_context(|| format!("an unknown fault: {fault}")))
        .collect()
}

fn read(number: usize, fault: &Value) -> Option<Fault> {
    let text = |key: &str| Some(fault.get(key)?.as_str()?.to_owned());
    let start = |key: &str| usize::try_from(fault.pointer("/span/start")?.get(key)?.as_u64()?).ok();
    let site =
        Site { kind: Kind::of(&text("genre")?)?, line: start("line")?, column: start("column")? };
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
        let faults = listed(json).expect("a list");
        assert_eq!(faults.len(), 1);
        assert_eq!((faults[0].number, faults[0].replacement.as_str()), (1, ">"));
        assert_eq!(faults[0].site, Site { kind: Kind::Binary, line: 2, column: 7 });
        assert!(listed(br#"[{"file": "a.rs", "genre": "Unheard"}]"#).is_err());
    }
}
