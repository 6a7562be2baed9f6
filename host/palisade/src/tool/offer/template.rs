//! URI templates: level 1 of RFC 6570, and nothing beyond it.

/// The most variables of a template.
const VARIABLES: usize = 16;
/// The letters that no variable has.
const DELIMITERS: [char; 3] = ['/', '?', '#'];

/// A parsed template: literal text with variables in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable,
}

impl Pattern {
    /// Parses a template. It must begin with text and have text between any two variables.
    pub(crate) fn parse(template: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = template;
        let mut variables = 0;
        while let Some((text, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}')?;
            let is_name =
                !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
            variables += 1;
            if text.is_empty() || text.contains('}') || !is_name || variables > VARIABLES {
                return None;
            }
            parts.extend([Part::Text(text.to_owned()), Part::Variable]);
            rest = behind;
        }
        if rest.contains('}') || variables == 0 {
            return None;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Some(Self(parts))
    }

    /// Returns the number of parts: texts and variables.
    pub(super) fn parts(&self) -> usize {
        self.0.len()
    }

    /// Returns true if both templates may expand to one URI: their texts at the beginning and at
    /// the end agree, and they have the same delimiters, which no variable has.
    pub(super) fn may_meet(&self, other: &Self) -> bool {
        let (begin, other_begin) = (text_of(self.0.first()), text_of(other.0.first()));
        let (end, other_end) = (text_of(self.0.last()), text_of(other.0.last()));
        (begin.starts_with(other_begin) || other_begin.starts_with(begin))
            && (end.ends_with(other_end) || other_end.ends_with(end))
            && self.delimiters().eq(other.delimiters())
    }

    /// Returns the delimiters in its texts, in their order.
    fn delimiters(&self) -> impl Iterator<Item = char> {
        let letters = self.0.iter().flat_map(|part| text_of(Some(part)).chars());
        letters.filter(|letter| DELIMITERS.contains(letter))
    }

    /// Returns true if the template can expand to this URI. The cost is the length of the URI plus
    /// that of the template.
    ///
    /// Each text is taken where it occurs first, which misses no match: a variable may begin
    /// earlier, and a text with a delimiter has only one place, since no variable passes one.
    pub(crate) fn fits(&self, uri: &str) -> bool {
        let mut rest = uri;
        let mut is_after_variable = false;
        for (index, part) in self.0.iter().enumerate() {
            let text = match part {
                Part::Variable => {
                    is_after_variable = true;
                    continue;
                }
                Part::Text(text) => text,
            };
            let found = match (is_after_variable, index + 1 == self.0.len()) {
                (false, _) => rest.starts_with(text).then_some(0),
                (true, true) => rest.strip_suffix(text.as_str()).map(str::len),
                (true, false) => find_after_one(rest, text),
            };
            let Some(value) = found.and_then(|at| rest.get(..at)) else { return false };
            if is_after_variable && !is_value(value) {
                return false;
            }
            rest = rest.get(value.len() + text.len()..).unwrap_or_default();
            is_after_variable = false;
        }
        if is_after_variable { is_value(rest) } else { rest.is_empty() }
    }
}

/// Returns the first position of a text behind the first character.
fn find_after_one(rest: &str, text: &str) -> Option<usize> {
    let first = rest.chars().next()?.len_utf8();
    rest.get(first..)?.find(text).map(|at| first + at)
}

/// Returns the text of a part; empty for a variable.
fn text_of(part: Option<&Part>) -> &str {
    match part {
        Some(Part::Text(text)) => text,
        Some(Part::Variable) | None => "",
    }
}

/// Returns true if a variable can have this value.
fn is_value(value: &str) -> bool {
    !value.is_empty() && !value.contains(DELIMITERS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn fits(template: &str, uri: &str) -> bool {
        Pattern::parse(template).unwrap().fits(uri)
    }

    #[test]
    fn variable_matches_one_segment() {
        assert!(fits("test://template/{id}/data", "test://template/123/data"));
        assert!(fits("a:{x}-{y}", "a:1-2-3"));
        assert!(fits("a:{x}", "a:ü"));
        for other in [
            "test://template//data",
            "test://template/1/2/data",
            "test://template/1",
            "test://template/1/data/",
            "",
        ] {
            assert!(!fits("test://template/{id}/data", other), "{other}");
        }
        assert!(!fits("a:{x}", "a:1?b") && !fits("a:{x}", "a:1#b") && !fits("a:{x}", "a:"));
    }

    #[test]
    fn invalid_pattern_is_refused() {
        for wrong in
            ["a:b", "{x}", "a:{x}{y}", "a:{", "a:}", "a:{}", "a:{x*}", "a:{+x}", "a:{x}}", "a:{{x}"]
        {
            assert_eq!(Pattern::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn worst_case_match_is_fast() {
        let template = format!("a:{}", "{x}a".repeat(VARIABLES));
        assert!(!fits(&template, &format!("a:{}b", "a".repeat(2000))));
    }

    /// Matches by trying every length of every variable.
    fn fits_by_trial(parts: &[Part], uri: &str) -> bool {
        match parts {
            [] => uri.is_empty(),
            [Part::Text(text), rest @ ..] => {
                uri.strip_prefix(text.as_str()).is_some_and(|uri| fits_by_trial(rest, uri))
            }
            [Part::Variable, rest @ ..] => (1..=uri.len())
                .take_while(|end| !"/?#".contains(&uri[end - 1..*end]))
                .any(|end| fits_by_trial(rest, &uri[end..])),
        }
    }

    /// Returns all words of up to this many letters.
    fn words(letters: &[&str], most: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..most {
            last = last
                .iter()
                .flat_map(|word| letters.iter().map(move |letter| format!("{word}{letter}")))
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn match_agrees_with_a_trial_of_every_length() {
        let uris = words(&["a", "b", "/"], 6);
        let mut checked = 0;
        for template in words(&["a", "b", "/", "{x}"], 5) {
            let Some(pattern) = Pattern::parse(&template) else { continue };
            checked += 1;
            for uri in &uris {
                let expected = fits_by_trial(&pattern.0, uri);
                assert_eq!(pattern.fits(uri), expected, "{template} {uri}");
            }
        }
        assert!(checked > 300, "{checked}");
    }
}
