//! The paths in a call's input that the call would read or change, checked before anything runs.

use crate::dispatch::input::CheckError;
use crate::execution::ValidInput;
use crate::registry::{Origin, Registered, Source};
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::schema::PathAccess;
use crate::tool::text::elided;
use crate::tool::{ErrorKind, SideEffects};
use crate::workspace::{FileError, Forbidden, HardLinks, LastLink, ProtectedPaths, Workspace};
use std::path::Path;

/// A file that a call would change.
pub(in crate::dispatch) struct ProjectedChange {
    /// The path that the input names.
    pub(super) path: String,
    /// The file's place, relative to the workspace of the session: a question names the file that
    /// changes, and not the link that leads to it.
    pub(in crate::dispatch) place: String,
}

/// Returns the files that a call would change: the `workspace-path` arguments of a tool that can
/// change files, without those that its schema marks as only read. It refuses a write to a path
/// that is protected by name, and a read of a hidden path. Commands are confined by other means. It
/// looks into the workspace, so it may block.
pub(in crate::dispatch) fn projected_changes(
    tool: &Registered,
    input: &ValidInput,
    workspace: &Workspace,
    budget: &dyn Budget,
) -> Result<Result<Vec<ProjectedChange>, ErrorKind>, Exhausted> {
    let mut changes = Vec::new();
    let last = last_link(tool);
    let looked = each_path(tool, input, workspace, budget, |rules, path, access| {
        rules.check(path, access).map_err(|why| refuse(path, why))?;
        if rules.is_change(access) {
            // A place without a name in UTF-8 is named as the input does.
            let place = workspace.place_of(path, last, budget)?.unwrap_or_else(|| path.to_owned());
            if place != path {
                rules.check(&place, access).map_err(|why| refuse(&place, why))?;
            }
            let place = workspace.in_whole(place);
            let length = path.len() + place.len() + size_of::<ProjectedChange>();
            budget.reserve(length as u64)?;
            changes.push(ProjectedChange { path: path.to_owned(), place });
        }
        Ok(())
    });
    CheckError::or_verdict(looked.map(|()| changes))
}

/// Refuses a path that leads over a link to a place that the call may not access, and a file that
/// has a second name. It looks into the workspace, so it may block. A call needs no such check: it
/// judges each place as it opens it.
pub(in crate::dispatch) fn check_places_of_links(
    tool: &Registered,
    input: &ValidInput,
    workspace: &Workspace,
    budget: &dyn Budget,
) -> Result<Result<(), ErrorKind>, Exhausted> {
    let last = last_link(tool);
    let looked = each_path(tool, input, workspace, budget, |rules, path, access| {
        // A place without a name in UTF-8 is judged by the name alone.
        let Some(place) = workspace.place_of(path, last, budget)? else { return Ok(()) };
        if place != path {
            rules.check(&place, access).map_err(|why| refuse(&place, why))?;
        }
        match rules.denies_aliases(access) && workspace.has_several_links(&place) {
            true => Err(CheckError::Refused(FileError::Aliased(elided(path, 256)).into())),
            false => Ok(()),
        }
    });
    CheckError::or_verdict(looked)
}

/// Returns whether the tool acts on a link itself, or on the file behind it. The claim of a plugin
/// file or a server is not believed: a question would name the link, and the file behind it change.
pub(super) fn last_link(tool: &Registered) -> LastLink {
    let is_of_the_program = match tool.origin() {
        Origin::Native | Origin::Plugin { source: Source::Shipped, .. } => true,
        Origin::Server(_) | Origin::Plugin { .. } => false,
    };
    match is_of_the_program && tool.definition().keeps_links() {
        true => LastLink::Keep,
        false => LastLink::Follow,
    }
}

fn refuse(path: &str, why: Forbidden) -> CheckError {
    CheckError::Refused(FileError::forbidden(path, why).into())
}

/// Visits the paths in an input that may be refused or changed.
fn each_path(
    tool: &Registered,
    input: &ValidInput,
    workspace: &Workspace,
    budget: &dyn Budget,
    mut visit: impl FnMut(&CallRules<'_>, &str, PathAccess) -> Result<(), CheckError>,
) -> Result<(), CheckError> {
    let definition = tool.definition();
    let class = definition.side_effects();
    let rules = tool.rules_in(workspace);
    match class {
        SideEffects::None | SideEffects::Network => Ok(()),
        SideEffects::Read if !rules.hide_anything() && !rules.filter_anything() => Ok(()),
        SideEffects::Read | SideEffects::Write | SideEffects::Execute => {
            let call_rules = CallRules { class, rules: &rules, root: workspace.root() };
            definition.input_schema().each_workspace_path(input.value(), budget, |path, access| {
                budget.check()?;
                visit(&call_rules, path, access)
            })
        }
    }
}

/// The rules for the paths of one call.
struct CallRules<'a> {
    class: SideEffects,
    rules: &'a ProtectedPaths,
    root: &'a Path,
}

impl CallRules<'_> {
    fn check(&self, path: &str, access: PathAccess) -> Result<(), Forbidden> {
        match (self.class, access) {
            (SideEffects::Read, _) | (SideEffects::Write, PathAccess::Read) => {
                self.rules.check_allowed(path)?;
                self.rules.check_hidden(path, self.root)
            }
            (SideEffects::Write, PathAccess::Write) => {
                self.rules.check_allowed(path)?;
                self.rules.check_places(path, self.root)
            }
            (SideEffects::Execute | SideEffects::None | SideEffects::Network, _) => Ok(()),
        }
    }

    /// Returns true if a file with several hard links is refused for reading.
    fn denies_aliases(&self, access: PathAccess) -> bool {
        let reads = self.class == SideEffects::Read || access == PathAccess::Read;
        reads && self.rules.filter_anything() && self.rules.hard_links() == HardLinks::Refuse
    }

    fn is_change(&self, access: PathAccess) -> bool {
        match (self.class, access) {
            (SideEffects::Read, _) | (_, PathAccess::Read) => false,
            (
                SideEffects::Write
                | SideEffects::Execute
                | SideEffects::None
                | SideEffects::Network,
                PathAccess::Write,
            ) => true,
        }
    }
}
