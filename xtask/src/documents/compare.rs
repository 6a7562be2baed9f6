//! Compares the output that a document shows with the output of a command.
//!
//! `…` or `[..]` within a line matches any text, and a line that only contains `…` matches any
//! number of lines. Trailing blanks and trailing blank lines are ignored.

/// Returns true if `actual` matches the pattern `expected`.
pub(super) fn matches(expected: &str, actual: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().map(str::trim_end).collect();
    let actual: Vec<&str> = actual.trim_end().lines().map(str::trim_end).collect();
    lines_match(&expected, &actual)
}

fn lines_match(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((&"…", rest)) => {
            (0..=actual.len()).any(|skipped| lines_match(rest, &actual[skipped..]))
        }
        Some((first, rest)) => match actual.split_first() {
            Some((line, others)) => line_matches(first, line) && lines_match(rest, others),
            None => false,
        },
    }
}

fn line_matches(expected: &str, actual: &str) -> bool {
    let expected = expected.replace("[..]", "…");
    let Some((start, rest)) = expected.split_once('…') else { return expected == actual };
    let (middle, end) = rest.rsplit_once('…').unwrap_or(("", rest));
    let Some(inner) = actual.strip_prefix(start).and_then(|inner| inner.strip_suffix(end)) else {
        return false;
    };
    let found = middle
        .split('…')
        .try_fold(inner, |left, part| left.find(part).map(|at| &left[at + part.len()..]));
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn equal_text_matches_and_other_text_does_not() {
        assert!(matches("a\nb\n", "a \nb\n\n"));
        assert!(!matches("a\nb\n", "a\n"));
        assert!(!matches("a\n", "a\nb\n"));
        assert!(!matches("a\n", "A\n"));
    }

    #[test]
    fn ellipsis_in_a_line_matches_any_text() {
        for expected in ["… took 3 ms", "one …", "one … 3 …", "one [..] ms", "…one took 3 ms…"]
        {
            assert!(matches(expected, "one took 3 ms"), "{expected}");
        }
        for expected in ["two …", "… 4 ms", "one … 4 … ms", "one took 3 ms and … more"] {
            assert!(!matches(expected, "one took 3 ms"), "{expected}");
        }
        assert!(!matches("ab…ba", "aba"), "the two ends do not overlap");
    }

    #[test]
    fn line_of_an_ellipsis_matches_any_lines() {
        assert!(matches("…\nb\n…", "a\na\nb"));
        assert!(!matches("…\nb\n…", "a\nc"));
        assert!(!matches("a\n…\nc", "a\nb"));
    }
}
