//! The order of versions.

use semver::Version;

/// Returns true if a version is older than another one. Texts that are no versions have no order.
pub(crate) fn is_older(version: &str, than: &str) -> bool {
    matches!((parse(version), parse(than)), (Some(version), Some(than)) if version < than)
}

/// Returns true if a version does not reach the highest one: it is older, or it is missing or has
/// no order while the highest one has. A rollback could hide behind such a version.
pub(crate) fn falls_below(version: Option<&str>, highest: &str) -> bool {
    let Some(highest) = parse(highest) else { return false };
    version.and_then(parse).is_none_or(|version| version < highest)
}

fn parse(text: &str) -> Option<Version> {
    Version::parse(text.trim().trim_start_matches('v')).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_of_their_numbers() {
        assert!(is_older("1.9.0", "1.10.0") && is_older("v1.0.0-rc.1", "1.0.0"));
        assert!(!is_older("1.10.0", "1.9.0") && !is_older("1.0.0", "1.0.0"));
        assert!(!is_older("latest", "1.0.0") && !is_older("1.0.0", "latest"));
    }

    #[test]
    fn version_without_an_order_does_not_reach_one_with_an_order() {
        for below in [None, Some("latest"), Some("1"), Some("1.9.0")] {
            assert!(falls_below(below, "1.10.0"), "{below:?}");
        }
        assert!(!falls_below(Some("1.10.0"), "1.10.0") && !falls_below(Some("2.0.0"), "1.10.0"));
        assert!(!falls_below(None, "latest") && !falls_below(Some("1.0.0"), "latest"));
    }
}
