//! The name of a plugin, which follows from the name of its file.

use std::path::Path;

/// Returns the name of the plugin in a file: the file's name without `.wasm`, and without the
/// digest of an installed plugin, as in `NAME@DIGEST.wasm` with 64 hexadecimal digits. With the
/// digest in its name, a new version never has the file of the old one.
#[must_use]
pub fn name_of_file(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_digest = |text: &str| {
        text.len() == 64
            && text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
    };
    match stem.rsplit_once('@') {
        Some((name, digest)) if !name.is_empty() && is_digest(digest) => name.to_owned(),
        _ => stem.into_owned(),
    }
}

/// The longest name of a plugin, in bytes.
pub(super) const LONGEST_NAME: usize = 128;

/// Refuses a name that a person could take for another one in a rule, a grant or a question: it may
/// have no space, and no letter that looks like one of another alphabet.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte);
    match (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_allowed) {
        true => Ok(()),
        false => Err(format!(
            "a plugin has the name of its file, which may have 1 to {LONGEST_NAME} of the letters \
             `a` to `z` in either case, digits, `-`, `_`, `.`, `@` and `+`; rename the file"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Digest;

    #[test]
    fn name_ends_before_a_whole_digest_alone() {
        let digest = Digest::of(b"plugin").hex();
        let name = |file: String| name_of_file(Path::new(&file));
        assert_eq!(name(format!("/p/a@b@{digest}.wasm")), "a@b");
        for stem in ["git@1.2", "git@", &format!("@{digest}"), &format!("git@{}", &digest[1..])] {
            assert_eq!(name(format!("{stem}.wasm")), *stem);
        }
    }

    #[test]
    fn name_has_one_spelling() {
        for name in ["files", "Files-2", "git@1.2", "a_b+c", &"n".repeat(LONGEST_NAME)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "files ", "f\u{456}les", "a\nb", "mcp/git", &"n".repeat(LONGEST_NAME + 1)]
        {
            let refused = check_name(name).is_err_and(|why| why.ends_with("rename the file"));
            assert!(refused, "{name}");
        }
    }
}
