//! The description of the API, generated from the handlers.

use super::problem::Problem;
use super::state::App;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, PathItem, Ref, RefOr,
    ResponseBuilder,
};
use utoipa::{PartialSchema as _, ToSchema as _};

/// The paths that need no role.
pub(super) const PUBLIC: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];

/// The problems that any request may get, in addition to those of its handler.
const PROBLEMS: [(&str, &str); 11] = [
    ("400", "The path, the query, a header or the JSON is not valid"),
    (
        "401",
        "The request carries no accepted token or login: `token_needed`, `token_refused`, `login_ended`, `page_key_needed`, `code_refused` or `unauthenticated`",
    ),
    ("403", "`operator_only`: the resource is not for clients"),
    ("404", "There is no such resource, or it belongs to another client"),
    ("405", "`method_not_allowed`"),
    ("413", "`body_too_large`"),
    ("415", "`media_type`: the body has to be JSON"),
    ("422", "The body is JSON of another form, or names what the server does not allow"),
    ("429", "A limit on sessions or requests was reached"),
    ("500", "`internal`"),
    ("503", "`draining`, `journal_failing` or `idempotency_keys_full`"),
];

/// Returns the description without the paths.
pub(super) fn base(version: &str) -> OpenApi {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let cookie = ApiKey::Cookie(ApiKeyValue::new("palisade"));
    let page_key = ApiKey::Header(ApiKeyValue::new("palisade-page-key"));
    let components = ComponentsBuilder::new()
        .schema("Problem", Problem::schema())
        .security_scheme("token", SecurityScheme::Http(bearer.build()))
        .security_scheme("cookie", SecurityScheme::ApiKey(cookie))
        .security_scheme("page_key", SecurityScheme::ApiKey(page_key));
    let about = "Sessions, calls, confirmations and events of a Palisade host. An operator sees \
                 everything; a client sees its own sessions, calls and events. The program that \
                 serves this API decides who is who.";
    OpenApiBuilder::new()
        .info(InfoBuilder::new().title("Palisade").version(version).description(Some(about)))
        .components(Some(components.build()))
        .build()
}

/// Adds to each operation what holds for all of them.
pub(super) fn complete(mut api: OpenApi) -> OpenApi {
    for (path, item) in &mut api.paths.paths {
        let is_public = PUBLIC.contains(&path.as_str());
        for operation in operations(item) {
            operation.security = Some(if is_public { Vec::new() } else { accepted() });
            if !is_public {
                add_problems(operation);
            }
        }
    }
    api
}

fn accepted() -> Vec<SecurityRequirement> {
    let scopes: [&str; 0] = [];
    // Browsers send a cookie to each port of a host, so that it counts with a page key only.
    let login = SecurityRequirement::new("cookie", scopes).add("page_key", scopes);
    vec![SecurityRequirement::new("token", scopes), login]
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post].into_iter().filter_map(Option::as_mut)
}

fn add_problems(operation: &mut Operation) {
    let schema = RefOr::Ref(Ref::from_schema_name(Problem::name()));
    for (status, description) in PROBLEMS {
        let content = ContentBuilder::new().schema(Some(schema.clone())).build();
        let response = ResponseBuilder::new()
            .description(description)
            .content("application/problem+json", content)
            .build();
        let responses = &mut operation.responses.responses;
        responses.entry(status.to_owned()).or_insert(RefOr::T(response));
    }
}

/// Returns this description.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "health",
    responses((status = 200, description = "An OpenAPI 3.1 document", body = Object))
)]
pub(super) async fn serve(State(app): State<App>) -> Response {
    let text: Bytes = app.openapi.get().cloned().unwrap_or_default();
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
