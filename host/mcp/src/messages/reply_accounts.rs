//! Memory accounting of the client's replies to the server's own requests. `rmcp` delivers a reply
//! without its memory account, so that the account takes this side channel.

use palisade::internal::Account;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The slot for the account of a reply, stored in the extensions of the request. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplyAccount(Arc<Mutex<Option<Account>>>);

impl ReplyAccount {
    /// Returns the account, once the reply has arrived.
    pub(crate) fn account(&self) -> Option<Account> {
        lock(&self.0).clone()
    }
}

/// The slots of the requests to one client that have no reply yet.
#[derive(Debug, Default)]
pub(crate) struct ReplyAccounts(Mutex<HashMap<RequestId, Weak<Mutex<Option<Account>>>>>);

impl ReplyAccounts {
    /// Records an outgoing message if it is a request.
    pub(crate) fn record_request(&self, message: &ServerJsonRpcMessage) {
        if let JsonRpcMessage::Request(question) = message
            && let Some(ReplyAccount(slot)) = question.request.extensions().get()
        {
            let mut open = lock(&self.0);
            // Remove requests that no task waits for any more.
            open.retain(|_, slot| slot.strong_count() > 0);
            open.insert(question.id.clone(), Arc::downgrade(slot));
        }
    }

    /// Stores the account of an incoming message, if it is the reply to a pending request.
    pub(crate) fn deliver(&self, message: &ClientJsonRpcMessage, account: &Account) {
        let id = match message {
            JsonRpcMessage::Response(reply) => Some(&reply.id),
            JsonRpcMessage::Error(reply) => reply.id.as_ref(),
            _ => None,
        };
        let slot = id.and_then(|id| lock(&self.0).remove(id)).and_then(|slot| slot.upgrade());
        if let Some(slot) = slot {
            *lock(&slot) = Some(account.clone());
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![expect(deprecated, reason = "the simplest server request")]

    use super::*;
    use palisade::internal::MemoryLimits;
    use rmcp::model::{ClientResult, ListRootsRequest, ServerRequest};

    fn question(id: i64, reply: &ReplyAccount) -> ServerJsonRpcMessage {
        let mut request = ServerRequest::ListRootsRequest(ListRootsRequest::default());
        request.extensions_mut().insert(reply.clone());
        JsonRpcMessage::request(request, RequestId::Number(id))
    }

    fn answer(id: i64) -> ClientJsonRpcMessage {
        JsonRpcMessage::response(ClientResult::empty(()), RequestId::Number(id))
    }

    fn account() -> Account {
        let account = Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
        account.owe(100);
        account
    }

    #[test]
    fn reply_memory_is_held_until_it_is_used() {
        let accounts = ReplyAccounts::default();
        let reply = ReplyAccount::default();
        accounts.record_request(&question(1, &reply));
        accounts.deliver(&answer(2), &account());
        assert!(reply.account().is_none(), "another question's");
        accounts.deliver(&answer(1), &account());
        assert_eq!(reply.account().map(|account| account.held()), Some(100));
        assert!(lock(&accounts.0).is_empty());
    }

    #[test]
    fn unexpected_reply_is_dropped() {
        let accounts = ReplyAccounts::default();
        let left = ReplyAccount::default();
        accounts.record_request(&question(1, &left));
        drop(left);
        accounts.deliver(&answer(1), &account());
        accounts.record_request(&question(2, &ReplyAccount::default()));
        let waits = ReplyAccount::default();
        accounts.record_request(&question(3, &waits));
        assert_eq!(lock(&accounts.0).keys().collect::<Vec<_>>(), [&RequestId::Number(3)]);
    }
}
