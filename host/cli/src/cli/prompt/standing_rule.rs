//! The rule that the answer *always* writes into the user's own configuration file.
//!
//! Only a person at the terminal causes it. The rule binds one tool of one plugin, and is offered
//! only where it would decide, because a rule without effect would mislead the user. The file is
//! never one in the workspace, which tools and other people can change.

use crate::cli::args::Common;
use crate::cli::setup;
use crate::cli::trust;
use crate::cli::user_file::{Patience, make_private, patient, replace, take, target};
use crate::config::{FileConfig, FileOf, Settings};
use palisade::Host;
use palisade::confirm::ConfirmationRequest;
use palisade::internal::open_turn_file;
use palisade::policy::{Mode, Policy, Rule};
use palisade::registry::Registry;
use palisade::tool::text::elided;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

/// Maximum length of a shown rule's name, in characters.
const MAX_NAME: usize = 160;

/// The rules that this run can offer.
pub(in crate::cli) struct StandingRules {
    file: PathBuf,
    registry: Registry,
    policy: Policy,
    /// The names in the rules that exist.
    ruled: BTreeSet<String>,
}

impl StandingRules {
    /// Returns the rules for the tools of a host, in the file of this user. `None` if there is no
    /// such file, or if it lies in the workspace.
    pub(in crate::cli) fn of_host(
        common: &Common,
        settings: &Settings,
        host: &Host,
    ) -> Option<Self> {
        let file = std::path::absolute(setup::user_file(common)).ok()?;
        // The file behind a link to nothing is not known.
        target(&file)?;
        if trust::is_in_workspace(common, &file) {
            return None;
        }
        let policy = settings.policy(&common.workspace);
        let ruled = settings.tools.keys().cloned().collect();
        Some(Self { file, registry: host.registry().clone(), policy, ruled })
    }

    /// Returns the rule for the tool of a request, if no rule for this tool exists and the new one
    /// would decide.
    pub(super) fn of(&self, request: &ConfirmationRequest) -> Option<StandingRule> {
        let tool = self.registry.get(&request.tool).ok()?;
        let (definition, origin) = (tool.definition(), tool.origin());
        // Another plugin may have taken the name since.
        if origin.digest() != request.digest {
            return None;
        }
        if self.ruled.iter().any(|name| tool.is_named(name)) {
            return None;
        }
        let name = tool.full_name();
        let policy = self.policy.clone().with_tool(&name, Mode::Auto);
        let decision = policy.explain(definition, origin);
        let decides = (decision.mode, decision.rule) == (Mode::Auto, Rule::PluginTool);
        let behind = target(&self.file)?;
        decides.then(|| StandingRule { file: self.file.clone(), behind, name })
    }
}

/// A rule that allows one tool of one plugin.
#[derive(Debug, Clone)]
pub(super) struct StandingRule {
    file: PathBuf,
    /// The file that the path leads to. It does not lie in the workspace.
    behind: PathBuf,
    /// The plugin's and the tool's name, as in `files/write_file`.
    name: String,
}

impl fmt::Display for StandingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name of a plugin's file is arbitrary text.
        let name = elided(&self.name, MAX_NAME);
        write!(
            f,
            "adds `\"{name}\" = \"auto\"` to {}",
            elided(&setup::shown(&self.file), usize::MAX)
        )
    }
}

/// The reason why a rule was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RuleError {
    #[error("{file}: {source}", file = setup::shown(path))]
    File { path: PathBuf, source: io::Error },
    #[error("{file} is not a valid configuration: {reason}", file = setup::shown(path))]
    Invalid { path: PathBuf, reason: String },
    /// The file has got a rule for the tool since this run began.
    #[error("{file} has a rule `\"{rule}\" = \"{mode}\"` now, which stays", file = setup::shown(path), rule = elided(rule, MAX_NAME))]
    Ruled { path: PathBuf, rule: String, mode: Mode },
    /// The path leads to another file since the question was asked.
    #[error("{file} leads to another file now, which nothing is added to", file = setup::shown(path))]
    Moved { path: PathBuf },
    /// Another process holds the lock of the file's folder.
    #[error("another process holds the lock of {file}", file = setup::shown(path))]
    Busy { path: PathBuf },
}

