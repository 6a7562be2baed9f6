//! Rules and limits for a tool that does not exist: a misspelled name would silently leave the
//! intended tool without its rule.

use super::Host;
use crate::policy::parts;
use crate::registry::Registered;
use crate::session::Session;
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
    /// Returns the names in the host's policy, in its lists of tools ([`HostBuilder::allow`] and
    /// [`HostBuilder::advertise`]) and in its limits for single tools that match no registered
    /// tool, sorted. A tool that is still [compiling](Self::compiling) is not registered.
    ///
    /// [`HostBuilder::allow`]: crate::HostBuilder::allow
    /// [`HostBuilder::advertise`]: crate::HostBuilder::advertise
    #[must_use]
    pub fn unmatched_rules(&self) -> Vec<UnmatchedRule> {
        let of_policy = self.defaults.policy.tool_rules();
        let lists = self.defaults.advertised.names().iter().chain(self.defaults.allowed.names());
        let limits = self.defaults.per_tool.keys().chain(self.dispatcher.tool_timeouts.keys());
        self.unmatched(of_policy.chain(lists.chain(limits).cloned()).collect())
    }

    /// Returns the names in the policy, lists and limits of a session that match no registered
    /// tool, as [`unmatched_rules`](Self::unmatched_rules) does.
    #[must_use]
    pub fn unmatched_rules_of(&self, session: &Session) -> Vec<UnmatchedRule> {
        self.unmatched(session.names_of_tools().collect())
    }

    /// Returns those of these names that match no registered tool.
    fn unmatched(&self, mut names: Vec<String>) -> Vec<UnmatchedRule> {
        let tools = self.registry().tools();
        names.sort();
        names.dedup();
        names.retain(|name| !tools.iter().any(|tool| tool.is_named(name)));
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
    [tool.definition().own_name().to_string(), tool.full_name()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot build its host has failed")]

    use super::*;
    use crate::host::CacheMode;
    use crate::policy::{Mode, Policy};
    use crate::session::{Advertised, Allowed};
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

    #[test]
    fn misspelled_tool_of_a_list_is_reported() {
        let host = Host::builder()
            .cache(CacheMode::Off)
            .tool_timeout("calculate/calculate", Duration::from_secs(1))
            .allow(Allowed::Only(vec!["read_fiel".to_owned(), "files/read_file".to_owned()]))
            .advertise(Advertised::Except(vec!["calc/calculate".to_owned()]));
        let found = host.build().unwrap().unmatched_rules();
        let found: Vec<(&str, Option<&str>)> =
            found.iter().map(|it| (it.tool.as_str(), it.nearest.as_deref())).collect();
        let expected =
            [("calc/calculate", Some("calculate/calculate")), ("read_fiel", Some("read_file"))];
        assert_eq!(found, expected);
    }

    #[test]
    fn misspelled_tool_of_a_session_is_reported() {
        let host = Host::builder().cache(CacheMode::Off).build().unwrap();
        let session = host
            .new_session("s")
            .allow(Allowed::Only(vec!["calculate".to_owned(), "read_fiel".to_owned()]))
            .tool_concurrency("calculat", 1)
            .build();
        let found = host.unmatched_rules_of(&session);
        let found: Vec<&str> = found.iter().map(|it| it.tool.as_str()).collect();
        assert_eq!(found, ["calculat", "read_fiel"]);
        assert!(host.unmatched_rules_of(host.session()).is_empty());
    }
}
