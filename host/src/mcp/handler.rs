//! The protocol's methods, each a few lines that say who does the work.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::call::{self, Request};
use super::changes::{self, List, Mark, Telling, Way};
use super::client::{Client, Transport};
use super::era::{Era, VERSIONS, negotiated};
use super::guarded::guarded;
use super::principals::Principal;
use super::{Changes, Shared, endpoint, sessions};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// What a client's model is told of the server as a whole.
const INSTRUCTIONS: &str = "Each tool runs in a sandbox of its own that sees one workspace directory, and nothing else. Paths are relative to it.";
/// How long a list of tools may be kept by a client, in milliseconds, where tools may change, and where they do not.
const KEPT: (u64, u64) = (1_000, 60_000);

/// The methods that there are in either era, of which a request may have come with parameters that are none.
const METHODS: &[&str] = &["tools/list", "tools/call", "server/discover"];
/// Those that there are only before 2026-07-28.
const LEGACY_METHODS: &[&str] = &["initialize", "ping", "logging/setLevel"];

/// The one by which a client of the current revision hears of changes, where there can be any.
const LISTEN: &str = "subscriptions/listen";

/// What answers requests: of one connection, or of one session, or a single one.
pub(super) struct Front {
    server: Arc<Shared>,
    seat: Seat,
    /// Ends with the connection, or the session.
    telling: OnceLock<Option<Telling>>,
}

/// Whose requests they are.
enum Seat {
    /// One client's, from the beginning of its connection to its end.
    Own(Arc<Client>),
    /// That of whoever comes by HTTP: of one legacy session, which makes itself known with its first request, or of modern requests, each by its own words.
    Http(OnceLock<Arc<Client>>),
}

impl Front {
    /// A connection that is one client's from its beginning to its end.
    pub(super) fn of_one(server: Arc<Shared>, client: Arc<Client>) -> Self {
        Self { server, seat: Seat::Own(client), telling: OnceLock::new() }
    }

    /// What comes by HTTP.
    pub(super) fn over_http(server: Arc<Shared>) -> Self {
        Self { server, seat: Seat::Http(OnceLock::new()), telling: OnceLock::new() }
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Arc<Client> {
        match (&self.seat, Era::of(context)) {
            (Seat::Own(client), _) => client.clone(),
            (Seat::Http(own), Era::Legacy) => own.get_or_init(|| self.of_session(context)).clone(),
            (Seat::Http(_), Era::Modern) => {
                let info = context.meta.client_info();
                let principal = Principal::new(endpoint::caller(&context.extensions), info.as_ref());
                self.server.principals.client(&self.server.host, principal)
            }
        }
    }

    /// Whoever listens: the client of this connection or session, or one that does nothing but this, for the library does not say whose request it is.
    fn listener(&self) -> Arc<Client> {
        match &self.seat {
            Seat::Own(client) => client.clone(),
            Seat::Http(own) => own.get_or_init(|| Arc::new(Client::new(&self.server.host, Transport::Http))).clone(),
        }
    }

    /// The client of a session, whose calls end with it.
    fn of_session(&self, context: &RequestContext<RoleServer>) -> Arc<Client> {
        let client = Arc::new(Client::new(&self.server.host, Transport::Http));
        if let Some(seat) = context.extensions.get::<sessions::Seat>() {
            let (ended, client) = (seat.ended.clone(), Arc::downgrade(&client));
            tokio::spawn(async move {
                ended.cancelled().await;
                if let Some(client) = client.upgrade() {
                    client.leave();
                }
            });
        }
        client
    }

    fn watches(&self) -> bool {
        self.server.settings.changes == Changes::Watched
    }
}

impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        let capabilities = capabilities(self.watches());
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
        let mut info = self.get_info();
        info.protocol_version = params.protocol_version.clone();
        context.peer.set_peer_info(params);
        let client = self.client(&context);
        if self.watches() {
            changes::promise(&self.server, &client, Era::Legacy);
        }
        Ok(info)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        Ok(DiscoverResult::from_server_info(VERSIONS.to_vec(), self.get_info()))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let era = Era::of(&context);
        let client = self.client(&context);
        let tools = call::list(&self.server, &client, era).await;
        if self.watches() {
            client.show(List::Tools, Mark::of(&tools));
        }
        let listed = ListToolsResult::with_all_items(tools);
        let kept = if self.watches() { KEPT.0 } else { KEPT.1 };
        Ok(match era {
            Era::Legacy => listed,
            Era::Modern => listed.with_ttl_ms(kept).with_cache_scope(CacheScope::Private),
        })
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = Request { server: self.server.clone(), client: self.client(&context), context };
        guarded(request.call(params)).await
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
                self.client(&context).set_level(params.level);
                Ok(())
            }
            Era::Modern => Err(no_method("logging/setLevel")),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(no_method("prompts/list"))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(no_method("resources/list"))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(no_method("resources/templates/list"))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(no_method("completion/complete"))
    }

    /// A client of an older revision is told of changes from here on, without asking for it.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.telling.get_or_init(|| Telling::begin(&self.server, &self.listener(), Way::Legacy(context.peer)));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.watches().then(|| {
            changes::promise(&self.server, &self.listener(), Era::Modern);
            changes::accepted(requested)
        })
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.listener();
        let _telling = Telling::begin(&self.server, &client, Way::Modern(context.sink().clone()));
        tokio::select! {
            () = context.cancelled() => {}
            () = client.left() => {}
        }
        Ok(())
    }

    /// The library takes a request whose parameters it cannot read for one whose method it does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        let is_of_era = match Era::of(&context) {
            Era::Legacy => LEGACY_METHODS.contains(&method),
            Era::Modern => method == LISTEN && self.watches(),
        };
        if is_of_era || METHODS.contains(&method) {
            return Err(ErrorData::invalid_params(format!("the parameters are none of `{method}`"), None));
        }
        Err(no_method(method))
    }
}

fn capabilities(watches: bool) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::builder().enable_logging().enable_tools().build();
    if let (true, Some(tools)) = (watches, &mut capabilities.tools) {
        tools.list_changed = Some(true);
    }
    capabilities
}

fn no_method(method: &str) -> ErrorData {
    let method = crate::tool::text::elided(method, 64);
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method `{method}` here"), None)
}
