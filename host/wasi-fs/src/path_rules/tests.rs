//! Tests of patterns, without files.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::{Duration, Instant};

use super::*;

fn rules(allow: Option<&[&str]>, deny: &[&str]) -> Result<PathRules, PathRuleError> {
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    PathRules::new(allow.map(owned).as_deref(), &owned(deny))
}

fn denied(deny: &[&str], path: &str) -> bool {
    rules(None, deny).unwrap().standing(path) == Standing::Denied
}

#[test]
fn a_denied_pattern_covers_the_path_and_everything_below_it() {
    for (pattern, path) in [
        (".env", ".env"),
        ("**/.env*", "a/b/.env.local"),
        ("**/.env*", ".env/deep/file"),
        ("secrets/**", "secrets"),
        ("secrets/**", "secrets/a/b"),
        ("secrets/", "secrets/a"),
        ("a/*/c", "a/b/c/d"),
        ("**", "anything"),
        ("*.{pem,key}", "x.key"),
    ] {
        assert!(denied(&[pattern], path), "{pattern} {path}");
    }
    for (pattern, path) in [
        (".env", "a/.env"),
        (".env", ".environment"),
        ("secrets/**", "secret"),
        ("secrets/**", "a/secrets"),
        ("a/*/c", "a/b/d/c"),
        ("**", ""),
    ] {
        assert!(!denied(&[pattern], path), "{pattern} {path}");
    }
}

#[test]
fn folding_a_path_takes_nothing_from_what_is_denied() {
    for (pattern, path) in [
        ("[!A-Z]*", "abc"),
        ("[!a]*", "Abc"),
        ("?????", "\u{17f}abc"),
        ("stra\u{df}e/**", "STRA\u{1e9e}E/k"),
        ("STRA\u{1e9e}E/**", "strasse/k"),
        ("[!A-Z]*", "abc."),
    ] {
        assert!(denied(&[pattern], path), "{pattern} {path}");
    }
    assert!(!denied(&["[!a]*"], "abc") && !denied(&["?????"], "abc"));
}

#[test]
fn a_denied_name_is_recognised_in_every_spelling_of_a_file_system() {
    for path in [
        "SECRETS/a",
        "Secret\u{17f}/a",
        "se\u{200d}crets/a",
        "secrets./a",
        "secrets ::$DATA",
        "SECRET~1/a",
        "other/x~12.txt",
    ] {
        assert!(denied(&["secrets/**"], path), "{path}");
    }
    for path in ["secret\u{301}s/a", "file.~1~", "draft~", "~1", "a-long-name~1"] {
        assert!(!denied(&["secrets/**"], path), "{path}");
    }
}

#[test]
fn only_allowed_paths_and_the_directories_on_the_way_to_them_stand() {
    let rules = rules(Some(&["src/**", "docs/*/a.md", "lib"]), &[]).unwrap();
    for path in ["src", "src/a/b", "docs/x/a.md", "lib", "lib/deep/x"] {
        assert_eq!(rules.standing(path), Standing::Permitted, "{path}");
    }
    for path in ["", "docs", "docs/x"] {
        assert_eq!(rules.standing(path), Standing::Way, "{path}");
    }
    // An allowed pattern is compared exactly, because another spelling may be another file.
    for path in ["a", "SRC/a", "docs/x/b.md", "docs/x/y/a.md", "libs"] {
        assert_eq!(rules.standing(path), Standing::Denied, "{path}");
    }
}

#[test]
fn any_directory_may_lead_to_a_name_at_any_depth() {
    let rules = rules(Some(&["**/*.rs"]), &["target/**"]).unwrap();
    assert_eq!(rules.standing("a/b"), Standing::Way);
    assert_eq!(rules.standing("a/b/c.rs"), Standing::Permitted);
    assert_eq!(rules.standing("target/c.rs"), Standing::Denied);
}

