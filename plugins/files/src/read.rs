//! The `read_file` tool.

mod lines;
#[cfg(test)]
mod tests;

use crate::text;
use crate::workspace::{Workspace, refusal, shown};
use lines::Lines;
use palisade_guest::{Error, ReadPath, Result, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The default limit, in bytes: less than 25,000 tokens of text or code, which is the most that
/// many clients show of one result.
const PAGE_BYTES: u64 = 64 * 1024;

/// The largest limit, in bytes: the host accepts 4 MiB per call, and the rest is for the marker.
const MAX_BYTES: u64 = 4_000_000;

/// The buffer size for a range, in bytes: large enough for few host calls, and small beside a
/// guest's initial memory.
const BUFFER_BYTES: usize = 64 * 1024;

/// The file to read, and which part of it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file to read, relative to the workspace.
    path: ReadPath,
    /// The first line to return. Lines count from 0. Default: 0.
    start_line: Option<u64>,
    /// The last line to return, itself included. -1 stands for the end of the file. Default: -1.
    #[schemars(range(min = -1))]
    end_line: Option<i64>,
    /// The most bytes to return, up to 4000000. Default: 65536. More is cut after a whole line,
    /// and a last line in brackets says how to read on.
    #[schemars(range(min = 1, max = 4_000_000))]
    limit: Option<u64>,
}

/// Reads a text file, or a range of its lines, and returns the text exactly as it is in the file:
/// no line numbers are added and line endings are kept.
///
/// Without a range it reads the whole file. If there is more than `limit` allows, the last line of
/// the output is a marker such as
/// `[cut at 65536 of 1048576 bytes; read on with {"path":"big.log","start_line":1024}]`: call
/// again with these arguments for the next part. Binary files and directories are refused; use
/// list_dir for directories.
#[tool(side_effects = "read", title = "Read a file", idempotent)]
pub(crate) fn read_file(args: Args) -> Result<String> {
    read(&Workspace::here(), &Request::new(&args)?)
}

/// A checked request.
struct Request<'a> {
    path: &'a Path,
    lines: Lines,
    limit: u64,
    /// The limit as the caller gave it, for the arguments of the next call.
    limit_given: Option<u64>,
}

impl<'a> Request<'a> {
    fn new(args: &'a Args) -> Result<Self> {
        let lines = Lines::new(args.start_line, args.end_line)?;
        let limit = args.limit.unwrap_or(PAGE_BYTES);
        if !(1..=MAX_BYTES).contains(&limit) {
            return Err(Error::invalid_input(
                "limit",
                format!("{limit} is not between 1 and {MAX_BYTES} bytes"),
            ));
        }
        Ok(Self { path: &args.path, lines, limit, limit_given: args.limit })
    }
}

/// A part of a file.
struct Part {
    bytes: Vec<u8>,
    /// Its offset in the file.
    offset: u64,
    /// Whether the limit has cut it, and not the range or the end of the file.
    cut: bool,
}

fn read(workspace: &Workspace, request: &Request<'_>) -> Result<String> {
    let path = request.path;
    let (file, len) = open(workspace, path)?;
    let part =
        if request.lines.are_all() { head(file, len, request) } else { range(file, request) };
    let Part { mut bytes, offset, cut } = part?;
    let whole_lines = cut && trim(&mut bytes);
    let mut text = text::from_bytes(bytes, offset, path)?;
    if cut {
        let marker = marker(request, &text, offset, len, whole_lines);
        text.push_str(&marker);
    }
    Ok(text)
}

fn open(workspace: &Workspace, path: &Path) -> Result<(File, u64)> {
    let refuse = |error: io::Error| match error.kind() {
        io::ErrorKind::IsADirectory => directory(path),
        _ => refusal("read", path, error),
    };
    let file = File::open(workspace.at(path)).map_err(refuse)?;
    let metadata = file.metadata().map_err(refuse)?;
    match metadata {
        metadata if metadata.is_file() => Ok((file, metadata.len())),
        metadata if metadata.is_dir() => Err(directory(path)),
        _ => Err(Error::failed(format!(
            "{} is a pipe, a device or a socket, and only regular files can be read",
            shown(path)
        ))),
    }
}

fn directory(path: &Path) -> Error {
    Error::failed(format!("{} is a directory; use list_dir to see what is in it", shown(path)))
}

/// Reads from the start of the file, in a single host call if possible: the size is known, so that
/// the end need not be detected.
fn head(mut file: File, len: u64, request: &Request<'_>) -> Result<Part> {
    let mut bytes = vec![0; usize::try_from(len.min(request.limit)).unwrap_or(usize::MAX)];
    let filled =
        fill(&mut file, &mut bytes).map_err(|error| refusal("read", request.path, error))?;
    bytes.truncate(filled);
    Ok(Part { bytes, offset: 0, cut: len > request.limit })
}

