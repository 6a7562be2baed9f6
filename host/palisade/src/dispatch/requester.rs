//! The requester on whose behalf a call is made.

use super::parent_call::ParentCall;
use super::program_record::ProgramRecord;
use crate::confirm::{AnswerTime, CallConfirmer};
use crate::execution::Client;
use crate::execution::account::Account;
use std::fmt;
use std::sync::Arc;

/// The requester of a call. By default there is none: the host's confirmer is asked for
/// confirmation, and tools cannot send requests.
#[derive(Clone)]
pub struct Requester {
    /// Asked for confirmation beside the host's confirmer: the first answer wins.
    pub(crate) call_confirmer: Option<Arc<dyn CallConfirmer>>,
    /// Receives the requests of the running tool.
    pub(crate) client: Option<Arc<dyn Client>>,
    /// The scope of answers that apply to later calls.
    pub(crate) answer_scope: AnswerScope,
    /// The call that makes this one, if another call does.
    pub(super) parent: Option<ParentCall>,
    /// The calls that the tool has made in earlier runs, if it is run again with answers.
    pub(super) record: Option<Arc<ProgramRecord>>,
    /// The account of the call's memory, if its input was parsed under one and is already counted.
    pub(crate) account: Option<Account>,
}

/// The scope of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerScope {
    /// The session, which belongs to a single caller.
    Session,
    /// The call itself, because callers of this session cannot be told apart.
    Call,
}

impl Requester {
    /// Sets the client that answers the requests of tools.
    #[must_use]
    pub fn with_client(self, client: Arc<dyn Client>) -> Self {
        Self { client: Some(client), ..self }
    }

    /// Sets the confirmer of this requester, which is asked beside the host's: the first answer
    /// wins.
    #[must_use]
    #[doc(hidden)]
    pub fn with_call_confirmer(self, call_confirmer: Arc<dyn CallConfirmer>) -> Self {
        Self { call_confirmer: Some(call_confirmer), ..self }
    }

    /// Sets the calls that the tool has made in earlier runs, for a caller that answers with a
    /// later call.
    #[must_use]
    #[doc(hidden)]
    pub fn with_record(self, record: Option<Arc<ProgramRecord>>) -> Self {
        Self { record, ..self }
    }

    /// Sets the account under which the input was parsed.
    #[must_use]
    #[doc(hidden)]
    pub fn with_account(self, account: Option<Account>) -> Self {
        Self { account, ..self }
    }

    /// Marks the caller as unidentifiable: answers apply neither to later calls nor from earlier
    /// ones.
    #[must_use]
    #[doc(hidden)]
    pub fn without_memory(self) -> Self {
        Self { answer_scope: AnswerScope::Call, ..self }
    }
}

impl Requester {
    /// Returns the requester of the calls that a call of this one makes. A caller that answers with
    /// a later call is asked if there is a record, without which the calls would run again.
    pub(super) fn for_nested(&self) -> Self {
        let nested = Self { parent: None, account: None, ..self.clone() };
        let call_confirmer = self.call_confirmer.as_ref();
        match call_confirmer.map_or(AnswerTime::DuringCall, |confirmer| confirmer.when()) {
            AnswerTime::DuringCall => Self { record: None, ..nested },
            AnswerTime::LaterCall if self.record.is_some() => Self { client: None, ..nested },
            AnswerTime::LaterCall => Self { call_confirmer: None, client: None, ..nested },
        }
    }
}

impl Default for Requester {
    fn default() -> Self {
        Self {
            call_confirmer: None,
            client: None,
            answer_scope: AnswerScope::Session,
            parent: None,
            record: None,
            account: None,
        }
    }
}

impl fmt::Debug for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requester")
            .field("kinds", &self.client.as_ref().map(|client| client.kinds()))
            .finish_non_exhaustive()
    }
}
