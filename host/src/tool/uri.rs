//! Names of documents: which of them would lead whoever follows them to a file of this machine.

use super::text::is_ignorable;

/// How much of a name is looked at, in characters.
const LOOKED_AT: usize = 256;

/// Whether whoever follows this would open a file with the rights of the user: a `file:` as browsers read it, in any spelling, without what they leave out, and
/// within other schemes, as in `view-source:file:`; a path on a drive; or a name without any scheme, which is a path, of this machine or of another in its network.
pub(crate) fn leads_to_a_file(uri: &str) -> bool {
    let is_read = |character: &char| !character.is_whitespace() && !character.is_control() && !is_ignorable(*character);
    let read: String = uri.chars().filter(is_read).flat_map(char::to_lowercase).take(LOOKED_AT).collect();
    let Some((mut outer, mut rest)) = scheme(&read) else { return true };
    loop {
        if outer == "file" || is_on_a_drive(outer, rest) {
            return true;
        }
        match scheme(rest) {
            Some((inner, more)) => (outer, rest) = (inner, more),
            None => return false,
        }
    }
}

/// What stands before the first colon, where that is a scheme as RFC 3986 (§3.1) has it, and what stands after it.
fn scheme(read: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = read.split_once(':')?;
    let fits = |character: char| character.is_ascii_alphanumeric() || "+-.".contains(character);
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.chars().all(fits))
        .then_some((scheme, rest))
}

/// `c:\x` and `c:/x`, as Windows writes paths. Behind a scheme of one letter there would be two slashes.
fn is_on_a_drive(scheme: &str, rest: &str) -> bool {
    scheme.len() == 1 && (rest.starts_with('\\') || rest.starts_with('/') && !rest.starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_opens_a_file_is_told_from_one_that_does_not() {
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
        ] {
            assert!(leads_to_a_file(file), "{file:?}");
        }
        for other in [
            "note:1",
            "note:/1",
            "https://example.org/file:",
            "https://example.org:80/a",
            "data:text/plain,file:x",
            "a://x",
            "a:1",
            "profile:x",
            "view-source:https://x",
            "urn:isbn:1",
        ] {
            assert!(!leads_to_a_file(other), "{other:?}");
        }
    }
}
