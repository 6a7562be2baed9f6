//! The handlers of the protocol's methods, which delegate to the modules that do the work.

#![expect(
    deprecated,
    reason = "messages that the next revision drops; clients of older revisions expect them"
)]

mod client_binding;
mod loading;

use crate::calls::plugin_request::PluginRequest;
use crate::clients::client::Client;
use crate::clients::known_lists::{ListDigest, ListKind};
use crate::lists::change_channel::ChangeChannel;
use crate::lists::changes::{self, ChangeTask};
use crate::lists::{resources_and_prompts, tools};
use crate::messages::catch_panic::catch_panic;
use crate::messages::serialize::within_memory_or_error;
use crate::protocol::lifecycle::{Lifecycle, VERSIONS, negotiate};
use crate::protocol::methods::{self, invalid_params, unknown_method};
use crate::protocol::{client_info, server_info};
use crate::settings::Changes;
use crate::state::ServerState;
use crate::telemetry::request_log::RequestLog;
use client_binding::ClientBinding;
use loading::{cache_lifetime, require, require_loaded, wait_for_resource};
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
pub(crate) struct McpHandler {
    server: Arc<ServerState>,
    client: ClientBinding,
    /// The notification task, which ends with the connection or session.
    change_task: OnceLock<Option<ChangeTask>>,
}

impl McpHandler {
    /// Creates the handler of a connection with one client.
    pub(crate) fn for_client(server: Arc<ServerState>, client: Arc<Client>) -> Self {
        let client = ClientBinding::Connection(client);
        Self { server, client, change_task: OnceLock::new() }
    }

