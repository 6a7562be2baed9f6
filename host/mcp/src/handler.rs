//! The handlers of the protocol's methods, which delegate to the modules that do the work.

#![expect(
    deprecated,
    reason = "what the next revision will not have, the clients of the older ones still expect"
)]

mod client_binding;
mod loading;

use crate::calls::tool_call::{Request, unfit};
use crate::clients::client::Client;
use crate::lists::changes::{self, List, Mark, Telling, Way};
use crate::lists::resources_and_prompts;
use crate::lists::tools;
use crate::messages::catch_panic::guarded;
use crate::messages::serialize::granted;
use crate::protocol::lifecycle::{Era, VERSIONS, negotiated};
use crate::protocol::methods;
use crate::protocol::server_info;
use crate::telemetry::request_log::Noted;
use crate::{Changes, Shared};
use client_binding::Seat;
use loading::{HELLO, LISTING};
use palisade::internal::Account;
use palisade::tool::Digest;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, DiscoverResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The handler of the requests of one connection, one session, or a single HTTP request.
pub(crate) struct Front {
    server: Arc<Shared>,
    seat: Seat,
    /// The notification task, which ends with the connection or session.
    telling: OnceLock<Option<Telling>>,
}

impl Front {
    /// Creates the handler of a connection with one client.
    pub(crate) fn of_one(server: Arc<Shared>, client: Arc<Client>) -> Self {
        Self { server, seat: Seat::Own(client), telling: OnceLock::new() }
    }

    /// Creates a handler for HTTP requests.
    pub(crate) fn over_http(server: Arc<Shared>) -> Self {
        Self { server, seat: Seat::Http(OnceLock::new()), telling: OnceLock::new() }
    }

