//! `--results FILE`: the full results of a reply's calls, for the program behind the model.

use super::destination::{self, Cleared, ResultsFile};
use super::exit::{Exit, Failure};
use super::output;
use palisade::tool::text::VisibleJson;
use palisade::workspace::Workspace;
use palisade::{BuildError, ToolResult};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// The file of the results, whose former content stands until the calls begin.
pub(super) struct Results {
    path: PathBuf,
    file: ResultsFile,
}

impl Results {
    /// Opens the file and creates it if it is missing.
    pub(super) fn open(path: &Path, workspace: &Path) -> Result<Self, Failure> {
        let time = palisade::sandbox::limits::OPENING;
        let workspace =
            Workspace::open_within(workspace.to_owned(), time).map_err(BuildError::from)?;
        let file = destination::open_results(path, &workspace).map_err(|error| {
            Failure::usage(format!("cannot write the results to `{}`: {error}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Removes the former content, and says so: from here on, results of an earlier reply would
    /// mislead.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        match self.file.clear().map_err(|error| self.unwritten(&error))? {
            Cleared::Nothing => {}
            Cleared::Results => output::note(&format!(
                "the results that `{}` held are replaced",
                self.path.display()
            )),
        }
        Ok(())
    }

    /// Writes each result as one line, in the form of `call --json`.
    pub(super) fn write<'a>(
        self,
        results: impl Iterator<Item = &'a ToolResult>,
    ) -> Result<(), Failure> {
        self.write_lines(results).map_err(|error| self.unwritten(&error))
    }

    fn write_lines<'a>(&self, results: impl Iterator<Item = &'a ToolResult>) -> io::Result<()> {
        let mut out = BufWriter::new(self.file.writer());
        for result in results {
            let mut line = VisibleJson::new(&mut out);
            serde_json::to_writer(&mut line, result)?;
            line.write_all(b"\n")?;
            line.finish()?;
        }
        out.flush()
    }

    fn unwritten(&self, error: &io::Error) -> Failure {
        let path = self.path.display();
        Failure::new(
            Exit::Internal,
            format!("the results could not be written to `{path}`: {error}"),
        )
    }
}
