//! The `search_files` tool.

mod collector;
mod line;
#[cfg(test)]
mod tests;

use crate::tree::{Found, Next, Tree};
use crate::unread::{Unread, shown};
use collector::{Collector, Results};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use palisade_guest::{Context, Error, ReadPath, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4_096;

/// Maximum nesting of groups. The regex compiler recurses per level, on a stack of 128 KiB.
const MAX_NESTING: u32 = 32;

/// Maximum size of a compiled pattern, and of its automata at run time, in bytes: each about a
/// tenth of a guest's memory.
const MAX_PROGRAM_BYTES: usize = 12 * 1024 * 1024;

/// Maximum length of a searched line, in bytes; a file with a longer one is skipped and reported.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of context lines.
const MAX_CONTEXT: usize = 20;

/// Number of files between two progress reports.
const REPORT: usize = 256;

/// The pattern, the place to search, and the context to show.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The regular expression, in the syntax of Rust's crate `regex`: no look-around, no
    /// backreferences. It is matched line by line and minds case; begin with `(?i)` to ignore case.
    /// Escape characters that have a meaning, as in `foo\(\)`.
    pattern: String,
    /// The directory or the file to search, relative to the workspace. Default: the workspace
    /// itself.
    path: Option<ReadPath>,
    /// How many lines to show before and after each match. Default: 0.
    #[schemars(range(min = 0, max = 20))]
    context: Option<usize>,
}

/// Searches the content of files for a regular expression and returns the lines that match as
/// `path:line:text`, sorted by path.
///
/// Line numbers count from 0 and not from 1 as in grep, so that they fit start_line of read_file; a
/// line in brackets says so again. With `context` the lines around a match come as
/// `path-line-text`, and `--` stands between groups. Binary files, files that .gitignore or .ignore
/// exclude, and .git are left out; hidden files are included. Long lines are shortened. At most 200
/// matches are shown; a last line in brackets then says how to narrow the search.
#[tool(side_effects = "read", title = "Search in files", idempotent)]
pub(crate) fn search_files(args: Args, ctx: &Context) -> Result<String> {
    let path = args.path.as_ref().map_or(Path::new(""), AsRef::as_ref);
    search(&Tree::here(path), &args.pattern, args.context.unwrap_or(0), ctx)
}

fn search(tree: &Tree, pattern: &str, context: usize, ctx: &Context) -> Result<String> {
    let mut search = Search {
        tree,
        matcher: matcher(pattern)?,
        searcher: searcher(context)?,
        results: Results::default(),
        unread: Unread::default(),
    };
    // Reports a missing path with a clear error.
    tree.is_directory()?;
    let unread = tree.each(|found| search.file(&found, ctx))?;
    Ok(search.text(pattern, &unread))
}

fn matcher(pattern: &str) -> Result<RegexMatcher> {
    let refuse = |reason: String| Error::invalid_input("pattern", reason);
    if pattern.is_empty() {
        return Err(refuse(
            "it is empty and would match every line; give a regular expression".to_owned(),
        ));
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(refuse(format!(
            "it is {} bytes long, and {MAX_PATTERN_BYTES} is the most",
            pattern.len()
        )));
    }
    RegexMatcherBuilder::new()
        .multi_line(true)
        .crlf(true)
        .nest_limit(MAX_NESTING)
        .size_limit(MAX_PROGRAM_BYTES)
        .dfa_size_limit(MAX_PROGRAM_BYTES)
        .build(pattern)
        .map_err(|error| {
            refuse(format!(
                "it is not a regular expression that can be matched line by line: {error}"
            ))
        })
}

fn searcher(context: usize) -> Result<Searcher> {
    if context > MAX_CONTEXT {
        return Err(Error::invalid_input(
            "context",
            format!("{context} is more than {MAX_CONTEXT} lines"),
        ));
    }
    Ok(SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_LINE_BYTES))
        .build())
}

struct Search<'a> {
    tree: &'a Tree,
    matcher: RegexMatcher,
    searcher: Searcher,
    results: Results,
    unread: Unread,
}

impl Search<'_> {
    fn file(&mut self, found: &Found, ctx: &Context) -> Result<Next> {
        ctx.checkpoint()?;
        if !found.is_file {
            return Ok(Next::More);
        }
        let mut collector = Collector::new(&found.path, &self.matcher, &mut self.results);
        match self.searcher.search_path(&self.matcher, self.tree.at(&found.path), &mut collector) {
            Ok(()) => collector.commit(),
            Err(error) => self.unread.add(&found.path, Error::from(error)),
        }
        let searched = self.results.searched();
        if searched.is_multiple_of(REPORT) && searched > 0 {
            // The count is small enough to be exact as a double.
            ctx.progress(searched as f64, None, &format!("{searched} files searched"));
        }
        Ok(if self.results.is_full() { Next::Stop } else { Next::More })
    }

    fn text(self, pattern: &str, unread: &Unread) -> String {
        let base = shown(self.tree.base());
        let mut text = self.results.text(pattern, &base);
        text.push_str(&unread.note());
        text.push_str(&self.unread.note());
        text
    }
}
