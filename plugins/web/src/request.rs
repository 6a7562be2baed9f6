//! The `http_request` tool.

use crate::address::Address;
use crate::exchange::{End, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_guest::{Context, Error, Json, Result, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wasip2::http::types;

/// The default limit of a response's body, in bytes.
const BODY_BYTES: usize = 256 * 1024;

/// The largest limit, in bytes: the host accepts 4 MiB per call, and escaping makes text longer.
const MAX_BYTES: usize = 1_500_000;

/// The request to send.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The absolute URL, with http or https.
    #[schemars(regex(pattern = "^[Hh][Tt][Tt][Pp][Ss]?://"), example = "https://example.org/")]
    url: String,
    /// The method. Default: GET.
    #[serde(default)]
    method: Method,
    /// The headers of the request. The host sets `host`, the length, and headers with secrets.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body, as text. Say in `headers` which type it has. Default: no body.
    #[serde(default)]
    body: String,
    /// The most bytes of the response's body to return, up to 1500000. Default: 262144.
    #[schemars(range(min = 1, max = 1_500_000))]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl From<Method> for types::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::Get,
            Method::Head => Self::Head,
            Method::Post => Self::Post,
            Method::Put => Self::Put,
            Method::Patch => Self::Patch,
            Method::Delete => Self::Delete,
            Method::Options => Self::Options,
        }
    }
}

/// The response of the server.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reply {
    /// The status code.
    status: u16,
    /// The headers, in the server's order.
    headers: Vec<Header>,
    /// The body as text, or as base64 if it is no UTF-8.
    body: String,
    /// The encoding of `body`: `text` or `base64`.
    encoding: Encoding,
    /// Whether the body is longer than `limit`, so that its end is missing.
    cut: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Text,
    Base64,
}

#[derive(Serialize, JsonSchema)]
struct Header {
    /// The name, in lower case.
    name: String,
    /// The value.
    value: String,
}

/// Sends one HTTP request, and returns status, headers and body of the response as JSON.
///
/// It reaches the hosts that the user has granted, with the methods granted for them; other requests
/// are refused. Redirects are not followed: the response has a `location` header, and the next
/// request is a call of its own. A status such as 404 is a response and no error. To read a page,
/// use web_fetch.
#[tool(side_effects = "network", title = "Send an HTTP request")]
pub(crate) fn http_request(args: Args, ctx: &Context) -> Result<Json<Reply>> {
    let limit = args.limit.unwrap_or(BODY_BYTES);
    if !(1..=MAX_BYTES).contains(&limit) {
        return Err(Error::invalid_input(
            "limit",
            format!("{limit} is not between 1 and {MAX_BYTES} bytes"),
        ));
    }
    let headers: Vec<(String, String)> = args.headers.into_iter().collect();
    let request = Request {
        method: args.method.into(),
        address: &Address::parse(&args.url)?,
        headers: &headers,
        body: args.body.as_bytes(),
        limit,
    };
    let response = request.send(ctx)?;
    let headers = response.headers.into_iter().map(|(name, value)| Header { name, value });
    let (body, encoding) = match String::from_utf8(response.body) {
        Ok(text) => (text, Encoding::Text),
        Err(error) => (STANDARD.encode(error.as_bytes()), Encoding::Base64),
    };
    Ok(Json(Reply {
        status: response.status,
        headers: headers.collect(),
        body,
        encoding,
        cut: response.end == End::Beyond,
    }))
}
