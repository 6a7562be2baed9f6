//! Creates or opens the file for events or for results without following a symlink in the
//! workspace. Events are appended to those of earlier runs, and results replace earlier ones, once
//! the run begins: a run that cannot begin changes no record.
//!
//! The workspace is untrusted: a symlink in any component of the path could redirect the lines over
//! another file of the user.

mod former;
mod walk;

use former::{Content, Former};
use palisade::workspace::Workspace;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The file for events, which waits for the begin of the run.
pub(super) struct Destination {
    file: File,
    state: State,
}

/// The state of the file.
enum State {
    /// The run has not begun. A write waits for that.
    Waiting(Receiver<()>),
    /// Writes reach the file.
    Open,
    /// The run did not begin, and nothing is written.
    Void,
}

/// The begin of the run. If it is dropped instead, nothing is appended to the file.
pub(super) struct Begin {
    file: File,
    former: Former,
    begun: Sender<()>,
}

impl Begin {
    /// Ends the last line of the former content, if a run was killed within it, and lets writes
    /// pass.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(super) fn now(mut self) -> io::Result<()> {
        match self.former {
            Former::Torn => self.file.write_all(b"\n")?,
            Former::Whole => {}
        }
        // Fails only if the writer is gone, which then reports its own error.
        let _ = self.begun.send(());
        Ok(())
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let State::Waiting(begun) = &self.state {
            self.state = if begun.recv().is_ok() { State::Open } else { State::Void };
        }
        match self.state {
            State::Open => self.file.write(bytes),
            State::Waiting(_) | State::Void => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens the file for events, which may be a named pipe. Never blocks: a pipe without a reader is
/// refused. Opens in append mode, so that the events of concurrent runs do not overwrite each other.
///
/// # Errors
///
/// If the file cannot be opened, if the path goes through a symbolic link in the workspace, or if
/// the file holds something other than events.
pub(super) fn open(path: &Path, workspace: &Workspace) -> io::Result<(Destination, Begin)> {
    let (file, former) = open_file(path, workspace, Content::Events)?;
    let (begun, waiting) = channel();
    let begin = Begin { file: file.try_clone()?, former, begun };
    Ok((Destination { file, state: State::Waiting(waiting) }, begin))
}

/// Opens the file for results as [`open`] does. Its former content stands until it is cleared.
///
/// # Errors
///
/// Those of [`open`], and if the file holds something other than results.
pub(super) fn open_results(path: &Path, workspace: &Workspace) -> io::Result<ResultsFile> {
    let (file, _) = open_file(path, workspace, Content::Results)?;
    Ok(ResultsFile(file))
}

/// The former content of a file for results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cleared {
    /// There was none.
    Nothing,
    /// The results of an earlier reply.
    Results,
}

/// The file for results.
pub(super) struct ResultsFile(File);

impl ResultsFile {
    /// Removes the former content. A pipe or a device has none.
    ///
    /// # Errors
    ///
    /// If the file cannot be truncated.
    pub(super) fn clear(&self) -> io::Result<Cleared> {
        let meta = self.0.metadata()?;
        if !meta.is_file() || meta.len() == 0 {
            return Ok(Cleared::Nothing);
        }
        self.0.set_len(0)?;
        Ok(Cleared::Results)
    }

    /// Returns a writer at the end of the file.
    pub(super) fn writer(&self) -> impl Write + '_ {
        &self.0
    }
}

fn open_file(path: &Path, workspace: &Workspace, content: Content) -> io::Result<(File, Former)> {
    use rustix::fs::{fcntl_getfl, fcntl_setfl};
    let (file, former) = walk::open(path, workspace, content)?;
    // From here on writes may block: events have a thread of their own, and results are written
    // when the calls have ended.
    fcntl_setfl(&file, fcntl_getfl(&file)? - rustix::fs::OFlags::NONBLOCK)?;
    Ok((file, former))
}

fn planted(link: &Path) -> io::Error {
    let link = palisade::tool::text::elided(&link.to_string_lossy(), 128);
    io::Error::other(format!(
        "`{link}` is a symbolic link in the workspace, which is not followed here"
    ))
}
