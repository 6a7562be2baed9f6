//! The session of a client, as the program around the server sees it: who claims to be at its other
//! end, and when it begins and ends.

use palisade::Session;
use palisade::tool::text::cut;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// The maximum length of a name or a version that a client claims, in bytes.
const MAX_NAME: usize = 256;
/// The maximum length of a protocol revision, in bytes.
const MAX_REVISION: usize = 32;

/// The transport of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// Standard input and output.
    Stdio,
    /// HTTP.
    Http,
}

impl TransportKind {
    /// Returns the value of OpenTelemetry's attribute `network.transport`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "pipe",
            Self::Http => "tcp",
        }
    }
}

/// Learns of the sessions of clients. Both functions run while a lock of the session is held: they
/// may read the session, and must neither block nor end it.
pub trait SessionObserver: Send + Sync {
    /// A session has begun: its client has introduced itself, and has not called a tool yet.
    fn opened(&self, session: &ClientSession);

    /// A session that was opened has ended. Its calls are cancelled, and some may still run.
    fn closed(&self, session: &ClientSession);
}

/// The identity of the client at the other end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Introduction {
    /// The [id](crate::http::Caller::id) of the client's token. `None` over standard input and
    /// output, and for the operator.
    pub client: Option<Arc<str>>,
    /// The name that the client claims, up to 256 bytes. Nothing verifies it, and it may contain
    /// any characters.
    pub name: Option<String>,
    /// The version that the client claims, as unverified as the name.
    pub version: Option<String>,
    /// The revision of the protocol, such as `2025-11-25`.
    pub protocol: Option<String>,
}

impl Introduction {
    /// Creates an introduction. Long texts are cut.
    pub(crate) fn new(
        client: Option<String>,
        info: Option<(&str, &str)>,
        protocol: Option<&str>,
    ) -> Self {
        let (name, version) = info.unzip();
        let claimed = |text: &str| cut(text, MAX_NAME).to_owned();
        Self {
            client: client.map(Into::into),
            name: name.map(claimed),
            version: version.map(claimed),
            protocol: protocol.map(|revision| cut(revision, MAX_REVISION).to_owned()),
        }
    }
}

/// The session of a client. Clones share it.
#[derive(Clone)]
pub struct ClientSession(Arc<Inner>);

struct Inner {
    session: Session,
    transport: TransportKind,
    introduction: OnceLock<Introduction>,
    ended: CancellationToken,
    observer: Option<Arc<dyn SessionObserver>>,
    /// Set when the observer was told of the beginning, so that later requests need no lock.
    told: OnceLock<()>,
    /// Held while the observer is told, so that it learns of a beginning before its end.
    phase: Mutex<Phase>,
}

/// The observer's knowledge of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Unknown,
    Opened,
    Ended,
}

impl ClientSession {
    /// Wraps a session that begins.
    pub(super) fn new(
        session: Session,
        transport: TransportKind,
        observer: Option<Arc<dyn SessionObserver>>,
    ) -> Self {
        Self(Arc::new(Inner {
            session,
            transport,
            introduction: OnceLock::new(),
            ended: CancellationToken::new(),
            observer,
            told: OnceLock::new(),
            phase: Mutex::new(Phase::Unknown),
        }))
    }

