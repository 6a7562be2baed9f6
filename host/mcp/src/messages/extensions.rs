//! The data that travels with a request in its extensions: its sender, its memory account, and the
//! mark of the fast path.

use crate::http::{Caller, ClientAddress, RequestHead, Role};
use palisade::internal::Account;
use rmcp::model::{ClientCapabilities, Extensions};

/// The mark of a request on the fast path, with the capabilities of its client.
#[derive(Debug, Clone)]
pub(crate) struct FastPath(pub(crate) ClientCapabilities);

/// Returns the identity of the sender, for a request over HTTP.
pub(crate) fn caller(request: &Extensions) -> Option<Caller> {
    request.get::<RequestHead>()?.extensions.get().copied()
}

/// Returns the role of the sender, for a request over HTTP.
pub(crate) fn role(request: &Extensions) -> Option<Role> {
    request.get::<RequestHead>()?.extensions.get().copied()
}

/// Returns the address of the sender, for a request over HTTP.
pub(crate) fn address(request: &Extensions) -> Option<ClientAddress> {
    request.get::<RequestHead>()?.extensions.get().copied()
}

/// Returns the memory account of a request.
pub(crate) fn account(request: &Extensions) -> Option<Account> {
    let of_head = || request.get::<RequestHead>()?.extensions.get();
    request.get().or_else(of_head).cloned()
}

/// Returns the memory account of a request whose response is written by `rmcp`, which does not
/// account for memory: a request over HTTP that does not take the fast path.
pub(crate) fn account_of_library(request: &Extensions) -> Option<Account> {
    let head = request.get::<RequestHead>().filter(|_| request.get::<FastPath>().is_none());
    head?.extensions.get().cloned()
}
