//! Detects document URIs that resolve to a local file.

use super::text::is_ignorable;

/// Returns true if a client that opens this URI would read a file with the user's rights: a `file:`
/// URI in any spelling, also nested as in `view-source:file:` or `git+file:`; a drive path, which
/// looks like a one-letter scheme; or a text without a scheme, which is a local or network path.
/// The URI is tested as given and as browsers read it, with ignorable characters removed.
pub(crate) fn leads_to_a_file(uri: &str) -> bool {
    let stands = uri.to_lowercase();
    let is_read = |character: &char| {
        !character.is_whitespace() && !character.is_control() && !is_ignorable(*character)
    };
    let read: String = stands.chars().filter(is_read).collect();
    // Surrounding blanks are never part of a URI.
    [stands.trim(), &read].into_iter().any(leads)
}

fn leads(uri: &str) -> bool {
    let Some((mut outer, mut rest)) = scheme(uri) else { return true };
    if outer.len() == 1 {
        return true;
    }
    loop {
        // Inside another scheme a single letter may also be an ordinary part of the URI.
        let is_drive = outer.len() == 1 && rest.starts_with(['/', '\\']);
        if is_drive || outer.split('+').any(|part| part == "file") {
            return true;
        }
        match scheme(rest) {
            Some((inner, more)) => (outer, rest) = (inner, more),
            None => return false,
        }
    }
}

/// Splits off the scheme before the first colon if it is valid by RFC 3986, §3.1.
fn scheme(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    let fits = |character: char| character.is_ascii_alphanumeric() || "+-.".contains(character);
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.chars().all(fits))
        .then_some((scheme, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uri_is_recognised() {
        for file in [
            "file:///etc/passwd",
            "FILE:/x",
            " f\ti\nle:x",
            "\u{feff}file:x",
            "\u{a0}fi\u{200b}le:x",
            "view-source:file:///x",
            "view-source:view-source:FILE:x",
            "jar:file:///x!/y",
            "blob:file:///x",
            "/etc/passwd",
            "//host/share",
            "\\\\host\\share",
            "~/.ssh/id_rsa",
            "$HOME/.ssh/id_rsa",
            "../../etc/passwd",
            ".env",
            "notes/1",
            "",
            "C:\\x",
            "c:/x",
            "c://x",
            "c:x",
            "git+file:///x",
            "a b:/../../x",
            "view-source:c:/x",
            &("view-source:".repeat(100) + "file:///x"),
        ] {
            assert!(leads_to_a_file(file), "{file:?}");
        }
        for other in [
            "note:1",
            "note:/1",
            "https://example.org/file:",
            "https://example.org:80/a",
            "data:text/plain,file:x",
            "ab://x",
            " note:1 ",
            "profile:x",
            "view-source:https://x",
            "urn:isbn:1",
            "note:a:1",
        ] {
            assert!(!leads_to_a_file(other), "{other:?}");
        }
    }
}
