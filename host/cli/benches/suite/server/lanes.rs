//! Callers: each has one call in flight, and some of the sessions.

use super::Scale;
use super::connection::{Address, Connection};
use super::served::Served;
use crate::road::Road;
use crate::world::World;
use palisade::{Call, CallMode, Session, json, plugins::Shipped};
use std::future::Future;
use std::sync::Arc;

/// The tool of all calls.
const TOOL: &str = "read_file";

/// The input of all calls.
fn input() -> serde_json::Value {
    json!({"path": "small.txt"})
}

/// A caller.
pub(super) trait Lane: Send + 'static {
    /// Returns the number of its sessions.
    fn sessions(&self) -> usize;

    /// Prepares for calls.
    fn begin(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Holds nothing until the next calls.
    fn end(&mut self) {}

    /// Makes a call in a session.
    fn call(&mut self, session: usize) -> impl Future<Output = ()> + Send;
}

/// A host in this process with its sessions.
pub(super) struct InProcess {
    road: Arc<Road>,
    sessions: Vec<Vec<Session>>,
}

/// A caller of the library.
pub(super) struct OfLibrary {
    road: Arc<Road>,
    sessions: Vec<Session>,
    input: String,
}

/// A caller of the server, over a connection of its own.
pub(super) struct OfServer {
    server: Address,
    /// Open during calls: the server closes a connection that has no request for some seconds.
    connection: Option<Connection>,
    /// The paths to which its sessions post their calls.
    paths: Vec<String>,
    body: String,
}

impl InProcess {
    pub(super) fn new(world: &World, mode: CallMode, scale: &Scale) -> Self {
        let road = Road::with(world.host().shipped(Shipped::Included).call_mode(mode));
        let session = |number| road.host.new_session(&format!("s{number}")).build();
        let sessions = dealt((0..scale.sessions).map(session), scale.at_once);
        Self { road: Arc::new(road), sessions }
    }

    /// Returns the callers.
    pub(super) fn lanes(&self) -> Vec<OfLibrary> {
        let lane = |sessions: &Vec<Session>| OfLibrary {
            road: self.road.clone(),
            sessions: sessions.clone(),
            input: input().to_string(),
        };
        self.sessions.iter().map(lane).collect()
    }
}

impl Lane for OfLibrary {
    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    async fn call(&mut self, session: usize) {
        let call = Call::new(TOOL, self.input.clone());
        let result = self.road.host.dispatch(&self.sessions[session], call).await;
        assert!(result.is_success(), "{result}");
    }
}

impl OfServer {
    /// Opens the sessions.
    pub(super) async fn open(server: &Served, scale: &Scale) -> Vec<Self> {
        let server = server.clients();
        let mut first = server.connect().await;
        for number in 0..scale.sessions {
            first.post("/sessions", &json!({"id": format!("s{number}")}).to_string()).await;
        }
        let paths = (0..scale.sessions).map(|number| format!("/sessions/s{number}/calls"));
        let body = json!({"tool": TOOL, "input": input()}).to_string();
        let lane =
            |paths| Self { server: server.clone(), connection: None, paths, body: body.clone() };
        dealt(paths, scale.at_once).into_iter().map(lane).collect()
    }
}

impl Lane for OfServer {
    fn sessions(&self) -> usize {
        self.paths.len()
    }

    async fn begin(&mut self) {
        self.connection = Some(self.server.connect().await);
    }

    fn end(&mut self) {
        self.connection = None;
    }

    async fn call(&mut self, session: usize) {
        let connection = self.connection.as_mut().expect("the calls have begun");
        let result = connection.post(&self.paths[session], &self.body).await;
        assert!(result.contains(r#""success":true"#), "{result}");
    }
}

/// Deals things to this many hands.
fn dealt<T>(things: impl Iterator<Item = T>, hands: usize) -> Vec<Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..hands).map(|_| Vec::new()).collect();
    for (number, thing) in things.enumerate() {
        dealt[number % hands].push(thing);
    }
    dealt
}
