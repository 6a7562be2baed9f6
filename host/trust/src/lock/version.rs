//! The order of versions.

use semver::Version;

/// Returns true if a version is older than another one. Texts that are no versions have no order.
pub(crate) fn is_older(version: &str, than: &str) -> bool {
    matches!((parse(version), parse(than)), (Some(version), Some(than)) if version < than)
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
}
