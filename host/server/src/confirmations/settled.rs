//! The last settled questions, so that a late answer is told what won.

use crate::journal::Timestamp;
use palisade::confirm::RequestId;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use utoipa::ToSchema;

/// The number of questions that are kept. The journal has the others.
const KEPT: usize = 1024;

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Resolution)]
pub(crate) struct Settlement {
    /// `allow`, `always`, `deny`, `timeout`, `cancelled`, `nobody`, `failed` or `deferred`.
    pub(crate) decision: String,
    /// The person or the client that answered, if it is known.
    pub(crate) answered_by: Option<String>,
    /// When.
    pub(crate) answered_at: String,
}

impl Settlement {
    pub(crate) fn now(decision: &str, answered_by: Option<&str>) -> Self {
        Self {
            decision: decision.to_owned(),
            answered_by: answered_by.map(str::to_owned),
            answered_at: Timestamp::now().to_string(),
        }
    }

    /// Returns true if a person answered, and false if the question ended by itself.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self.decision.as_str(), "allow" | "always" | "deny")
    }
}

/// A settled question.
#[derive(Debug, Clone)]
pub(super) struct SettledQuestion {
    pub(super) id: RequestId,
    pub(super) session: Option<Arc<str>>,
    pub(super) turn: Option<Arc<str>>,
    pub(super) settlement: Settlement,
}

/// The last settled questions, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Settled(VecDeque<SettledQuestion>);

impl Settled {
    /// Keeps a question. The first settlement stays.
    pub(super) fn insert(&mut self, question: SettledQuestion) {
        if self.get(&question.id).is_some() {
            return;
        }
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(question);
    }

    pub(super) fn get(&self, id: &RequestId) -> Option<&SettledQuestion> {
        self.0.iter().rev().find(|question| question.id == *id)
    }
}
