//! The files of the console, which are part of the program.

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use palisade::tool::Digest;

/// The policy of the page: it runs the program's own scripts, and talks to the program alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The headers of every file.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    // The files change with the program, at the same addresses.
    (header::CACHE_CONTROL, "no-cache"),
];

/// A file of the console, with its path below `/console/`.
struct File {
    path: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(File { path: $path, bytes: include_bytes!(concat!("../console/", $path)) }),*]
    };
}

const INDEX: File = File { path: "index.html", bytes: include_bytes!("../console/index.html") };

static FILES: &[File] = &files![
    "charts.css",
    "controls.css",
    "dialogs.css",
    "icon.svg",
    "js/announce.js",
    "js/api.js",
    "js/ask.js",
    "js/bars.js",
    "js/dialog-parts.js",
    "js/dialog.js",
    "js/diff.js",
    "js/dom.js",
    "js/format.js",
    "js/frame.js",
    "js/live.js",
    "js/main.js",
    "js/notices.js",
    "js/pace.js",
    "js/page-key.js",
    "js/parts.js",
    "js/progress.js",
    "js/question-buttons.js",
    "js/question-content.js",
    "js/questions.js",
    "js/router.js",
    "js/stage.js",
    "js/stream.js",
    "js/tabs.js",
    "js/text.js",
    "js/views/call.js",
    "js/views/calls-table.js",
    "js/views/charts.js",
    "js/views/first-steps.js",
    "js/views/history.js",
    "js/views/now.js",
    "js/views/plugins.js",
    "js/views/session.js",
    "js/views/sessions.js",
    "js/views/signed-out.js",
    "js/views/timeline.js",
    "parts.css",
    "style.css",
    "tables.css",
];

impl File {
    fn media_type(&self) -> &'static str {
        match self.path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }

    /// Returns the response to a request for this file.
    fn respond(&self, request: &HeaderMap) -> Response {
        let tag = format!("\"{}\"", Digest::of(self.bytes).hex());
        let is_known = is_known(request, &tag);
        let body = if is_known { Body::empty() } else { Body::from(self.bytes) };
        let mut response = Response::new(body);
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type()));
        if let Ok(tag) = HeaderValue::try_from(tag) {
            headers.insert(header::ETAG, tag);
        }
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Returns true if the client has the file with this tag. There may be several lines, each with a
/// list of tags; proxies weaken a tag when they change the form of a body.
fn is_known(request: &HeaderMap, tag: &str) -> bool {
    let lines = request.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    tags.any(|known| {
        let known = known.trim();
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
    })
}

/// Returns the router of the page and its files.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(
    missing: impl Fn() -> Response + Clone + Send + Sync + 'static,
) -> Router<S> {
    let file = move |Path(path): Path<String>, headers: HeaderMap| async move {
        let file = FILES.iter().find(|file| file.path == path);
        file.map_or_else(missing, |file| file.respond(&headers))
    };
    Router::new()
        .route("/", get(|headers: HeaderMap| async move { INDEX.respond(&headers) }))
        .route("/console/{*path}", get(file))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot read the sources has failed")]
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    fn add_files(directory: &Path, root: &Path, all: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add_files(&path, root, all);
            } else {
                let path = path.strip_prefix(root).unwrap();
                all.insert(path.to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn known_tag_is_found_in_every_list() {
        let known = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::IF_NONE_MATCH, HeaderValue::from_static(line));
            }
            is_known(&headers, "\"ab\"")
        };
        let hits: [&[&str]; 6] = [
            &["\"ab\""],
            &["\"x\", \"ab\""],
            &["\"x\",\"ab\" , \"y\""],
            &["\"x\"", "\"ab\""],
            &["W/\"ab\""],
            &["*"],
        ];
        for lines in hits {
            assert!(known(lines), "{lines:?}");
        }
        let misses: [&[&str]; 5] = [&[], &["\"x\", \"y\""], &["ab"], &["\"abc\""], &["\"\""]];
        for lines in misses {
            assert!(!known(lines), "{lines:?}");
        }
    }

    #[test]
    fn every_file_of_the_console_is_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        let mut there = BTreeSet::new();
        add_files(&root, &root, &mut there);
        let served: BTreeSet<_> =
            FILES.iter().chain([&INDEX]).map(|file| file.path.to_owned()).collect();
        assert_eq!(served, there);
        assert!(FILES.iter().all(|file| file.media_type() != "application/octet-stream"));
    }
}
