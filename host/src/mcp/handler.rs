//! The protocol's methods, each a few lines that say who does the work.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::call::{self, Request};
use super::client::Client;
use super::era::{Era, VERSIONS, negotiated};
use super::{Changes, Shared, offers};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, Tool, UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// What a client's model is told of the server as a whole.
const INSTRUCTIONS: &str = "Each tool runs in a sandbox of its own that sees one workspace directory, and nothing else. Paths are relative to it.";
/// How long a list of tools may be kept by a client, in milliseconds, where tools may change, and where they do not.
const KEPT: (u64, u64) = (1_000, 60_000);

/// The methods that there are in either era, of which a request may have come with parameters that are none.
const METHODS: &[&str] = &[
    "tools/list",
    "tools/call",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];
/// Those that there are only before 2026-07-28.
const LEGACY_METHODS: &[&str] =
    &["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
/// How long a client that says hello waits for plugins that are still being loaded, so that it learns of all that they offer.
const HELLO: Duration = Duration::from_secs(5);

/// What answers the requests of one connection.
pub(super) struct Front {
    server: Arc<Shared>,
    client: Arc<Client>,
}

impl Front {
    /// A connection that is one client's from its beginning to its end.
    pub(super) fn of_one(server: Arc<Shared>, client: Arc<Client>) -> Self {
        Self { server, client }
    }

    fn client(&self) -> &Arc<Client> {
        &self.client
    }

    fn watches(&self) -> bool {
        self.server.settings.changes == Changes::Watched
    }

    fn request(&self, context: RequestContext<RoleServer>) -> Request {
        Request { server: self.server.clone(), client: self.client().clone(), context }
    }

    /// How long a list may be kept by a client, in milliseconds.
    fn kept(&self) -> u64 {
        if self.watches() { KEPT.0 } else { KEPT.1 }
    }

    async fn know_offers(&self) {
        let _ = tokio::time::timeout(HELLO, self.server.host.loaded()).await;
    }

    /// What is not announced is not there.
    async fn offering(&self, method: &str, is_its: fn(offers::Kinds) -> bool) -> Result<(), ErrorData> {
        self.know_offers().await;
        if is_its(offers::kinds(&self.server)) { Ok(()) } else { Err(no_method(method)) }
    }

    /// Subscribing is of the older revisions, and of documents that there are.
    async fn subscribable(
        &self,
        (method, uri): (&str, &str),
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if Era::of(context) == Era::Modern {
            return Err(no_method(method));
        }
        self.offering(method, |kinds| kinds.documents).await?;
        offers::owner(&self.server, uri).map(|_| ()).ok_or_else(|| offers::no_document(uri))
    }
}

/// A list with what each era says of it.
macro_rules! listed {
    ($list:expr, $kept:expr, $context:expr) => {
        match Era::of($context) {
            Era::Legacy => $list,
            Era::Modern => $list.with_ttl_ms($kept).with_cache_scope(CacheScope::Private),
        }
    };
}

impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        let capabilities = capabilities(self.watches(), offers::kinds(&self.server));
        let mut info = ServerConfig::new(capabilities).with_instructions(INSTRUCTIONS);
        info.server_info =
            Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).with_title("Palisade");
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    /// The connection is of the revision that was agreed on, whatever was asked for.
    async fn initialize(
        &self,
        mut params: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        params.protocol_version = negotiated(&params.protocol_version);
        self.know_offers().await;
        let mut info = self.get_info();
        info.protocol_version = params.protocol_version.clone();
        context.peer.set_peer_info(params);
        Ok(info)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.know_offers().await;
        Ok(DiscoverResult::from_server_info(VERSIONS.to_vec(), self.get_info()))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = call::list(&self.server, self.client(), Era::of(&context)).await;
        Ok(listed!(ListToolsResult::with_all_items(tools), self.kept(), &context))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.offering("resources/list", |kinds| kinds.documents).await?;
        let listed = ListResourcesResult::with_all_items(offers::resources(&self.server));
        Ok(listed!(listed, self.kept(), &context))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.offering("resources/templates/list", |kinds| kinds.documents).await?;
        let listed = ListResourceTemplatesResult::with_all_items(offers::templates(&self.server));
        Ok(listed!(listed, self.kept(), &context))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.offering("resources/read", |kinds| kinds.documents).await?;
        self.request(context).read(params).await
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribable(("resources/subscribe", &params.uri), &context).await
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribable(("resources/unsubscribe", &params.uri), &context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.offering("prompts/list", |kinds| kinds.prompts).await?;
        Ok(listed!(ListPromptsResult::with_all_items(offers::prompts(&self.server)), self.kept(), &context))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.offering("prompts/get", |kinds| kinds.prompts).await?;
        self.request(context).prompt(params).await
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.offering("completion/complete", |kinds| kinds.prompts).await?;
        self.request(context).complete(params).await
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.request(context).call(params).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tool = self.server.host.registry().get(name).ok()?;
        super::listing::tool(tool.definition(), Era::Modern)
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match Era::of(&context) {
            Era::Legacy => {
                self.client().set_level(params.level);
                Ok(())
            }
            Era::Modern => Err(no_method("logging/setLevel")),
        }
    }

    /// The library takes a request whose parameters it cannot read for one whose method it does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        let is_legacy = Era::of(&context) == Era::Legacy && LEGACY_METHODS.contains(&method);
        if is_legacy || METHODS.contains(&method) {
            return Err(ErrorData::invalid_params(format!("the parameters are none of `{method}`"), None));
        }
        Err(no_method(method))
    }
}

fn capabilities(watches: bool, offered: offers::Kinds) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::builder().enable_logging().enable_tools().build();
    if let (true, Some(tools)) = (watches, &mut capabilities.tools) {
        tools.list_changed = Some(true);
    }
    if offered.documents {
        let with_subscription = ServerCapabilities::builder().enable_resources().enable_resources_subscribe().build();
        capabilities.resources = with_subscription.resources;
    }
    if offered.prompts {
        let with_prompts = ServerCapabilities::builder().enable_prompts().enable_completions().build();
        (capabilities.prompts, capabilities.completions) = (with_prompts.prompts, with_prompts.completions);
    }
    capabilities
}

fn no_method(method: &str) -> ErrorData {
    let method = crate::tool::text::elided(method, 64);
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"), None)
}
