//! The parts of a request that handlers take: its sender, ids, filters and body, each checked.

use super::offload;
use super::problem::ApiError;
use super::state::App;
use crate::role::Role;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, NestedPath, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use palisade::internal::Account;
use palisade::tool::Digest;
use palisade::tool::budget::Budget;
use palisade::tool::json::{JsonBounds, parse_within};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::convert::Infallible;
use std::error::Error as _;

/// The bounds of a body. It leaves room around the longest input of a call, and for a provider's
/// reply with several of them.
const BODY: JsonBounds = JsonBounds { bytes: 4 << 20, depth: 100, members: 100_000 };
/// The sender of a request.
pub(super) struct Caller(pub(super) Role);

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        parts.extensions.get::<Role>().cloned().map(Self).ok_or(ApiError::Unauthenticated)
    }
}

/// The operator's name. Clients are refused.
pub(super) struct Operator(pub(super) std::sync::Arc<str>);

impl FromRequestParts<App> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Caller::from_request_parts(parts, app).await?.0 {
            Role::Operator { name } => Ok(Self(name)),
            Role::Client { .. } => Err(ApiError::OperatorOnly { what: "this resource" }),
        }
    }
}

/// The path below which the program has mounted the router; empty for the root.
pub(super) struct MountedAt(pub(super) String);

impl FromRequestParts<App> for MountedAt {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let nested = NestedPath::from_request_parts(parts, app).await;
        let path = nested.map(|path| path.as_str().trim_end_matches('/').to_owned());
        Ok(Self(path.unwrap_or_default()))
    }
}

/// The ids in the path.
pub(super) struct Ids<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Ids<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, app).await;
        path.map(|Path(ids)| Self(ids)).map_err(|error| ApiError::Path(error.body_text()))
    }
}

/// The parameters in the query. Unknown ones are refused.
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        match Query::<T>::from_request_parts(parts, app).await {
            Ok(Query(parameters)) => Ok(Self(parameters)),
            Err(error) => {
                let why = error.source().map_or_else(|| error.body_text(), ToString::to_string);
                Err(ApiError::Query(why))
            }
        }
    }
}

/// The body of a request, as JSON without unknown members, and its digest.
pub(super) struct JsonBody<T> {
    pub(super) value: T,
    pub(super) digest: Digest,
    /// The length of the body, in bytes.
    pub(super) length: usize,
    /// The memory of the request, which counts until its work has ended.
    pub(super) account: Account,
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let role = parts.extensions.get::<Role>().ok_or(ApiError::Unauthenticated)?;
        if !is_json(&parts.headers) {
            return Err(ApiError::MediaType);
        }
        let length = announced(&parts.headers)?;
        // A server that has read and counted the body says so.
        let account = match parts.extensions.get::<Account>() {
            Some(account) => account.clone(),
            None => app.account_for(role, length)?,
        };
        let bytes = read(body).await?;
        let length = bytes.len();
        let parsed = offload::read(length, &account, move |budget| parse(&bytes, budget));
        let (value, digest) = parsed.await.map_err(ApiError::NoMemory)??;
        Ok(Self { value, digest, length, account })
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns the most bytes that the body has. A body that is announced as too long is refused before
/// it is sent.
fn announced(headers: &HeaderMap) -> Result<usize, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match announced.and_then(|length| length.parse::<u64>().ok()) {
        None => Ok(BODY.bytes),
        Some(length) => usize::try_from(length)
            .ok()
            .filter(|length| *length <= BODY.bytes)
            .ok_or(ApiError::BodyTooLarge { limit: BODY.bytes }),
    }
}

async fn read(body: Body) -> Result<Bytes, ApiError> {
    to_bytes(body, BODY.bytes).await.map_err(|error| {
        let is_too_long = error.source().is_some_and(|why| why.to_string().contains("limit"));
        match is_too_long {
            true => ApiError::BodyTooLarge { limit: BODY.bytes },
            false => ApiError::BodyUnreadable,
        }
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8], budget: &dyn Budget) -> Result<(T, Digest), ApiError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        ApiError::Body(format!("byte {} is not UTF-8; JSON is UTF-8", error.valid_up_to()))
    })?;
    // The memory stays reserved in the account of the request.
    let (value, _): (Value, _) = parse_within(text, BODY, budget)?;
    let value = T::deserialize(value).map_err(|error| ApiError::Body(error.to_string()))?;
    Ok((value, Digest::of(bytes)))
}
