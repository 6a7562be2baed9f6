//! Parses the suite's lists of requirements. Supports only the subset of YAML that these frozen
//! lists use.

/// The scenarios of a revision.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requirements {
    /// The scenarios that a server must pass.
    pub(super) required: Vec<String>,
    /// The scenarios that are run and reported without counting.
    pub(super) unscored: Vec<String>,
}

impl Requirements {
    /// Parses a list.
    pub(super) fn parse(text: &str) -> Self {
        let (mut required, mut unscored) = (Vec::new(), Vec::new());
        let (mut section, mut last) = ("", "");
        for line in text.lines() {
            let words = line.trim();
            if words.is_empty() || words.starts_with('#') {
                continue;
            }
            match (section, words.split_once(": ")) {
                _ if !line.starts_with(' ') => section = words.trim_end_matches(':'),
                ("server", None) => required.extend(words.strip_prefix("- ").map(str::to_owned)),
                ("not_scored", Some(("- scenario", name))) => last = name,
                ("not_scored", Some(("leg", "server"))) => unscored.push(last.to_owned()),
                _ => {}
            }
        }
        Self { required, unscored }
    }

    /// Returns all scenarios for servers, the required ones first.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.required.iter().chain(&self.unscored).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_server_part_of_a_list_is_read() {
        let text = "# server:\n\nserver:\n  - server-stateless\n  # more\n  - tools-list\n\nclient:\n  - tools_call\n  - auth/x\n\n\
                    not_scored:\n  - scenario: auth/y\n    leg: client\n    reason: extension\n  - scenario: tasks-a\n    leg: server\n    \
                    reason: extension\n    note: >-\n      some: words\n";
        let read = Requirements::parse(text);
        assert_eq!(read.required, ["server-stateless", "tools-list"]);
        assert_eq!(read.unscored, ["tasks-a"]);
        assert_eq!(read.all().collect::<Vec<_>>(), ["server-stateless", "tools-list", "tasks-a"]);
    }
}
