//! Rules and limits for a tool that does not exist: a misspelled name would silently leave the
//! intended tool without its rule.

use super::Host;
use crate::policy::parts;
use crate::registry::Registered;
use crate::tool::nearest_names;

/// A rule or limit of the builder for a tool that is not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedRule {
    /// The name of the tool, as it was given.
    pub tool: String,
    /// The most similar name of a registered tool, if there is one.
    pub nearest: Option<String>,
}

impl Host {
    /// Returns the names in the policy and in the limits for single tools that match no registered
    /// tool, sorted. A tool that is still [compiling](Self::compiling) is not registered.
    #[must_use]
    pub fn unmatched_rules(&self) -> Vec<UnmatchedRule> {
        let tools = self.registry().tools();
        let of_policy = self.defaults.policy.tool_rules();
        let times = self.dispatcher.tool_timeouts.keys();
        let mut names: Vec<String> =
            of_policy.chain(self.defaults.per_tool.keys().chain(times).cloned()).collect();
        names.sort();
        names.dedup();
        names.retain(|name| !tools.iter().any(|tool| is_of(name, tool)));
        let known: Vec<[String; 2]> = tools.iter().map(|tool| names_of(tool)).collect();
        let nearest = |name: &str| {
            let form = usize::from(parts(name).0.is_some());
            let known = known.iter().filter_map(|names| names.get(form)).map(String::as_str);
            nearest_names(name, known).into_iter().next()
        };
        let unmatched = names.into_iter();
        unmatched.map(|tool| UnmatchedRule { nearest: nearest(&tool), tool }).collect()
    }

    /// Warns of the rules that match no tool.
    pub(super) fn warn_of_unmatched_rules(&self) {
        for UnmatchedRule { tool, nearest } in self.unmatched_rules() {
            let nearest = nearest.map(|name| format!("; did you mean `{name}`?"));
            let nearest = nearest.unwrap_or_default();
            tracing::warn!(target: UNMATCHED, "a rule names `{tool}`, and there is no such tool{nearest}");
        }
    }
}

/// The log target of these warnings, so that a program that reports its rules itself can filter
/// them out.
const UNMATCHED: &str = "palisade::unmatched_rules";

/// Returns the names of a tool in rules: its own, and the one with its plugin.
fn names_of(tool: &Registered) -> [String; 2] {
    let name = tool.definition().name().to_string();
    let full = format!("{}/{name}", tool.origin().rule_name());
    [name, full]
}

fn is_of(name: &str, tool: &Registered) -> bool {
    names_of(tool).iter().any(|own| own == name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot build its host has failed")]

    use super::*;
    use crate::host::CacheMode;
    use crate::policy::{Mode, Policy};
    use std::time::Duration;

    #[test]
    fn misspelled_tool_is_reported_with_the_nearest_name() {
        let policy = Policy::default()
            .with_tool("delete_fiel", Mode::Deny)
            .with_tool("files/write_file", Mode::Auto)
            .with_tool("file/read_file", Mode::Deny)
            .with_tool("calculate", Mode::Auto);
        let host = Host::builder()
            .cache(CacheMode::Off)
            .policy(policy)
            .tool_concurrency("sarch_files", 1)
            .tool_timeout("nothing_of_the_kind", Duration::from_secs(1));
        let host = host.build().unwrap();
        let found = host.unmatched_rules();
        let found: Vec<(&str, Option<&str>)> =
            found.iter().map(|it| (it.tool.as_str(), it.nearest.as_deref())).collect();
        let expected = [
            ("delete_fiel", Some("delete_file")),
            ("file/read_file", Some("files/read_file")),
            ("nothing_of_the_kind", None),
            ("sarch_files", Some("search_files")),
        ];
        assert_eq!(found, expected);
    }
}
