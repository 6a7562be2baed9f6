//! The dispatcher, which holds everything that a call needs besides its session.

use super::call_recorder::CallRecorder;
use super::call_threads::CallThreads;
use super::errors::{not_approved, not_bound};
use super::input::names_paths;
use super::late_rules::LateRules;
use crate::confirm::Confirmer;
use crate::events::Events;
use crate::execution::{ServerPlace, ToolTime};
use crate::plugins::Unapproved;
use crate::registry::{Origin, Registered, Registry, ToolNotFound};
use crate::sandbox::{Limits, PluginSettings, limits};
use crate::session::Floor;
use crate::session::Session;
use crate::tool::error::named;
use crate::tool::{Digest, ErrorKind, Places, SideEffects};
use crate::workspace::{Commands, Protection, Workspace};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Finds the plugin without approval that has a tool of this name.
pub(crate) type FindUnapproved = dyn Fn(&str) -> Option<Unapproved> + Send + Sync;

/// Returns the refusal of loaded bytes whose approval was revoked since. It reads files.
pub(crate) type AskAgain = dyn Fn(Digest) -> Option<Unapproved> + Send + Sync;

/// The dispatcher: everything that a call needs besides its session. Clones share it.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) registry: Registry,
    /// Returns the names of the plugins that are still compiling, whose tools are not known yet.
    pub(crate) compiling: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Returns the plugin without approval that has a tool.
    pub(crate) unapproved: Arc<FindUnapproved>,
    /// Asks again for the approval of a plugin's bytes, if the host has approvals.
    pub(crate) revoked_since: Option<Arc<AskAgain>>,
    pub(crate) confirmer: Arc<dyn Confirmer>,
    /// The policy and the tools that bind the sessions that this host has not begun.
    pub(crate) floor: Arc<Floor>,
    pub(crate) events: Events,
    pub(crate) recorder: Option<Arc<dyn CallRecorder>>,
    pub(crate) limits: Limits,
    pub(crate) tool_timeouts: Arc<BTreeMap<String, ToolTime>>,
    pub(crate) confirmation_timeout: Duration,
    /// The host's own threads, if calls run on them.
    pub(crate) threads: Option<Arc<CallThreads>>,
    /// Other threads, for the calls that calls on those threads make.
    pub(crate) nested_threads: Option<Arc<CallThreads>>,
    pub(crate) rules: Arc<Protection>,
    /// Whether commands run that path rules do not bind.
    pub(crate) commands: Commands,
    /// Adds rules for paths that must be hidden from tools since the host started.
    pub(crate) late_rules: Arc<dyn LateRules>,
    pub(crate) places: Arc<Places>,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("registry", &self.registry)
            .field("limits", &self.limits)
            .field("confirmation_timeout", &self.confirmation_timeout)
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// Returns the error of a call whose tool is not registered.
    pub(super) fn not_found(&self, missing: &ToolNotFound) -> ErrorKind {
        if let Some(unapproved) = (self.unapproved)(missing.name()) {
            return not_approved(missing.name(), &unapproved);
        }
        ErrorKind::NotFound {
            tool: named(missing.name()).to_owned(),
            nearest: missing.nearest().to_vec(),
            compiling: (self.compiling)(),
        }
    }

    /// Removes the similar names that the session does not list.
    pub(super) fn without_unlisted(
        &self,
        session: &Session,
        missing: &ToolNotFound,
    ) -> ToolNotFound {
        let is_listed = |name: &&String| {
            self.registry.get(name).is_ok_and(|tool| self.floor.lists(session, &tool))
        };
        let names = missing.nearest().iter().filter(is_listed).cloned().collect();
        ToolNotFound::with(missing.name(), names)
    }

    /// Returns the error for a tool that the session presents by its programs alone: it names them.
    pub(super) fn not_presented(&self, session: &Session, tool: &Registered) -> ToolNotFound {
        let tools = self.registry.tools().into_iter();
        let presented = tools.filter(|tool| self.floor.lists(session, tool));
        let names = presented.map(|tool| tool.definition().name().to_string()).collect();
        ToolNotFound::with(tool.definition().name().as_str(), names)
    }

    /// Refuses a tool that path rules do not bind, if there are any: a command of a native tool
    /// opens files by itself.
    pub(super) fn check_bound(
        &self,
        tool: &Registered,
        workspace: &Workspace,
    ) -> Result<(), ErrorKind> {
        let has_files_of_its_own = match tool.origin() {
            Origin::Native => tool.definition().side_effects() == SideEffects::Execute,
            Origin::Server(server) => server.place() == ServerPlace::ThisMachine,
            Origin::Plugin { .. } => false,
        };
        match self.commands {
            Commands::Refuse if has_files_of_its_own && workspace.rules().filter_anything() => {
                Err(not_bound(tool))
            }
            Commands::Refuse | Commands::Allow => Ok(()),
        }
    }

    /// Returns the host's own threads, if the host has some and the inputs of the tool name paths,
    /// whose look-up may block.
    pub(super) fn threads_for_paths(&self, tool: &Registered) -> Option<&CallThreads> {
        let threads = self.threads.as_deref()?;
        names_paths(tool.definition()).then_some(threads)
    }

    /// Returns the time limit of a call, at most 600 s. Precedence: the caller's value, the
    /// operator's for this tool, the operator's for its plugin, the tool's own (which can only
    /// lower the default), the class's default.
    pub(crate) fn time_limit(&self, tool: &Registered, asked: Option<Duration>) -> Duration {
        let definition = tool.definition();
        let class = definition.side_effects();
        let default = self.limits.timeout.unwrap_or_else(|| limits::default_timeout(class));
        let own = || definition.timeout().map_or(default, |own| own.min(default));
        let of_plugin = || match tool.settings().and_then(PluginSettings::time) {
            Some(ToolTime::Set(time)) => time,
            Some(ToolTime::AtMost(most)) => own().min(most),
            None => own(),
        };
        let operator = || match tool.rule_in(&self.tool_timeouts) {
            Some(ToolTime::Set(time)) => *time,
            Some(ToolTime::AtMost(most)) => of_plugin().min(*most),
            None => of_plugin(),
        };
        asked.unwrap_or_else(operator).min(limits::MAX_TIMEOUT)
    }
}
