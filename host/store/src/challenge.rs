//! The challenge of a registry that wants a token or credentials (RFC 9110, section 11).

/// The credentials that a registry wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// The user and the password, with each request.
    Basic,
    /// A token of another server.
    Bearer {
        /// The URL of that server.
        realm: String,
        /// The name of the registry there.
        service: Option<String>,
        /// The access that is asked for.
        scope: Option<String>,
    },
}

impl Challenge {
    /// Reads the header `WWW-Authenticate`.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        let mut rest = rest.trim();
        while let Some((key, after)) = rest.split_once('=') {
            let (value, after) = value(after)?;
            match key.trim().to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                "scope" => scope = Some(value),
                _ => {}
            }
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
        Some(Self::Bearer { realm: realm?, service, scope })
    }
}

/// Reads a value, in quotes or not, and returns what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map(|(value, rest)| (value.to_owned(), rest)),
        None => {
            let end = text.find(',').unwrap_or(text.len());
            Some((text[..end].trim().to_owned(), &text[end..]))
        }
    }
}

/// Returns a text as a part of a query.
pub(crate) fn in_query(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = text.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenge_is_read_with_commas_in_its_values() {
        let header = r#"Bearer realm="https://a.org/token",service="a.org",scope="repository:me/git:pull,push""#;
        let wanted = Challenge::Bearer {
            realm: "https://a.org/token".to_owned(),
            service: Some("a.org".to_owned()),
            scope: Some("repository:me/git:pull,push".to_owned()),
        };
        assert_eq!(Challenge::parse(header), Some(wanted));
        assert_eq!(Challenge::parse("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(Challenge::parse("basic"), Some(Challenge::Basic));
    }

    #[test]
    fn broken_challenge_is_none() {
        for header in ["", "Bearer", "Bearer realm=\"x", "Negotiate abc", "Bearer service=\"x\""] {
            assert_eq!(Challenge::parse(header), None, "{header}");
        }
        assert_eq!(in_query("a b&c:/é"), "a%20b%26c%3A%2F%C3%A9");
    }
}
