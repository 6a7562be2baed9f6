//! The refusals of a guest's file system, as the result of a call reports them.

use crate::tool::{Advice, ErrorKind, PermissionReason};
use crate::workspace::advice;
use palisade_wasi_fs::Refusal;

/// Returns the error of a call that failed because of a refusal. `said` is the message of the tool.
pub(crate) fn denied(refusal: &Refusal, said: &str) -> ErrorKind {
    ErrorKind::PermissionDenied {
        reason: reason(refusal),
        message: format!("{refusal}; the tool says: {said}"),
        advice: advice_on(refusal),
        tree: refusal.tree().cloned(),
    }
}

fn reason(refusal: &Refusal) -> PermissionReason {
    match refusal {
        Refusal::Excluded(_) | Refusal::Aliased => PermissionReason::PathRules,
        Refusal::Protected(_)
        | Refusal::Hidden(_)
        | Refusal::Bare
        | Refusal::Repository { .. }
        | Refusal::Crowded { .. } => PermissionReason::Protected,
        Refusal::Unmounted
        | Refusal::Escape
        | Refusal::ReadOnly
        | Refusal::SpecialFile
        | Refusal::Kernel
        | Refusal::Symlink
        | Refusal::HardLinked
        | Refusal::HardLink
        | Refusal::Moved => PermissionReason::Sandbox,
    }
}

/// Returns the setting by which an operator can allow the operation.
fn advice_on(refusal: &Refusal) -> Option<Advice> {
    match refusal {
        Refusal::HardLinked | Refusal::Aliased => Some(advice::on_hard_links()),
        Refusal::Excluded(path) => Some(advice::on_path_rules(path)),
        Refusal::Hidden(_) => Some(advice::on_hidden()),
        Refusal::Protected(_)
        | Refusal::Bare
        | Refusal::Repository { .. }
        | Refusal::Crowded { .. }
        | Refusal::Unmounted
        | Refusal::Escape
        | Refusal::ReadOnly
        | Refusal::SpecialFile
        | Refusal::Kernel
        | Refusal::Symlink
        | Refusal::HardLink
        | Refusal::Moved => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reason, whether there is advice, and the tree of an error.
    fn parts(refusal: &Refusal) -> (PermissionReason, bool, Option<String>) {
        let kind = denied(refusal, "no");
        assert!(kind.to_string().starts_with(&format!("{refusal}; the tool says: no")), "{kind}");
        match kind {
            ErrorKind::PermissionDenied { reason, advice, tree, .. } => {
                (reason, advice.is_some(), tree.map(|tree| tree.to_string()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_operator_is_advised_where_a_setting_allows_the_operation() {
        use PermissionReason::{PathRules, Protected, Sandbox};
        let own = |name: &str| Some(name.to_owned());
        let repository = Refusal::Repository { name: "HEAD".into(), beside: "refs".into() };
        for (refusal, expected) in [
            (Refusal::Protected("a".into()), (Protected, false, own("a"))),
            (Refusal::Hidden("b".into()), (Protected, true, own("b"))),
            (Refusal::Excluded("c".into()), (PathRules, true, None)),
            (Refusal::Aliased, (PathRules, true, None)),
            (Refusal::Bare, (Protected, false, None)),
            (repository, (Protected, false, None)),
            (Refusal::Crowded { entries: 9 }, (Protected, false, None)),
            (Refusal::Unmounted, (Sandbox, false, None)),
            (Refusal::Escape, (Sandbox, false, None)),
            (Refusal::ReadOnly, (Sandbox, false, None)),
            (Refusal::SpecialFile, (Sandbox, false, None)),
            (Refusal::Kernel, (Sandbox, false, None)),
            (Refusal::Symlink, (Sandbox, false, None)),
            (Refusal::HardLinked, (Sandbox, true, None)),
            (Refusal::HardLink, (Sandbox, false, None)),
            (Refusal::Moved, (Sandbox, false, None)),
        ] {
            assert_eq!(parts(&refusal), expected, "{refusal:?}");
        }
    }
}