    /// Creates a handler for HTTP requests.
    pub(crate) fn for_http(server: Arc<ServerState>) -> Self {
        let client = ClientBinding::Http(OnceLock::new());
        Self { server, client, change_task: OnceLock::new() }
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Arc<Client> {
        self.client.of_request(&self.server, context)
    }

    fn subscriber(&self) -> Arc<Client> {
        self.client.of_subscription(&self.server)
    }

    fn notifies_changes(&self) -> bool {
        self.server.changes() == Changes::Watched
    }

    fn plugin_request(&self, context: RequestContext<RoleServer>) -> PluginRequest {
        PluginRequest {
            server: self.server.clone(),
            client: self.client(&context),
            lifecycle: Lifecycle::of_request(&context),
            context,
        }
    }

    /// Records the list that a client is shown, so that it is notified of later changes only.
    fn record_list(
        &self,
        context: &RequestContext<RoleServer>,
        list: ListKind,
        digest: impl FnOnce() -> ListDigest,
    ) {
        if self.notifies_changes() {
            self.client(context).record_list(list, digest());
        }
    }

    /// Returns the code behind a resource, if stateful clients can subscribe to it.
    fn subscribable(
        &self,
        method: &str,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Digest, ErrorData> {
        if Lifecycle::of_request(context) == Lifecycle::Stateless || !self.notifies_changes() {
            return Err(unknown_method(method));
        }
        let code = resources_and_prompts::code_of(&self.server, uri);
        code.ok_or_else(|| resources_and_prompts::unknown_resource(uri))
    }
}

/// Adds the cache hints of the stateless lifecycle to a list, and reserves the memory of its
/// response.
macro_rules! list_response {
    ($list:expr, $lifetime:expr, $context:expr) => {{
        let list = match Lifecycle::of_request($context) {
            Lifecycle::Stateful => $list,
            Lifecycle::Stateless => {
                $list.with_ttl_ms($lifetime).with_cache_scope(CacheScope::Private)
            }
        };
        within_memory_or_error(list, &$context.extensions)
    }};
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        server_info::server_info(resources_and_prompts::features(&self.server))
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
        let log = RequestLog::begin("initialize");
        params.protocol_version = negotiate(&params.protocol_version);
        self.server.loading();
        let mut info = self.get_info();
        info.protocol_version = params.protocol_version.clone();
        context.peer.set_peer_info(client_info::reduced(params));
        let client = self.client(&context);
        if self.notifies_changes() {
            changes::record_baseline(&self.server, &client, Lifecycle::Stateful);
        }
        log.record(Ok(info))
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let log = RequestLog::begin("server/discover");
        self.server.loading();
        log.record(Ok(DiscoverResult::from_server_info(VERSIONS.to_vec(), self.get_info())))
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::reject_cursor(page)?;
        let log = RequestLog::begin("tools/list");
        let client = self.client(&context);
        let lifetime = cache_lifetime(&self.server);
        let lifecycle = Lifecycle::of_request(&context);
        let tools = tools::visible_tools(&self.server.host, client.session(), lifecycle);
        self.record_list(&context, ListKind::Tools, || ListDigest::of(&tools));
        let list = tools::list_result(&self.server.host, tools);
        log.record(list_response!(list, lifetime, &context))
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let lifetime = require(&self.server, "resources/list", |has| has.resources)?;
        tools::reject_cursor(page)?;
        let log = RequestLog::begin("resources/list");
        let digest = || resources_and_prompts::resources_digest(&self.server);
        self.record_list(&context, ListKind::Resources, digest);
        let resources = resources_and_prompts::resources(&self.server);
        let list = ListResourcesResult::with_all_items(resources);
        log.record(list_response!(list, lifetime, &context))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let method = "resources/templates/list";
        let lifetime = require(&self.server, method, |has| has.resources)?;
        tools::reject_cursor(page)?;
        let templates = resources_and_prompts::templates(&self.server);
        let list = ListResourceTemplatesResult::with_all_items(templates);
        list_response!(list, lifetime, &context)
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        wait_for_resource(&self.server, &params.uri).await;
        require(&self.server, "resources/read", |has| has.resources)?;
        let log = RequestLog::begin("resources/read");
        let reading = self.plugin_request(context).read_resource(params);
        log.record(catch_panic(Box::pin(reading)).await)
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        wait_for_resource(&self.server, &params.uri).await;
        let code = self.subscribable("resources/subscribe", &params.uri, &context)?;
        let added = self.client(&context).subscriptions().add(&params.uri, Some(code));
        added.map_err(|full| ErrorData::invalid_request(full.to_string(), None))
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A client may unsubscribe from a resource whose plugin is gone.
        if self.client(&context).subscriptions().remove(&params.uri) {
            return Ok(());
        }
        self.subscribable("resources/unsubscribe", &params.uri, &context).map(|_| ())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let lifetime = require(&self.server, "prompts/list", |has| has.prompts)?;
        tools::reject_cursor(page)?;
        let log = RequestLog::begin("prompts/list");
        let prompts = resources_and_prompts::prompts(&self.server);
        self.record_list(&context, ListKind::Prompts, || ListDigest::of(&prompts));
        let list = ListPromptsResult::with_all_items(prompts);
        log.record(list_response!(list, lifetime, &context))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        require_loaded(&self.server, "prompts/get", |has| has.prompts).await?;
        let log = RequestLog::begin("prompts/get");
        let getting = self.plugin_request(context).get_prompt(params);
        log.record(catch_panic(Box::pin(getting)).await)
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        require_loaded(&self.server, "completion/complete", |has| has.prompts).await?;
        let log = RequestLog::begin("completion/complete");
        let completing = self.plugin_request(context).complete(params);
        log.record(catch_panic(Box::pin(completing)).await)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Boxed, since `rmcp` moves the future around.
        catch_panic(Box::pin(self.plugin_request(context).call_tool(params))).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // CallAnswer before each HTTP call, to check headers that repeat parameters. Few tools do.
        let tool = self.server.host.registry().get(name).ok()?;
        let definition = tool.definition();
        tools::has_header_parameters(definition)
            .then(|| tools::convert(definition, Lifecycle::Stateless))?
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match Lifecycle::of_request(&context) {
            Lifecycle::Stateful => {
                self.client(&context).set_log_level(params.level);
                Ok(())
            }
            Lifecycle::Stateless => Err(unknown_method("logging/setLevel")),
        }
    }

    /// Starts the notifications of a stateful client, which gets them without a subscription.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.change_task.get_or_init(|| {
            let channel = ChangeChannel::Stateful(context.peer);
            ChangeTask::start(&self.server, &self.subscriber(), channel)
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.notifies_changes().then(|| {
            changes::record_baseline(&self.server, &self.subscriber(), Lifecycle::Stateless);
            changes::accepted_filter(&self.server, requested)
        })
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.subscriber();
        let channel = ChangeChannel::Stateless(context.sink().clone());
        let _task = ChangeTask::start(&self.server, &client, channel);
        tokio::select! {
            () = context.cancelled() => {}
            () = client.disconnected() => {}
        }
        Ok(())
    }

    /// Rejects unknown methods, and known ones whose parameters `rmcp` cannot parse.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        let lifecycle = Lifecycle::of_request(&context);
        if methods::is_known(method, lifecycle, self.notifies_changes()) {
            return Err(invalid_params(method, request.params.as_ref()));
        }
        Err(unknown_method(method))
    }
}
