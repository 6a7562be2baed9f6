//! Words of a command line that a person pastes into a shell.

/// Quotes a word for a shell, if it needs that. The word is an argument there, whatever it has.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./+:=@%,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes a name that follows a command, so that it is no option of that command.
pub(crate) fn shell_name(name: &str) -> String {
    let end = if name.starts_with('-') { "-- " } else { "" };
    format!("{end}{}", shell_word(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_word("./plug-ins/a_b.c"), "./plug-ins/a_b.c");
        assert_eq!(shell_word("my plugins"), "'my plugins'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word("$(touch x)"), "'$(touch x)'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn name_is_never_an_option() {
        assert_eq!(shell_name("git"), "git");
        assert_eq!(shell_name("--yes"), "-- --yes");
        assert_eq!(shell_name("-y;x"), "-- '-y;x'");
    }
}
