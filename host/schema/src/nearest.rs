//! Suggests existing names similar to a name that does not exist.

use crate::text::cut;

/// The maximum number of suggestions.
const PROPOSALS: usize = 3;
/// The minimum similarity of a suggestion (Jaro-Winkler, 0 to 1): `raed_file` is close enough to
/// `read_file`, `sum` is not to `shell`.
const ALIKE: f64 = 0.8;

/// Returns up to three of `names` that are similar to `name`, the most similar first.
#[must_use]
pub fn nearest_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    // Names that differ only in case or in word separators count as equal.
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    let wanted = plain(cut(name, 64));
    let likeness = |known: &str| strsim::jaro_winkler(&wanted, &plain(known));
    let mut scored: Vec<(f64, &str)> =
        names.map(|known| (likeness(known), known)).filter(|(score, _)| *score >= ALIKE).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(PROPOSALS).map(|(_, known)| known.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_finds_the_intended_name() {
        let names = ["read_file", "write_file", "calculate", "list_dir"];
        for slip in ["raed_file", "readfile", "read-file", "READ_FILE", "read_fil"] {
            assert_eq!(
                nearest_names(slip, names.into_iter()).first().map(String::as_str),
                Some("read_file"),
                "{slip}"
            );
        }
    }

    #[test]
    fn word_separators_are_equivalent() {
        let names = ["openai", "openai-responses", "anthropic"];
        for slip in ["OpenAI_Responses", "openai responses", "openai-respones"] {
            let nearest = nearest_names(slip, names.into_iter());
            assert_eq!(nearest.first().map(String::as_str), Some("openai-responses"), "{slip}");
        }
    }

    #[test]
    fn dissimilar_name_has_no_suggestion() {
        assert_eq!(
            nearest_names("zzz", ["read_file", "calculate"].into_iter()),
            Vec::<String>::new()
        );
        assert_eq!(nearest_names("", ["read_file"].into_iter()), Vec::<String>::new());
    }
}
