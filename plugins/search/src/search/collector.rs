//! Gathers what is found, up to a bound.

use super::line;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// How many matches are shown: more than that, and the pattern should be narrower.
const MAX_MATCHES: usize = 200;

/// How many bytes are shown, context included: what `read_file` returns at once.
const MAX_BYTES: usize = 256 * 1024;

/// What stands behind matches, since other tools of this form count from 1.
pub(super) const COUNT: &str = "[lines count from 0, as in read_file]\n";

/// What was found in all files so far.
#[derive(Default)]
pub(super) struct Results {
    text: String,
    matches: usize,
    files: usize,
    searched: usize,
    binary: usize,
    full: Option<Bound>,
}

/// The bound that ended a search.
#[derive(Clone, Copy)]
enum Bound {
    Matches,
    Bytes,
}

impl Results {
    /// How many files were searched.
    pub(super) fn searched(&self) -> usize {
        self.searched
    }

    /// Whether there is more than is shown.
    pub(super) fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// The output: what was found, and in brackets what the caller has to know about it.
    pub(super) fn text(self, pattern: &str, base: &str) -> String {
        let Self { mut text, matches, files, searched, binary, full } = self;
        let narrow = "narrow the pattern, or give a path";
        if matches > 0 {
            text.push_str(COUNT);
        }
        // Writing to a string cannot fail.
        let _ = match full {
            Some(Bound::Matches) => {
                writeln!(text, "[{matches} matches in {files} files shown, and there are more; {narrow}]")
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

/// Gathers what is found in one file. It counts only once the file has been searched to its end and has turned out to
/// be text.
pub(super) struct Collector<'a> {
    path: String,
    matcher: &'a RegexMatcher,
    results: &'a mut Results,
    text: String,
    matches: usize,
    /// What of the text is certain to stay: context before a match that is no longer shown must go.
    kept: usize,
    binary: bool,
    full: Option<Bound>,
}

impl<'a> Collector<'a> {
    /// Begins with a file.
    pub(super) fn new(path: &Path, matcher: &'a RegexMatcher, results: &'a mut Results) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { path, matcher, results, text: String::new(), matches: 0, kept: 0, binary: false, full: None }
    }

    /// Adds what was found to the results.
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

    /// Adds a line; false if there is no room for it.
    fn push(&mut self, mark: char, number: Option<u64>, line: &str) -> bool {
        let number = number.unwrap_or(1).saturating_sub(1);
        let _ = writeln!(self.text, "{}{mark}{number}{mark}{line}", self.path);
        let fits = self.results.text.len().saturating_add(self.text.len()) <= MAX_BYTES;
        if !fits {
            self.full = Some(Bound::Bytes);
        }
        fits
    }

    /// A line between two groups that are not next to each other, in one file or in two.
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