/// Fills the buffer up to the end of the file. Unlike `read_to_end`, makes no extra host call to
/// detect the end.
fn fill(file: &mut File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled: usize = 0;
    while let Some(free) = bytes.get_mut(filled..).filter(|free| !free.is_empty()) {
        match file.read(free) {
            Ok(0) => break,
            Ok(count) => filled = filled.saturating_add(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads a range of lines. Memory is bounded by the limit, independently of the file and its lines.
fn range(file: File, request: &Request<'_>) -> Result<Part> {
    let refuse = |error: io::Error| refusal("read", request.path, error);
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    match skip(&mut reader, request.lines.first).map_err(refuse)? {
        Skipped::To(offset) => {
            let (bytes, cut) = take(&mut reader, request).map_err(refuse)?;
            Ok(Part { bytes, offset, cut })
        }
        Skipped::Past(count) => Err(beyond(request, count)),
    }
}

/// The result of skipping lines.
enum Skipped {
    /// The line exists, at this byte of the file.
    To(u64),
    /// The file ends after this number of lines.
    Past(u64),
}

fn skip(reader: &mut impl BufRead, lines: u64) -> io::Result<Skipped> {
    let mut offset: u64 = 0;
    for line in 0..lines {
        match reader.skip_until(b'\n')? {
            0 => return Ok(Skipped::Past(line)),
            count => offset = offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX)),
        }
    }
    // Line 0 of an empty file can be read; any other line must exist.
    let there = lines == 0 || !reader.fill_buf()?.is_empty();
    Ok(if there { Skipped::To(offset) } else { Skipped::Past(lines) })
}

fn take(reader: &mut impl BufRead, request: &Request<'_>) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let (mut left, mut room) = (request.lines.count(), request.limit);
    while left != Some(0) && room > 0 {
        let count = reader.by_ref().take(room).read_until(b'\n', &mut bytes)?;
        if count == 0 {
            break;
        }
        room = room.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        if bytes.last() == Some(&b'\n') {
            left = left.map(|left| left.saturating_sub(1));
        }
    }
    let cut = left != Some(0) && !reader.fill_buf()?.is_empty();
    Ok((bytes, cut))
}

fn beyond(request: &Request<'_>, count: u64) -> Error {
    let there = match count {
        0 => "has no lines".to_owned(),
        1 => "has 1 line, line 0".to_owned(),
        _ => format!("has {count} lines, 0 to {}", count.saturating_sub(1)),
    };
    let first = request.lines.first;
    Error::invalid_input(
        "start_line",
        format!("line {first} is beyond the end of {}, which {there}", shown(request.path)),
    )
}

/// Cuts after the last complete line, or else after the last complete character. Returns true if it
/// ends with a line.
fn trim(bytes: &mut Vec<u8>) -> bool {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.truncate(end.map_or_else(|| text::whole_characters(bytes), |end| end.saturating_add(1)));
    end.is_some()
}

/// The arguments of the next call.
#[derive(Serialize)]
struct Next<'a> {
    path: &'a str,
    start_line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

/// Returns the last line of an output that was cut: the position, and the arguments to continue.
fn marker(request: &Request<'_>, text: &str, offset: u64, len: u64, whole_lines: bool) -> String {
    let bytes = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
    let at = offset.saturating_add(bytes(text.len()));
    let Lines { first, last } = request.lines;
    let next = |start_line: u64, end_line: Option<u64>, limit: Option<u64>| {
        let path = request.path.to_string_lossy();
        serde_json::to_string(&Next { path: &path, start_line, end_line, limit })
            .unwrap_or_default()
    };
    if whole_lines {
        let lines = bytes(text.bytes().filter(|byte| *byte == b'\n').count());
        let on = next(first.saturating_add(lines), last, request.limit_given);
        return format!("[cut at {at} of {len} bytes; read on with {on}]");
    }
    let behind = next(first.saturating_add(1), last, request.limit_given);
    let inside = format!(
        "\n[cut at {at} of {len} bytes, inside line {first}, which is longer than the limit of {} bytes;",
        request.limit
    );
    if request.limit < MAX_BYTES {
        format!(
            "{inside} read more of it with {}, or on behind it with {behind}]",
            next(first, Some(first), Some(MAX_BYTES))
        )
    } else {
        format!("{inside} this tool reads no more of it; read on behind it with {behind}]")
    }
}
