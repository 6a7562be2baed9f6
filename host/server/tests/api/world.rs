//! A host with the shipped plugins in a directory of its own, and its server without a socket.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use palisade::{CacheMode, Host, HostBuilder};
use palisade_server::journal::{Journal, JournalSettings};
use palisade_server::{Attached, RecorderSettings, Role, Server, Settings, Wiring};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;
use tower_service::Service as _;

/// The longest time that a test waits for anything.
const LONGEST: Duration = Duration::from_secs(60);

/// The sender of a request.
#[derive(Debug, Clone)]
pub(crate) enum Sender {
    Nobody,
    Operator(&'static str),
    Client(&'static str),
}

pub(crate) const OPERATOR: Sender = Sender::Operator("ana");
pub(crate) const CLIENT: Sender = Sender::Client("agent");
pub(crate) const OTHER: Sender = Sender::Client("other");

impl Sender {
    fn role(&self) -> Option<Role> {
        match *self {
            Self::Nobody => None,
            Self::Operator(name) => Some(Role::Operator { name: name.into() }),
            Self::Client(id) => Some(Role::Client { id: id.into() }),
        }
    }
}

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) router: Router,
    pub(crate) directory: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Attached::WhileWatched, |host| host, |settings| settings)
    }

    pub(crate) fn with(
        attached: Attached,
        prepare: impl FnOnce(HostBuilder) -> HostBuilder,
        settings: impl FnOnce(Settings) -> Settings,
    ) -> Self {
        let journal = Journal::temporary(JournalSettings::default()).unwrap();
        Self::on(journal, attached, prepare, settings)
    }

    /// Creates a world whose server records into this journal.
    pub(crate) fn on(
        journal: Journal,
        attached: Attached,
        prepare: impl FnOnce(HostBuilder) -> HostBuilder,
        settings: impl FnOnce(Settings) -> Settings,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("ws");
        fs::create_dir(&workspace).unwrap();
        let wiring = Wiring::new(journal, RecorderSettings::default(), attached);
        let host = Host::builder().workspace(workspace).cache(CacheMode::Directory(cache()));
        let host = Arc::new(prepare(wiring.wire(host)).build().unwrap());
        let server = Server::new(host, wiring, settings(Settings::default()));
        let router = server.router();
        Self { server, router, directory }
    }

    /// Returns a path in the workspace.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join("ws").join(path)
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    /// Sends a request and returns the response without its body.
    pub(crate) async fn open(
        &self,
        sender: &Sender,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: impl Into<Body>,
    ) -> axum::response::Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(body.into()).unwrap();
        if let Some(role) = sender.role() {
            request.extensions_mut().insert(role);
        }
        let mut router = self.router.clone();
        timeout(LONGEST, router.call(request)).await.unwrap().unwrap()
    }

    /// Sends a request and returns the whole answer.
    pub(crate) async fn send(
        &self,
        sender: &Sender,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let response = self.open(sender, method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let body = timeout(LONGEST, body.collect()).await.unwrap().unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, sender: &Sender, path: &str) -> Answer {
        self.send(sender, "GET", path, &[], Body::empty()).await
    }

    pub(crate) async fn post(&self, sender: &Sender, path: &str, body: Value) -> Answer {
        self.post_with(sender, path, &[], body).await
    }

    pub(crate) async fn post_with(
        &self,
        sender: &Sender,
        path: &str,
        more: &[(&'static str, &str)],
        body: Value,
    ) -> Answer {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(more);
        self.send(sender, "POST", path, &headers, body.to_string()).await
    }

    /// Opens a session.
    pub(crate) async fn session(&self, sender: &Sender, id: &str) {
        let answer = self.post(sender, "/sessions", json!({"id": id})).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    /// Makes a call in a task of its own.
    pub(crate) fn begin_call(
        self: &Arc<Self>,
        sender: Sender,
        session: &str,
        call: Value,
    ) -> tokio::task::JoinHandle<Answer> {
        let world = self.clone();
        let path = format!("/sessions/{session}/calls");
        tokio::spawn(async move { world.post(&sender, &path, call).await })
    }

    /// Opens a stream of events.
    pub(crate) async fn events(&self, sender: &Sender, path: &str) -> Events {
        self.events_after(sender, path, None).await
    }

    pub(crate) async fn events_after(
        &self,
        sender: &Sender,
        path: &str,
        last: Option<&str>,
    ) -> Events {
        let headers: Vec<_> = last.map(|id| ("last-event-id", id)).into_iter().collect();
        let response = self.open(sender, "GET", path, &headers, Body::empty()).await;
        assert_eq!(response.status(), StatusCode::OK);
        let kind = response.headers().get(header::CONTENT_TYPE).cloned();
        assert_eq!(kind.unwrap(), "text/event-stream");
        Events { body: response.into_body(), text: String::new(), last: None }
    }

    /// Waits for the first open question.
    pub(crate) async fn question(&self) -> Value {
        let asked = async {
            loop {
                let mut list = self.get(&OPERATOR, "/confirmations").await.json();
                if let Some(question) = list["items"].as_array_mut().and_then(Vec::pop) {
                    return question;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONGEST, asked).await.unwrap()
    }

    /// Answers a question.
    pub(crate) async fn answer(&self, sender: &Sender, question: &Value, decision: &str) -> Answer {
        let part = |key: &str| question[key].as_str().unwrap_or("-").to_owned();
        let (session, turn, id) = (part("session_id"), part("turn_id"), part("request_id"));
        let path = format!("/sessions/{session}/turns/{turn}/confirmations/{id}");
        self.post(sender, &path, json!({"decision": decision})).await
    }
}

/// Returns the cache of compiled plugins that all tests share.
fn cache() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let cache = target.join("palisade-plugins");
    fs::create_dir_all(&cache).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).unwrap();
    cache
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the status and the code of a problem, which has its media type.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16(), "{problem}");
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
        (self.status.as_u16(), problem["code"].as_str().unwrap().to_owned())
    }
}

/// A stream of events.
pub(crate) struct Events {
    body: Body,
    text: String,
    /// The last `id`.
    pub(crate) last: Option<String>,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeenEvent {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    /// Returns the next event. `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<SeenEvent> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let value = block.lines().find_map(|line| line.strip_prefix(name));
                    value.map(|value| value.trim_start().to_owned())
                };
                let id = field("id:");
                self.last = id.clone().or(self.last.take());
                if let (Some(name), Some(data)) = (field("event:"), field("data:")) {
                    let data = serde_json::from_str(&data).unwrap();
                    return Some(SeenEvent { id, name, data });
                }
            }
            let frame = timeout(LONGEST, self.body.frame()).await.unwrap()?.unwrap();
            self.text.push_str(str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }

    /// Returns the next event of this name; others are passed over.
    pub(crate) async fn until(&mut self, name: &str) -> SeenEvent {
        loop {
            let event = self.next().await.unwrap();
            if event.name == name {
                return event;
            }
        }
    }
}