impl StandingRule {
    /// Adds the rule to the file, and keeps everything else in it. Returns the words for the
    /// person. Blocks for at most two seconds while another process holds the lock.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, written or understood, or its lock is held. It is unchanged
    /// then.
    pub(super) fn write(&self) -> Result<String, RuleError> {
        self.write_waiting(patient())
    }

    /// Does the same, and calls `wait` after each attempt to take the lock that fails.
    fn write_waiting(&self, wait: impl FnMut() -> Patience) -> Result<String, RuleError> {
        let failed = |source| RuleError::File { path: self.file.clone(), source };
        let target = target(&self.file).ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        if target != self.behind {
            return Err(RuleError::Moved { path: self.file.clone() });
        }
        let folder = target.parent().unwrap_or(Path::new("/"));
        make_private(folder).map_err(failed)?;
        // Two runs that write at once must not lose a rule.
        let lock = open_turn_file(folder).map_err(failed)?;
        match take(&lock, wait).map_err(failed)? {
            Patience::Left => {}
            Patience::Over => return Err(RuleError::Busy { path: self.file.clone() }),
        }
        let former = FileConfig::text(&target, FileOf::User).map_err(failed)?;
        let text = self.added_to(former.as_deref().unwrap_or_default())?;
        replace(&target, &text).map_err(failed)?;
        Ok(format!("added to {}", setup::shown(&self.file)))
    }

    /// Refuses to replace a rule for the tool that was added to the file while the question was
    /// open.
    fn check_unruled(&self, former: &FileConfig) -> Result<(), RuleError> {
        let tool = self.name.rsplit('/').next().unwrap_or(&self.name);
        let rules = [self.name.as_str(), tool].map(|name| Some((name, *former.tools.get(name)?)));
        match rules.into_iter().flatten().find(|(_, mode)| *mode != Mode::Auto) {
            None => Ok(()),
            Some((rule, mode)) => {
                Err(RuleError::Ruled { path: self.file.clone(), rule: rule.to_owned(), mode })
            }
        }
    }

    /// Returns the text of a file with the rule added to it.
    fn added_to(&self, former: &str) -> Result<String, RuleError> {
        let invalid = |reason: String| RuleError::Invalid { path: self.file.clone(), reason };
        let mut document: DocumentMut =
            former.parse().map_err(|error: toml_edit::TomlError| invalid(error.to_string()))?;
        self.check_unruled(&FileConfig::parse(former).map_err(invalid)?)?;
        let tools = implicit(document.as_table_mut(), "confirm")
            .and_then(|confirm| implicit(confirm, "tools"))
            .ok_or_else(|| invalid("`confirm.tools` is not a table".to_owned()))?;
        tools.insert(&self.name, value(Mode::Auto.as_str()));
        let text = document.to_string();
        // This program has to understand the files that it writes.
        let read = FileConfig::parse(&text).map_err(invalid)?;
        match read.tools.get(&self.name) {
            Some(Mode::Auto) => Ok(text),
            _ => Err(invalid("the rule cannot be added to it".to_owned())),
        }
    }
}

