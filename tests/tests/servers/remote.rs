//! Servers that are reached over HTTP: another palisade, and servers that misbehave.

use super::program;
use palisade_tests::World;
use palisade_tests::mcp_http::Endpoint;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// The token of the other palisade.
const TOKEN: &str = "a-token-of-the-other-palisade-0123456789";

/// Writes the configuration of a user with a server at this URL as `far`.
fn configure(world: &World, url: &str, more: &str) {
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    let table = format!("[mcp.servers.far]\nurl = \"{url}\"\n{more}\n");
    std::fs::write(folder.join("palisade.toml"), table).unwrap();
}

/// Starts a server. For each request, a function gets the body and writes the response.
fn serving(respond: impl Fn(&str, &mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut reader = BufReader::new(socket.try_clone().unwrap());
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                let header = line.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            respond(&String::from_utf8_lossy(&body), &mut socket);
        }
    });
    format!("http://{address}/mcp")
}

/// Writes a response with a body of this type.
fn respond(socket: &mut TcpStream, kind: &str, body: &str) {
    let length = body.len();
    let _ = write!(
        socket,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
}

/// Returns the id of a request.
fn id(body: &str) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(body).unwrap_or_default()["id"].clone()
}

#[track_caller]
fn refused(world: &World, reason: &str) {
    let ran = program(world, &["mcp", "approve", "far", "--yes"]).run().exits_with(5);
    assert!(ran.stderr.contains(reason), "{reason}: {}", ran.stderr);
}

#[test]
fn tools_of_another_palisade_are_called_over_http() {
    let (near, far) = (World::new(), World::new());
    far.file("note.txt", "far away\n");
    let file = far.outer().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let words = ["--token-file", file.to_str().unwrap()];
    let server = Endpoint::guarded(program(&far, &[]), &words);
    let url = format!("http://{}/mcp", server.address);
    configure(&near, &url, "token_env = \"FAR_TOKEN\"\nclass = \"read\"");
    let with_token = |words: &[&str]| program(&near, words).env("FAR_TOKEN", TOKEN).run();
    let _ = with_token(&["mcp", "approve", "far", "--yes"]).exits_with(0);
    let read = with_token(&["call", "far_read_file", r#"{"path": "note.txt"}"#]).exits_with(0);
    assert!(read.stdout.contains("far away"), "{}", read.stdout);
    let missing = with_token(&["call", "far_read_file", r#"{"path": "none.txt"}"#]).exits_with(5);
    assert!(missing.stderr.contains("none.txt"), "{}", missing.stderr);
    // The other palisade refuses what its own policy refuses.
    let input = r#"{"path": "new.txt", "content": "x"}"#;
    let _ = with_token(&["call", "far_write_file", input]).exits_with(5);
    assert_eq!(far.read("new.txt"), None);
    let unknown = program(&near, &["call", "far_read_file", r#"{"path": "note.txt"}"#]).run();
    assert!(unknown.exits_with(5).stderr.contains("token_env"));
}

#[test]
fn plain_url_of_another_machine_is_refused() {
    let world = World::new();
    configure(&world, "http://192.0.2.1/mcp", "");
    let ran = program(&world, &["list"]).run().exits_with(2);
    assert!(ran.stderr.contains("https://"), "{}", ran.stderr);
}

#[test]
fn redirect_is_not_followed() {
    let world = World::new();
    let url = serving(|_, socket| {
        let _ = write!(
            socket,
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
        );
    });
    configure(&world, &url, "");
    refused(&world, "307");
}

#[test]
fn endless_response_is_refused() {
    for kind in ["application/json", "text/event-stream"] {
        let world = World::new();
        let url = serving(move |_, socket| {
            let _ = write!(socket, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\ndata: ");
            while socket.write_all(&[b'x'; 4096]).is_ok() {}
        });
        configure(&world, &url, "");
        refused(&world, "a message of more than 4 MiB");
    }
}

#[test]
fn endless_comments_are_refused() {
    let world = World::new();
    let url = serving(move |_, socket| {
        let _ = write!(socket, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
        while socket.write_all(&b": c\n".repeat(1 << 14)).is_ok() {}
    });
    configure(&world, &url, "");
    refused(&world, "it sent more than 64 MiB between two requests");
}

#[test]
fn stream_without_response_fails_its_request() {
    let world = World::new();
    let url = serving(|_, socket| respond(socket, "text/event-stream", ": nothing\n\n"));
    configure(&world, &url, "");
    refused(&world, "sent no response");
}

#[test]
fn requests_of_a_server_are_bounded_until_their_responses_are_accepted() {
    for ids in [[0, 0], [0, 1]] {
        let world = World::new();
        let url = serving(move |_, socket| {
            // The first request is answered with requests, and no response is accepted.
            let _ = write!(socket, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
            let [first, step] = ids;
            for number in 0..17 {
                let id = first + step * number;
                let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
                let _ = write!(socket, "data: {ping}\n\n");
            }
            let _ = socket.read(&mut [0]);
        });
        configure(&world, &url, "");
        refused(&world, "it sent more than 16 requests and did not read the responses");
    }
}

#[test]
fn lost_session_is_opened_again() {
    let world = World::new();
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let url = serving(move |body, socket| {
        let id = id(body);
        let result = if body.contains("\"initialize\"") {
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}"#
        } else if body.contains("tools/list") {
            r#"{"tools":[{"name":"echo","description":"Repeats.","inputSchema":{"type":"object"}}]}"#
        } else if body.contains("tools/call") {
            if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1 {
                let _ = write!(socket, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
                return;
            }
            r#"{"content":[{"type":"text","text":"here"}]}"#
        } else {
            let _ = write!(socket, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
            return;
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let length = body.len();
        let _ = write!(
            socket,
            "HTTP/1.1 200 OK\r\nmcp-session-id: s\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
    });
    configure(&world, &url, "class = \"read\"");
    let _ = program(&world, &["mcp", "approve", "far", "--yes"]).run().exits_with(0);
    let mut client = palisade_tests::mcp::Client::start(program(&world, &[]))
        .shake_hands(&serde_json::json!({}));
    let mut call = || {
        let params = serde_json::json!({"name": "far_echo", "arguments": {}});
        client.request("tools/call", &params)["result"]["content"][0]["text"].clone()
    };
    assert_eq!(call(), "here");
    assert!(call().as_str().unwrap().contains("ended the session"));
    assert_eq!(call(), "here");
}