    /// Returns an empty memory account for a message.
    pub(crate) fn account(&self) -> Account {
        self.server.host.limits().account()
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Arc<Client> {
        self.seat.client(&self.server, context)
    }

    fn watches(&self) -> bool {
        self.server.changes() == Changes::Watched
    }

    fn request(&self, context: RequestContext<RoleServer>) -> Request {
        Request {
            server: self.server.clone(),
            client: self.client(&context),
            era: Era::of(&context),
            context,
        }
    }

    /// Returns the code behind a resource, if legacy clients can subscribe to it.
    async fn subscribable(
        &self,
        method: &str,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Digest, ErrorData> {
        if Era::of(context) == Era::Modern || !self.watches() {
            return Err(methods::unknown(method));
        }
        resources_and_prompts::code(&self.server, uri)
            .ok_or_else(|| resources_and_prompts::no_document(uri))
    }
}

/// Adds the cache hints of the modern era to a list, and reserves the memory of its response.
macro_rules! listed {
    ($list:expr, $kept:expr, $context:expr) => {{
        let list = match Era::of($context) {
            Era::Legacy => $list,
            Era::Modern => $list.with_ttl_ms($kept).with_cache_scope(CacheScope::Private),
        };
        granted(list, &$context.extensions)
    }};
}

impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        server_info::info(&self.server)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    /// Negotiates the revision and stores it, so that later requests follow it.
    async fn initialize(
        &self,
        mut params: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let noted = Noted::begin("initialize");
        params.protocol_version = negotiated(&params.protocol_version);
        self.settled(HELLO).await;
        let mut info = self.get_info();
        info.protocol_version = params.protocol_version.clone();
        context.peer.set_peer_info(server_info::kept(params));
        let client = self.client(&context);
        if self.watches() {
            changes::promise(&self.server, &client, Era::Legacy);
        }
        noted.answered(Ok(info))
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let noted = Noted::begin("server/discover");
        self.settled(HELLO).await;
        noted.answered(Ok(DiscoverResult::from_server_info(VERSIONS.to_vec(), self.get_info())))
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::whole(page)?;
        let noted = Noted::begin("tools/list");
        let client = self.client(&context);
        let kept = self.settled(LISTING).await;
        let tools = tools::tools(&self.server.host, client.session(), Era::of(&context));
        self.shows(&context, List::Tools, || Mark::of(&tools));
        noted.answered(listed!(tools::result(&self.server.host, tools), kept, &context))
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let kept = self.offering("resources/list", |kinds| kinds.documents).await?;
        tools::whole(page)?;
        let noted = Noted::begin("resources/list");
        self.shows(&context, List::Resources, || Mark::of_resources(&self.server));
        let listed =
            ListResourcesResult::with_all_items(resources_and_prompts::resources(&self.server));
        noted.answered(listed!(listed, kept, &context))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let kept = self.offering("resources/templates/list", |kinds| kinds.documents).await?;
        tools::whole(page)?;
        let listed = ListResourceTemplatesResult::with_all_items(resources_and_prompts::templates(
            &self.server,
        ));
        listed!(listed, kept, &context)
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.offering("resources/read", |kinds| kinds.documents).await?;
        let noted = Noted::begin("resources/read");
        noted.answered(guarded(Box::pin(self.request(context).read(params))).await)
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let code = self.subscribable("resources/subscribe", &params.uri, &context).await?;
        let taken = self.client(&context).documents().add(&params.uri, Some(code));
        taken.map_err(|full| ErrorData::invalid_request(full.to_string(), None))
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A client may unsubscribe from a resource whose plugin is gone.
        if self.client(&context).documents().remove(&params.uri) {
            return Ok(());
        }
        self.subscribable("resources/unsubscribe", &params.uri, &context).await.map(|_| ())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let kept = self.offering("prompts/list", |kinds| kinds.prompts).await?;
        tools::whole(page)?;
        let noted = Noted::begin("prompts/list");
        let prompts = resources_and_prompts::prompts(&self.server);
        self.shows(&context, List::Prompts, || Mark::of(&prompts));
        noted.answered(listed!(ListPromptsResult::with_all_items(prompts), kept, &context))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.offering("prompts/get", |kinds| kinds.prompts).await?;
        let noted = Noted::begin("prompts/get");
        noted.answered(guarded(Box::pin(self.request(context).prompt(params))).await)
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.offering("completion/complete", |kinds| kinds.prompts).await?;
        let noted = Noted::begin("completion/complete");
        noted.answered(guarded(Box::pin(self.request(context).complete(params))).await)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Boxed, since the library moves the future around.
        guarded(Box::pin(self.request(context).call(params))).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // Asked before each HTTP call, to check headers that repeat parameters. Few tools do.
        let tool = self
            .server
            .host
            .registry()
            .get(name)
            .ok()
            .filter(|tool| tools::repeats_in_headers(tool.definition()))?;
        tools::tool(tool.definition(), Era::Modern)
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match Era::of(&context) {
            Era::Legacy => {
                self.client(&context).set_level(params.level);
                Ok(())
            }
            Era::Modern => Err(methods::unknown("logging/setLevel")),
        }
    }

    /// Starts the notifications of a legacy client, which gets them without a subscription.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.telling.get_or_init(|| {
            Telling::begin(
                &self.server,
                &self.seat.listener(&self.server),
                Way::Legacy(context.peer),
            )
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.watches().then(|| {
            changes::promise(&self.server, &self.seat.listener(&self.server), Era::Modern);
            changes::accepted(&self.server, requested)
        })
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.seat.listener(&self.server);
        let _telling = Telling::begin(&self.server, &client, Way::Modern(context.sink().clone()));
        tokio::select! {
            () = context.cancelled() => {}
            () = client.left() => {}
        }
        Ok(())
    }

    /// Rejects unknown methods, and known ones whose parameters the library cannot parse.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        if methods::is_known(method, Era::of(&context), self.watches()) {
            return Err(unfit(method, request.params.as_ref()));
        }
        Err(methods::unknown(method))
    }
}
