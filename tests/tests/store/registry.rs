//! A registry of the tests' own, which speaks the distribution protocol and can lie.

use super::server::{Reply, Request, Server};
use palisade::tool::Digest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The user and the password of a registry that asks for them, as `Basic` sends them.
pub(super) const BASIC: &str = "basic bwu6cgxhbnrlzc13b3jk";
/// The password in [`BASIC`], before it was turned into lower case.
pub(super) const PASSWORD: &str = "planted-word";

/// The content of a registry.
#[derive(Debug, Default)]
pub(super) struct Content {
    blobs: HashMap<String, Vec<u8>>,
    /// Manifests by repository and tag or digest.
    pub(super) manifests: HashMap<String, Vec<u8>>,
    /// Bytes that are sent in place of a blob.
    pub(super) lies: HashMap<String, Vec<u8>>,
}

/// A running registry.
#[derive(Clone)]
pub(super) struct Registry {
    pub(super) server: Server,
    pub(super) content: Arc<Mutex<Content>>,
}

impl Registry {
    /// Starts a registry that is open to everyone.
    pub(super) fn start() -> Self {
        Self::begin(|_, _| None)
    }

    /// Starts a registry that gives a token for the password alone.
    pub(super) fn with_tokens() -> Self {
        Self::begin(|request, port| {
            if request.path.starts_with("/token?") {
                let is_known = request.head.contains(&format!("authorization: {BASIC}"));
                let of = if request.path.contains("push") { "push" } else { "pull" };
                let token = Reply::new(200, format!("{{\"token\": \"a-token-{of}\"}}"));
                return Some(if is_known { token } else { Reply::new(401, "no") });
            }
            let is_read = ["GET", "HEAD"].contains(&request.method.as_str());
            let known = if is_read { "a-token-" } else { "a-token-push" };
            let is_known = request.head.contains(&format!("authorization: bearer {known}"));
            let of = if is_read { "pull" } else { "pull,push" };
            let challenge = format!(
                "Bearer realm=\"http://localhost:{port}/token\",service=\"test\",scope=\"repository:git:{of}\""
            );
            (!is_known).then(|| Reply::new(401, "").with("www-authenticate", &challenge))
        })
    }

    /// Starts a registry whose blobs and uploads lie at another server, as with the storage behind
    /// a registry.
    pub(super) fn leading_to(other: String) -> Self {
        Self::begin(move |request, _| {
            let is_upload = request.path.ends_with("/blobs/uploads/");
            let leads = |status, rest: &str| {
                Some(Reply::new(status, "").with("location", &format!("http://{other}{rest}")))
            };
            match request.method.as_str() {
                "GET" if request.path.contains("/blobs/") => leads(307, &request.path),
                "POST" if is_upload => leads(202, "/upload"),
                _ => None,
            }
        })
    }

    fn begin(gate: impl Fn(&Request, u16) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let content: Arc<Mutex<Content>> = Arc::default();
        let held = content.clone();
        let port = Arc::new(Mutex::new(0));
        let own = port.clone();
        let server = Server::start(move |request| {
            let port = *own.lock().unwrap();
            gate(request, port).unwrap_or_else(|| held.lock().unwrap().answer(request))
        });
        *port.lock().unwrap() = server.port();
        Self { server, content }
    }

    /// Returns a source in this registry.
    pub(super) fn at(&self, rest: &str) -> String {
        format!("oci://{}/{rest}", self.server.authority())
    }
}

impl Content {
    /// Returns a blob that was uploaded.
    pub(super) fn blob(&self, digest: &str) -> &[u8] {
        &self.blobs[digest]
    }

    fn answer(&mut self, request: &Request) -> Reply {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let Some(path) = path.strip_prefix("/v2/") else { return Reply::new(404, "") };
        if path.ends_with("/blobs/uploads/") {
            return Reply::new(202, "").with("location", "/v2/upload/one?state=a");
        }
        if request.method == "PUT" && path == "upload/one" {
            let digest = query.split("digest=").nth(1).unwrap().replace("%3A", ":");
            assert_eq!(digest, Digest::of(&request.body).to_string());
            self.blobs.insert(digest, request.body.clone());
            return Reply::new(201, "");
        }
        if let Some((_, digest)) = path.split_once("/blobs/") {
            let blob = self.lies.get(digest).or_else(|| self.blobs.get(digest));
            return blob.map_or_else(|| Reply::new(404, ""), |blob| Reply::new(200, blob.clone()));
        }
        let Some((repository, name)) = path.split_once("/manifests/") else {
            return Reply::new(404, "");
        };
        if request.method == "PUT" {
            let digest = Digest::of(&request.body);
            for name in [name, &digest.to_string()] {
                self.manifests.insert(format!("{repository}:{name}"), request.body.clone());
            }
            return Reply::new(201, "");
        }
        let manifest = self.manifests.get(&format!("{repository}:{name}"));
        manifest.map_or_else(|| Reply::new(404, "unknown"), |text| Reply::new(200, text.clone()))
    }
}
