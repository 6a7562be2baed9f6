//! The handlers of the protocol's methods, which delegate to the modules that do the work.

#![expect(
    deprecated,
    reason = "messages that the next revision drops; clients of older revisions expect them"
)]

mod client_binding;
mod loading;
pub(crate) mod prepare;

use crate::calls::plugin_request::PluginRequest;
use crate::calls::prompt::unknown_subject;
use crate::clients::client::Client;
use crate::clients::known_lists::{ListDigest, ListKind};
use crate::lists::change_channel::ChangeChannel;
use crate::lists::changes::{self, ChangeTask};
use crate::lists::page::{Page, page};
use crate::lists::{resources_and_prompts, tools};
use crate::messages::catch_panic::catch_panic;
use crate::messages::extensions;
use crate::messages::serialize::{CANNOT_ANSWER, reserve_length};
use crate::protocol::lifecycle::{Lifecycle, VERSIONS, negotiate};
use crate::protocol::methods::{self, invalid_params, unknown_method};
use crate::protocol::tool_result::exhausted_error;
use crate::protocol::{client_info, server_info};
use crate::settings::Changes;
use crate::state::ServerState;
use crate::state::list_cache::HeaderParameters;
use crate::telemetry::request_log::RequestLog;
use client_binding::ClientBinding;
use loading::{cache_lifetime, require, wait_for_completed, wait_for_prompt, wait_for_resource};
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
        PluginRequest::new(self.server.clone(), self.client(&context), context)
    }

    /// Records the list that a client is shown, so that it is notified of later changes only.
    fn record_list(
        &self,
        context: &RequestContext<RoleServer>,
        list: ListKind,
        digest: ListDigest,
    ) {
        if self.notifies_changes() {
            self.client(context).record_list(list, digest);
        }
    }

    /// Returns the code behind a resource, if stateful clients can subscribe to it.
    async fn subscribable(
        &self,
        method: &str,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Digest, ErrorData> {
        if Lifecycle::of_request(context) == Lifecycle::Stateless || !self.notifies_changes() {
            return Err(unknown_method(method));
        }
        let found = wait_for_resource(&self.server, uri, self.account(context)).await?;
        found
            .map(|plugin| plugin.digest())
            .ok_or_else(|| resources_and_prompts::unknown_resource(uri))
    }

    /// Returns the memory account of a request.
    fn account(&self, context: &RequestContext<RoleServer>) -> Account {
        extensions::account(&context.extensions)
            .unwrap_or_else(|| self.server.host.limits().account())
    }
}

/// Adds the cache hints of the stateless lifecycle to a list, and reserves the memory of its
/// response.
macro_rules! list_response {
    ($list:expr, $length:expr, $lifetime:expr, $context:expr) => {{
        let list = match Lifecycle::of_request($context) {
            Lifecycle::Stateful => $list,
            Lifecycle::Stateless => {
                $list.with_ttl_ms($lifetime).with_cache_scope(CacheScope::Private)
            }
        };
        let library = extensions::account_of_library(&$context.extensions);
        reserve_length($length, library.as_ref())
            .map(|()| list)
            .map_err(|why| exhausted_error(CANNOT_ANSWER, why))
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
            changes::record_baseline(&self.server, &client).await;
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
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let log = RequestLog::begin("tools/list");
        let client = self.client(&context);
        let lifetime = cache_lifetime(&self.server);
        let lifecycle = Lifecycle::of_request(&context);
        let visible = tools::visible(&self.server, client.session()).await?;
        let digest = tools::digest(&visible, lifecycle);
        let items = visible.iter().map(|tool| tools::form(tool, lifecycle));
        let Page { items, next, length } = page(items, digest, request)?;
        self.record_list(&context, ListKind::Tools, digest);
        let mut list = tools::list_result(&self.server.host, items);
        list.next_cursor = next;
        log.record(list_response!(list, length, lifetime, &context))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let lifetime = require(&self.server, "resources/list", |has| has.resources)?;
        let log = RequestLog::begin("resources/list");
        let offers = resources_and_prompts::offers(&self.server).await?;
        let digest = resources_and_prompts::resources_digest(&offers);
        let items = offers.iter().flat_map(|offer| &offer.resources);
        let Page { items, next, length } = page(items, digest, request)?;
        self.record_list(&context, ListKind::Resources, digest);
        let mut list = ListResourcesResult::with_all_items(items);
        list.next_cursor = next;
        log.record(list_response!(list, length, lifetime, &context))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let method = "resources/templates/list";
        let lifetime = require(&self.server, method, |has| has.resources)?;
        let offers = resources_and_prompts::offers(&self.server).await?;
        let digest = resources_and_prompts::resources_digest(&offers);
        let items = offers.iter().flat_map(|offer| &offer.templates);
        let Page { items, next, length } = page(items, digest, request)?;
        let mut list = ListResourceTemplatesResult::with_all_items(items);
        list.next_cursor = next;
        list_response!(list, length, lifetime, &context)
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let found = wait_for_resource(&self.server, &params.uri, self.account(&context)).await?;
        require(&self.server, "resources/read", |has| has.resources)?;
        let log = RequestLog::begin("resources/read");
        let reading = self.plugin_request(context).read_resource(params, found);
        log.record(catch_panic(Box::pin(reading)).await)
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let code = self.subscribable("resources/subscribe", &params.uri, &context).await?;
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
        self.subscribable("resources/unsubscribe", &params.uri, &context).await.map(|_| ())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let lifetime = require(&self.server, "prompts/list", |has| has.prompts)?;
        let log = RequestLog::begin("prompts/list");
        let offers = resources_and_prompts::offers(&self.server).await?;
        let digest = resources_and_prompts::prompts_digest(&offers);
        let items = offers.iter().flat_map(|offer| &offer.prompts);
        let Page { items, next, length } = page(items, digest, request)?;
        self.record_list(&context, ListKind::Prompts, digest);
        let mut list = ListPromptsResult::with_all_items(items);
        list.next_cursor = next;
        log.record(list_response!(list, length, lifetime, &context))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let found = wait_for_prompt(&self.server, &params.name).await?;
        require(&self.server, "prompts/get", |has| has.prompts)?;
        let log = RequestLog::begin("prompts/get");
        let getting = self.plugin_request(context).get_prompt(params, found);
        log.record(catch_panic(Box::pin(getting)).await)
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let account = self.account(&context);
        let found = wait_for_completed(&self.server, &params.r#ref, account).await?;
        require(&self.server, "completion/complete", |has| has.prompts)?;
        let log = RequestLog::begin("completion/complete");
        let found = found.ok_or_else(|| unknown_subject(&params.r#ref))?;
        let completing = self.plugin_request(context).complete(params, found);
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
        // Asked before each HTTP call, to check headers that repeat parameters. Few tools do.
        let registry = self.server.host.registry();
        let tool = registry.has(name).then(|| registry.get(name).ok())??;
        let tool = tools::listed(&self.server, &tool)?;
        let repeats = tool.header_parameters == HeaderParameters::Some;
        repeats.then(|| tool.stateless.item.clone())
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
            let client = self.subscriber();
            changes::record_known_baseline(&self.server, &client, Lifecycle::Stateless);
            changes::accepted_filter(requested)
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
