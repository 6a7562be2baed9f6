//! URI templates: level 1 of RFC 6570, and nothing beyond it.

/// The most variables of a template.
const VARIABLES: usize = 16;

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

    /// Returns true if the template can expand to this URI. The cost is the number of parts times
    /// the length of the URI.
    pub(crate) fn fits(&self, uri: &str) -> bool {
        let bytes = uri.as_bytes();
        // The offsets at which the parts so far may end.
        let mut ends = vec![false; bytes.len() + 1];
        ends[0] = true;
        for part in &self.0 {
            ends = match part {
                Part::Text(text) => after_text(&ends, bytes, text.as_bytes()),
                Part::Variable => after_variable(&ends, bytes),
            };
        }
        ends[bytes.len()]
    }
}

fn after_text(ends: &[bool], bytes: &[u8], text: &[u8]) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    for (at, _) in ends.iter().enumerate().filter(|(_, is_end)| **is_end) {
        if bytes[at..].starts_with(text) {
            next[at + text.len()] = true;
        }
    }
    next
}

fn after_variable(ends: &[bool], bytes: &[u8]) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    let mut is_within = false;
    for (at, byte) in bytes.iter().enumerate() {
        is_within = (is_within || ends[at]) && !b"/?#".contains(byte);
        next[at + 1] = is_within;
    }
    next
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
}