    /// Returns the id, in which random bytes of this run make it unlike the ids of other runs.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.session.id().map_or("", |id| &**id)
    }

    /// Returns the session of the client's calls.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// Returns the transport.
    #[must_use]
    pub fn transport(&self) -> TransportKind {
        self.0.transport
    }

    /// Returns who is at the other end, once the client has introduced itself.
    #[must_use]
    pub fn introduction(&self) -> Option<&Introduction> {
        self.0.introduction.get()
    }

    /// Ends the session: its calls are cancelled, and it takes no more. A client over HTTP that
    /// comes back gets a new one; over standard input and output there is no other.
    pub fn end(&self) {
        // First, so that all calls are stopped before `ended` completes.
        self.0.session.close();
        self.0.ended.cancel();
        let mut phase = self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *phase, Phase::Ended);
        if before == Phase::Opened
            && let Some(observer) = &self.0.observer
        {
            observer.closed(self);
        }
    }

    /// Returns true if the session has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Completes when the session has ended.
    pub(crate) async fn ended(&self) {
        self.0.ended.cancelled().await;
    }

    /// Returns the token that is cancelled when the session ends.
    pub(crate) fn end_token(&self) -> CancellationToken {
        self.0.ended.clone()
    }

    /// Tells the observer who is at the other end, and returns when it knows. Only the first
    /// introduction counts: later messages may claim another name.
    pub(crate) fn introduce(&self, introduction: impl FnOnce() -> Introduction) {
        if self.0.told.get().is_some() {
            return;
        }
        let mut phase = self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if *phase != Phase::Unknown {
            return;
        }
        *phase = Phase::Opened;
        self.0.introduction.get_or_init(introduction);
        if let Some(observer) = &self.0.observer {
            observer.opened(self);
        }
        self.0.told.get_or_init(|| ());
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSession").field("id", &self.id()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::clients::session_factory::SessionFactory;
    use palisade::Host;
    use palisade::plugins::Shipped;

    /// The reports to an observer, in their order.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Told {
        fn note(&self, what: &str, session: &ClientSession) {
            let name = session.introduction().and_then(|it| it.name.clone());
            self.0.lock().unwrap().push(format!("{what} {}", name.unwrap_or_default()));
        }
    }

    impl SessionObserver for Told {
        fn opened(&self, session: &ClientSession) {
            self.note("opened", session);
        }

        fn closed(&self, session: &ClientSession) {
            self.note("closed", session);
        }
    }

    fn factory(told: &Arc<Told>) -> SessionFactory {
        let place = std::env::temp_dir();
        let host = Host::builder().workspace(place).shipped(Shipped::LeftOut).build().unwrap();
        SessionFactory::new(Arc::new(host), Some(told.clone())).unwrap()
    }

    fn named(name: &str) -> Introduction {
        Introduction::new(None, Some((name, "1")), Some("2025-11-25"))
    }

    #[test]
    fn observer_learns_of_each_beginning_and_end_once() {
        let told = Arc::new(Told::default());
        let factory = factory(&told);
        let session = factory.open(TransportKind::Http, None);
        session.introduce(|| named("one"));
        session.introduce(|| named("another"));
        session.end();
        session.end();
        session.introduce(|| named("late"));
        assert_eq!(*told.0.lock().unwrap(), ["opened one", "closed one"]);
    }

    #[test]
    fn observer_does_not_learn_of_a_session_without_a_client() {
        let told = Arc::new(Told::default());
        let session = factory(&told).open(TransportKind::Stdio, None);
        session.end();
        session.introduce(|| named("late"));
        assert!(told.0.lock().unwrap().is_empty() && session.has_ended());
    }

    #[test]
    fn session_ids_of_two_runs_differ() {
        let told = Arc::new(Told::default());
        let (first, second) = (factory(&told), factory(&told));
        let id = |factory: &SessionFactory| factory.open(TransportKind::Http, None).id().to_owned();
        let ids = [id(&first), id(&first), id(&second), id(&second)];
        assert!(ids.iter().all(|id| id.starts_with("mcp-")), "{ids:?}");
        assert!((0..4).all(|one| (0..one).all(|other| ids[one] != ids[other])), "{ids:?}");
        let run = |id: &str| id.rsplit_once('-').unwrap().0.to_owned();
        assert_eq!(run(&ids[0]), run(&ids[1]));
        assert_ne!(run(&ids[0]), run(&ids[2]), "the random part is of the run");
    }

    #[test]
    fn claims_of_a_client_are_bounded() {
        let long = "é".repeat(1 << 10);
        let introduction = Introduction::new(None, Some((&long, &long)), Some(&long));
        let length = |text: Option<String>| text.unwrap().len();
        assert_eq!(length(introduction.name), MAX_NAME);
        assert_eq!(length(introduction.version), MAX_NAME);
        assert_eq!(length(introduction.protocol), MAX_REVISION);
    }
}