#[test]
fn of_joined_rules_each_has_to_permit_a_path() {
    let own = rules(Some(&["src/**"]), &[]).unwrap();
    let other = rules(Some(&["src/a/**", "docs/**"]), &["**/x"]).unwrap();
    let both = own.and(&other);
    assert_eq!(both.standing("src/a/b"), Standing::Permitted);
    assert_eq!(both.standing("src"), Standing::Way);
    for path in ["src/b", "docs/a", "src/a/x"] {
        assert_eq!(both.standing(path), Standing::Denied, "{path}");
    }
    assert!(own.and(&PathRules::default()).permits("src/b"));
}

#[test]
fn no_rule_permits_everything_and_an_empty_list_allows_nothing() {
    let none = rules(None, &[]).unwrap();
    assert!(none.is_empty() && none.permits("a/b"));
    let nothing = rules(Some(&[]), &[]).unwrap();
    assert!(!nothing.is_empty() && !nothing.permits("a"));
}

#[test]
fn a_bad_pattern_is_refused_with_its_reason() {
    for (pattern, reason) in [
        ("", "empty"),
        ("/", "empty"),
        ("/etc", "absolute"),
        ("a/../b", "`..`"),
        ("./a", "`.`"),
        ("a//b", "empty name"),
        ("a\\b", "separated by `/`"),
        ("{a/b,c}", "one pattern for each"),
        ("[a", "character class"),
        ("{a", "alternate"),
        ("[\u{e9}]", "beyond ASCII"),
    ] {
        for refused in [rules(None, &[pattern]), rules(Some(&[pattern]), &[])] {
            let error = refused.expect_err(pattern).to_string();
            assert!(error.contains(reason), "{pattern}: {error}");
        }
    }
}

#[test]
fn patterns_are_bounded_in_number_and_length() {
    let longest = "x".repeat(PathRules::PATTERN_BYTES);
    let longer = longest.clone() + "x";
    assert!(rules(None, &[&longest]).is_ok());
    assert!(rules(None, &[&longer]).unwrap_err().to_string().contains("longer than 256 bytes"));
    let most = vec!["**/*a*b*c?"; PathRules::PATTERNS];
    assert!(rules(Some(&most), &most).is_ok());
    let more = vec!["a"; PathRules::PATTERNS + 1];
    assert_eq!(rules(None, &more).unwrap_err(), PathRuleError::Many { count: 129 });
}

fn denying(patterns: impl Iterator<Item = String>) -> Result<PathRules, PathRuleError> {
    PathRules::new(None, &patterns.collect::<Vec<_>>())
}

#[test]
fn list_of_many_ordinary_patterns_is_accepted() {
    let endings = (0..100).map(|at| format!("**/*.ending{at}"));
    let directories = (0..27).map(|at| format!("packages/*/private-{at}/**"));
    let rules = denying(endings.chain(directories).chain(["**/.env*".to_owned()])).unwrap();
    assert!(rules.permits("packages/a/public/file.txt"));
    for denied in ["a/b.ending99", "packages/x/private-26/y/z", "deep/er/.env.local"] {
        assert!(!rules.permits(denied), "{denied}");
    }
}

/// An automaton for these has a state for each subset of the places where the pattern may stand.
#[test]
fn patterns_that_need_much_memory_are_refused() {
    let one = format!("**/*a{}zq", "?".repeat(180));
    let refused = denying(std::iter::once(one)).unwrap_err().to_string();
    assert!(refused.contains("it needs too much memory; write `*`"), "{refused}");
    let many = (0..128).map(|at| format!("**/*{at}a*b*c*{at}d*e*f*{at}"));
    let refused = denying(many).unwrap_err().to_string();
    assert!(refused.contains("its patterns need too much memory together"), "{refused}");
}

/// The longest path in which each byte may begin a match.
#[test]
fn comparison_takes_a_short_time_for_any_path() {
    let few = (0..6).map(|at| format!("**/*a??????{at}*b"));
    let rules = denying(few).unwrap();
    let path = vec!["ab".repeat(125); 16].join("/");
    let start = Instant::now();
    (0..100).for_each(|_| assert!(rules.permits(&path)));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}
