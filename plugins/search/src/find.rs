//! The `find_files` tool.

mod pattern;
#[cfg(test)]
mod tests;

use crate::tree::{Next, Tree};
use crate::unread::{Unread, shown};
use palisade_guest::{Context, Error, ReadPath, Result, tool, visible};
use pattern::Pattern;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Maximum number of listed files: about 10,000 tokens.
const MAX_FILES: usize = 1_000;

/// Number of files between two polls for cancellation.
const POLL: usize = 64;

/// Number of files between two progress reports.
const REPORT: usize = 4_096;

/// The pattern of the names, and the directory.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The glob. Without `/` it matches the name of a file at any depth, as `*.rs` does. With `/`
    /// it matches the whole path below `path`, as `src/**/*.rs` does. `*` and `?` stop at `/`, `**`
    /// does not; `[a-z]` is one of some characters, `{a,b}` one of some texts, `\` takes the next
    /// character literally.
    pattern: String,
    /// The directory to look in, relative to the workspace. Default: the workspace itself.
    path: Option<ReadPath>,
}

/// Finds files by name in a whole tree and returns their paths, one a line, sorted, relative to the
/// workspace.
///
/// Files that .gitignore or .ignore exclude are left out, and so is .git; hidden files are
/// included. Directories are not listed. At most 1000 files are shown; a last line in brackets then
/// says how many there are. To find files by what is in them use search_files.
#[tool(side_effects = "read", title = "Find files", idempotent)]
pub(crate) fn find_files(args: Args, ctx: &Context) -> Result<String> {
    let path = args.path.as_ref().map_or(Path::new(""), AsRef::as_ref);
    find(&Tree::here(path), &args.pattern, ctx)
}

fn find(tree: &Tree, pattern: &str, ctx: &Context) -> Result<String> {
    let pattern = Pattern::new(pattern)?;
    if !tree.is_directory()? {
        let reason = format!("{} is a file; give the directory to look in", shown(tree.base()));
        return Err(Error::invalid_input("path", reason));
    }
    let mut matches = Matches::default();
    let unread = tree.each(|found| {
        look_up(ctx, matches.looked_at)?;
        let below = found.path.strip_prefix(tree.base()).unwrap_or(&found.path);
        let matched = pattern.matches(below);
        matches.add(found.path, matched);
        Ok(Next::More)
    })?;
    Ok(matches.text(tree, &pattern, &unread))
}

/// Checks for cancellation and reports progress.
fn look_up(ctx: &Context, count: usize) -> Result<()> {
    if count.is_multiple_of(POLL) {
        ctx.checkpoint()?;
    }
    if count > 0 && count.is_multiple_of(REPORT) {
        // The count is small enough to be exact as a double.
        ctx.progress(count as f64, None, &format!("{count} files looked at"));
    }
    Ok(())
}

/// The first matches by path, and their total number. Memory stays bounded.
#[derive(Default)]
struct Matches {
    first: Vec<PathBuf>,
    count: usize,
    looked_at: usize,
}

impl Matches {
    fn add(&mut self, path: PathBuf, matched: bool) {
        self.looked_at = self.looked_at.saturating_add(1);
        if matched {
            self.first.push(path);
            self.count = self.count.saturating_add(1);
        }
        if self.first.len() >= MAX_FILES.saturating_mul(2) {
            self.keep_first();
        }
    }

    fn keep_first(&mut self) {
        self.first.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        self.first.truncate(MAX_FILES);
    }

    fn text(mut self, tree: &Tree, pattern: &Pattern, unread: &Unread) -> String {
        self.keep_first();
        let mut text = String::new();
        for path in &self.first {
            text.push_str(&visible(&path.to_string_lossy()));
            text.push('\n');
        }
        let (count, shown_count, looked_at, base) =
            (self.count, self.first.len(), self.looked_at, shown(tree.base()));
        if count == 0 {
            text = format!(
                "[no file matches `{pattern}` below {base}; {looked_at} files were looked at, ignored ones left out]\n"
            );
        } else if count > shown_count {
            text.push_str(&format!(
                "[{shown_count} of {count} files shown; narrow the pattern, or give a path below {base}]\n"
            ));
        }
        text.push_str(&unread.note());
        text
    }
}