/// Returns a table's own table of this name, which is added if it is missing.
fn implicit<'a>(table: &'a mut dyn TableLike, name: &str) -> Option<&'a mut dyn TableLike> {
    let fresh = || {
        let mut fresh = Table::new();
        fresh.set_implicit(true);
        Item::Table(fresh)
    };
    table.entry(name).or_insert_with(fresh).as_table_like_mut()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::fs;

    impl StandingRule {
        /// Returns a rule for tests of the question that offers it.
        pub(in crate::cli::prompt) fn for_test() -> Self {
            rule(Path::new("/nowhere"))
        }
    }

    fn rule(file: &Path) -> StandingRule {
        StandingRule {
            file: file.to_owned(),
            behind: target(file).unwrap(),
            name: "files/write_file".to_owned(),
        }
    }

    #[test]
    fn rule_is_added_and_everything_else_is_kept() {
        let rule = rule(Path::new("/nowhere"));
        let added = "[confirm.tools]\n\"files/write_file\" = \"auto\"\n";
        assert_eq!(rule.added_to("").unwrap(), added);
        let former = "# mine\n[confirm]\nwrite = \"prompt\" # asks\n\n[confirm.tools]\nshell = \"deny\"\n\n[limits]\nmemory = \"64MiB\"\n";
        let text = rule.added_to(former).unwrap();
        let expected = former
            .replace("shell = \"deny\"\n", "shell = \"deny\"\n\"files/write_file\" = \"auto\"\n");
        assert_eq!(text, expected);
        let inline = "confirm = { tools = { shell = \"deny\" } }\n";
        let text = rule.added_to(inline).unwrap();
        assert_eq!(FileConfig::parse(&text).unwrap().tools.len(), 2, "{text}");
        assert!(rule.added_to("confirm = {}\n").is_ok());
    }

    #[test]
    fn rule_that_was_written_meanwhile_stays() {
        let rule = rule(Path::new("/nowhere"));
        for other in ["\"files/write_file\" = \"deny\"", "write_file = \"prompt\""] {
            let refused = rule.added_to(&format!("[confirm.tools]\n{other}\n"));
            assert!(matches!(refused, Err(RuleError::Ruled { .. })), "{other}: {refused:?}");
        }
        assert!(rule.added_to("[confirm.tools]\nread_file = \"deny\"\n").is_ok());
    }

    #[test]
    fn shown_rule_is_one_escaped_line() {
        let name = "x\nAllow this call? \u{1b}[2J/tool".to_owned();
        let shown =
            StandingRule { file: "/home/a\nb".into(), behind: PathBuf::new(), name }.to_string();
        assert!(!shown.contains(['\u{1b}', '\n']) && shown.contains("x\\nAllow"), "{shown:?}");
    }

    #[test]
    fn invalid_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("palisade.toml");
        for former in ["[confirm", "confirm = 1\n", "[unknown]\n"] {
            fs::write(&file, former).unwrap();
            assert!(matches!(rule(&file).write(), Err(RuleError::Invalid { .. })), "{former}");
            assert_eq!(fs::read_to_string(&file).unwrap(), former);
        }
    }

    #[test]
    fn rule_is_written_when_the_other_process_lets_go_and_else_not() {
        use rustix::fs::{FlockOperation, flock};
        let folder = tempfile::tempdir().unwrap();
        let rule = rule(&folder.path().join("palisade.toml"));
        let other = open_turn_file(folder.path()).unwrap();
        // Any user who may read the folder can lock it.
        let folder_itself = fs::File::open(folder.path()).unwrap();
        flock(&folder_itself, FlockOperation::LockExclusive).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        let mut attempts = 0;
        let busy = rule.write_waiting(|| {
            attempts += 1;
            if attempts < 5 { Patience::Left } else { Patience::Over }
        });
        assert!(matches!(busy, Err(RuleError::Busy { .. })), "{busy:?}");
        assert!(attempts == 5 && !rule.file.exists());
        let written = rule.write_waiting(|| {
            flock(&other, FlockOperation::Unlock).unwrap();
            Patience::Left
        });
        assert!(written.is_ok() && rule.file.exists(), "{written:?}");
    }

    #[test]
    fn file_behind_the_users_link_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("dotfiles")).unwrap();
        fs::write(at("dotfiles/own.toml"), "# mine\n").unwrap();
        std::os::unix::fs::symlink(at("dotfiles/own.toml"), at("palisade.toml")).unwrap();
        assert!(rule(&at("palisade.toml")).write().is_ok());
        assert!(at("palisade.toml").symlink_metadata().unwrap().is_symlink());
        let text = fs::read_to_string(at("dotfiles/own.toml")).unwrap();
        assert!(text.contains("# mine") && text.contains("write_file"), "{text}");
        assert!(rule(&at("new/folder/palisade.toml")).write().is_ok(), "missing folders are made");
    }

    #[test]
    fn file_that_leads_elsewhere_since_the_question_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("palisade.toml"), "").unwrap();
        let rule = rule(&at("palisade.toml"));
        fs::write(at("other.toml"), "").unwrap();
        fs::remove_file(at("palisade.toml")).unwrap();
        std::os::unix::fs::symlink(at("other.toml"), at("palisade.toml")).unwrap();
        assert!(matches!(rule.write(), Err(RuleError::Moved { .. })));
        assert_eq!(fs::read_to_string(at("other.toml")).unwrap(), "");
    }
}
