//! The HTTP client: each caller uses a keep-alive connection of its own.

use super::load::{Clock, Measured, Times};
use super::wire::{REVISION, Tool};
use anyhow::{Context as _, anyhow, ensure};
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of a response.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum size of a response body, in bytes: a response has about 2 KiB.
const LONGEST: usize = 1 << 20;

/// Sends calls to the server at this address for a time, with one connection per caller.
pub(super) fn load(
    address: SocketAddr,
    tool: &Tool,
    callers: usize,
    times: Times,
) -> anyhow::Result<Measured> {
    let connections: Vec<_> =
        (0..callers).map(|_| Connection::open(address)).collect::<anyhow::Result<_>>()?;
    let clock = Clock::start(times);
    let latencies = thread::scope(|scope| {
        let ask = |connection: Connection| scope.spawn(move || connection.ask(tool, clock));
        let asking: Vec<_> = connections.into_iter().map(ask).collect();
        let mut latencies = Vec::new();
        for caller in asking {
            latencies.extend(caller.join().map_err(|_| anyhow!("a caller panicked"))??);
        }
        anyhow::Ok(latencies)
    })?;
    Ok(clock.measured(latencies))
}

struct Connection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

/// The framing and the type of a response body.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    length: Option<usize>,
    is_chunked: bool,
    is_stream: bool,
}

impl Connection {
    fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { address, stream: BufReader::with_capacity(64 << 10, stream) })
    }

    fn ask(mut self, tool: &Tool, clock: Clock) -> anyhow::Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        let mut id = 0;
        loop {
            let begun = Instant::now();
            if !clock.runs(begun) {
                return Ok(latencies);
            }
            id += 1;
            let request = self.request(tool, id);
            self.stream.get_mut().write_all(&request).context("writing to the server")?;
            let head = head(&mut self.stream)?;
            let body = body(&mut self.stream, &head)?;
            clock.keep(begun, Instant::now(), &mut latencies);
            let body = String::from_utf8(body).context("an answer that is no text")?;
            ensure!(is_answered(tool, id, &head, &body)?, "no answer to call {id}: {body}");
        }
    }

    fn request(&self, tool: &Tool, id: u64) -> Vec<u8> {
        let body = tool.call(id);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {REVISION}\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            tool.name,
            body.len()
        );
        (head + &body).into_bytes()
    }
}

/// Returns true if a body contains the response. Each event of a stream is a message; an event
/// without data opens the stream.
fn is_answered(tool: &Tool, id: u64, head: &Head, body: &str) -> anyhow::Result<bool> {
    if !head.is_stream {
        return Ok(tool.answered(body)? == Some(id));
    }
    let messages = body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    for message in messages.filter(|message| !message.is_empty()) {
        if tool.answered(message)? == Some(id) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn line(stream: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line).context("reading from the server")?;
    ensure!(line.ends_with('\n'), "the server has closed the connection after {line:?}");
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn head(stream: &mut impl BufRead) -> anyhow::Result<Head> {
    let status = line(stream)?;
    let mut head = Head::default();
    loop {
        let line = line(stream)?;
        if line.is_empty() {
            break;
        }
        let (name, value) =
            line.split_once(':').with_context(|| format!("no field of a head: {line}"))?;
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_ascii_lowercase());
        match name.as_str() {
            "content-length" => {
                head.length = Some(value.parse().context("a length that is no number")?);
            }
            "transfer-encoding" => head.is_chunked = value == "chunked",
            "content-type" => head.is_stream = value.starts_with("text/event-stream"),
            _ => {}
        }
    }
    ensure!(
        status.contains(" 200 ") || status.ends_with(" 200"),
        "the server answers with {status}"
    );
    Ok(head)
}

/// Reads the whole body; a stream ends with the response as well.
fn body(stream: &mut impl BufRead, head: &Head) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    if !head.is_chunked {
        let length = head.length.context("a body without an end")?;
        read(stream, length, &mut body)?;
        return Ok(body);
    }
    loop {
        let size = line(stream)?;
        let size = size.split(';').next().unwrap_or_default().trim().to_owned();
        let size = usize::from_str_radix(&size, 16)
            .with_context(|| format!("no size of a chunk: {size}"))?;
        read(stream, size, &mut body)?;
        ensure!(line(stream)?.is_empty(), "a chunk that is longer than it says");
        if size == 0 {
            return Ok(body);
        }
    }
}

fn read(stream: &mut impl Read, length: usize, body: &mut Vec<u8>) -> anyhow::Result<()> {
    let from = body.len();
    ensure!(length <= LONGEST - from.min(LONGEST), "an answer of more than {LONGEST} bytes");
    body.resize(from + length, 0);
    stream.read_exact(&mut body[from..]).context("reading from the server")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(mut bytes: &[u8]) -> anyhow::Result<(Head, Vec<u8>)> {
        let head = head(&mut bytes)?;
        let body = body(&mut bytes, &head)?;
        ensure!(bytes == b"next", "what follows is not read");
        Ok((head, body))
    }

    #[test]
    fn response_with_length_is_read_completely() {
        let (head, body) = answer(
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nContent-Type: application/json\r\n\r\n{}next",
        )
        .expect("an answer");
        assert_eq!(head, Head { length: Some(2), ..Head::default() });
        assert_eq!(body, b"{}");
    }

    #[test]
    fn chunked_stream_is_read_completely() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n8\r\ndata: {}\r\n2\r\n\n\n\r\n0\r\n\r\nnext";
        let (head, body) = answer(bytes).expect("an answer");
        assert!(head.is_chunked && head.is_stream);
        assert_eq!(body, b"data: {}\n\n");
    }

    #[test]
    fn malformed_response_is_an_error() {
        assert!(
            answer(b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\nnext").is_err()
        );
        assert!(answer(b"HTTP/1.1 200 OK\r\n\r\nnext").is_err());
        assert!(answer(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\nnext").is_err());
        assert!(answer(b"").is_err());
    }
}
