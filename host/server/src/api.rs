//! The HTTP API: one file for each resource.
#![allow(unused_qualifications, reason = "the macro that describes a handler writes them")]

mod answers;
mod async_calls;
mod attached;
mod calls;
mod confirmations;
mod definitions;
mod events;
mod extract;
mod guarded;
mod health;
mod history;
mod ids;
mod kept;
mod names;
mod offload;
mod open_sessions;
mod openapi;
mod pages;
mod plugins;
mod problem;
mod remedy;
mod replies;
mod sessions;
mod state;
mod store;
mod uri;

pub use attached::AttachedSession;
pub(crate) use state::{App, Shared};

use crate::console;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use problem::ApiError;
use std::panic::AssertUnwindSafe;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns the router of the API.
pub(crate) fn router(app: App) -> Router {
    let (router, api) = OpenApiRouter::with_openapi(openapi::base(&app.settings.version))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .routes(routes!(openapi::serve))
        .routes(routes!(plugins::list))
        .routes(routes!(definitions::tools))
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::show))
        .routes(routes!(sessions::close))
        .routes(routes!(sessions::cancel))
        .routes(routes!(sessions::cancel_turn))
        .routes(routes!(definitions::definitions))
        .routes(routes!(calls::make))
        .routes(routes!(calls::result))
        .routes(routes!(calls::cancel))
        .routes(routes!(replies::answer))
        .routes(routes!(confirmations::list))
        .routes(routes!(confirmations::show))
        .routes(routes!(confirmations::answer))
        .routes(routes!(history::list))
        .routes(routes!(history::show))
        .routes(routes!(history::summary))
        .routes(routes!(events::all))
        .routes(routes!(events::of_session))
        .split_for_parts();
    // A description is JSON, because all keys of its maps are strings.
    let text = openapi::complete(api).to_json().unwrap_or_default();
    let _ = app.openapi.set(text.into());
    router
        .merge(console::router(|| ApiError::NoSuchPath.into_response()))
        .fallback(|| async { ApiError::NoSuchPath })
        .method_not_allowed_fallback(|| async { ApiError::NoSuchMethod })
        .layer(middleware::from_fn(guard))
        .with_state(app)
}

/// Returns true for the paths that answer `GET` and `HEAD` without a [`Role`](crate::Role), so that
/// a program lets them pass unauthenticated.
#[must_use]
pub fn is_public(path: &str) -> bool {
    path == "/" || path.starts_with("/console/") || openapi::PUBLIC.contains(&path)
}

/// Returns true for the paths whose answer to a `GET` lasts: streams of events. A program that
/// accepts cookies lets only requests of its own pages open them. Browsers send a cookie to each
/// port of its host, so that a cookie alone proves nothing where others can listen.
#[must_use]
pub fn is_stream(path: &str) -> bool {
    path.ends_with("/events")
}

/// Keeps answers out of caches, and turns a panic into a problem.
async fn guard(request: Request, next: Next) -> Response {
    let mut answering = Box::pin(next.run(request));
    let caught = std::future::poll_fn(|cx| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx)));
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    });
    let mut response = match caught.await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!("a request has panicked");
            ApiError::Internal.into_response()
        }
    };
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
