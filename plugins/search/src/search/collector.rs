//! Collects matches, up to a limit.

use super::line;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use palisade_guest::visible;
use std::fmt::Write;
use std::io;
use std::path::Path;

/// Maximum number of shown matches.
const MAX_MATCHES: usize = 200;

/// Maximum size of the output in bytes, context included: the page size of `read_file`.
const MAX_BYTES: usize = 256 * 1024;

/// Follows the matches, because other tools with this format count from 1.
pub(super) const COUNT: &str = "[lines count from 0, as in read_file]\n";

/// The matches in all files so far.
#[derive(Default)]
pub(super) struct Results {
    text: String,
    matches: usize,
    files: usize,
    searched: usize,
    binary: usize,
    full: Option<Bound>,
}

/// The limit that ended a search.
#[derive(Clone, Copy)]
enum Bound {
    Matches,
    Bytes,
}

impl Results {
    /// Returns the number of searched files.
    pub(super) fn searched(&self) -> usize {
        self.searched
    }

    /// Returns true if a limit was reached.
    pub(super) fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Returns the output: the matches, and remarks in brackets.
    pub(super) fn text(self, pattern: &str, base: &str) -> String {
        let Self { mut text, matches, files, searched, binary, full } = self;
        let narrow = "narrow the pattern, or give a path";
        if matches > 0 {
            text.push_str(COUNT);
        }
        // Writing to a string cannot fail.
        let _ = match full {
            Some(Bound::Matches) => {
                writeln!(
                    text,
                    "[{matches} matches in {files} files shown, and there are more; {narrow}]"
                )
            }
            Some(Bound::Bytes) => {
                writeln!(
                    text,
                    "[cut at {MAX_BYTES} bytes, after {matches} matches in {files} files; {narrow}, or less context]"
                )
            }
            None if matches == 0 => writeln!(
                text,
                "[no line matches `{pattern}` below {base}; \
                 {searched} files were searched, ignored ones left out, {binary} of them binary]"
            ),
            None => Ok(()),
        };
        text
    }
}

/// Collects the matches in one file. They count only once the file has been searched completely and
/// is text.
pub(super) struct Collector<'a> {
    path: String,
    matcher: &'a RegexMatcher,
    results: &'a mut Results,
    text: String,
    matches: usize,
    /// The length of the text to keep: context before a match that is not shown is dropped.
    kept: usize,
    binary: bool,
    full: Option<Bound>,
}

impl<'a> Collector<'a> {
    /// Starts a file.
    pub(super) fn new(path: &Path, matcher: &'a RegexMatcher, results: &'a mut Results) -> Self {
        let path = visible(&path.to_string_lossy());
        Self {
            path,
            matcher,
            results,
            text: String::new(),
            matches: 0,
            kept: 0,
            binary: false,
            full: None,
        }
    }

    /// Adds the matches to the results.
    pub(super) fn commit(self) {
        let results = self.results;
        results.searched = results.searched.saturating_add(1);
        if self.binary {
            results.binary = results.binary.saturating_add(1);
            return;
        }
        results.full = self.full;
        if self.matches > 0 {
            results.files = results.files.saturating_add(1);
            results.matches = results.matches.saturating_add(self.matches);
            results.text.push_str(self.text.get(..self.kept).unwrap_or(&self.text));
        }
    }

    /// Appends a line. Returns false if the output exceeds the limit.
    fn push(&mut self, mark: char, number: Option<u64>, line: &str) -> bool {
        let number = number.unwrap_or(1).saturating_sub(1);
        let _ = writeln!(self.text, "{}{mark}{number}{mark}{line}", self.path);
        let fits = self.results.text.len().saturating_add(self.text.len()) <= MAX_BYTES;
        if !fits {
            self.full = Some(Bound::Bytes);
        }
        fits
    }

    /// Appends a separator between groups that are not adjacent, within a file or between files.
    fn separate(&mut self) {
        self.text.push_str("--\n");
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn begin(&mut self, searcher: &Searcher) -> io::Result<bool> {
        let has_context = searcher.before_context() > 0 || searcher.after_context() > 0;
        if has_context && !self.results.text.is_empty() {
            self.separate();
        }
        Ok(true)
    }

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.results.matches.saturating_add(self.matches) >= MAX_MATCHES {
            self.full = Some(Bound::Matches);
            return Ok(false);
        }
        let at = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |place| place.start());
        let fits = self.push(':', found.line_number(), &line::shown(found.bytes(), at));
        if fits {
            self.matches = self.matches.saturating_add(1);
            self.kept = self.text.len();
        }
        Ok(fits)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        let fits = self.push('-', found.line_number(), &line::shown(found.bytes(), 0));
        if fits && *found.kind() == SinkContextKind::After {
            self.kept = self.text.len();
        }
        Ok(fits)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.separate();
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}
