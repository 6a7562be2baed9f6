//! Decides the candidates: those with a known description at once, and the others by compiling them
//! on every core.

use super::cores;
use super::work::{Outcome, Work, catch_panic, lock};
use crate::execution::account::DescriptionPart;
use crate::plugins::candidate::{CacheLookup, Candidate, CandidateError, Effort};
use crate::plugins::loaded::{BytesApproval, Compiling};
use crate::plugins::observer::LoadStep;
use crate::sandbox::Prepared;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Whether loading has more to do for the code of a decided candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    /// The code is in the cache, or the candidate was refused.
    Settled,
    /// The code has to be compiled.
    Uncompiled,
}

impl Work {
    /// Decides the candidates with a known description, and queues those without code.
    pub(super) fn prepare_known(&self) {
        self.tell(LoadStep::Start(self.candidates.len()));
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        let uncompiled: Mutex<Vec<(bool, Effort, usize)>> = Mutex::default();
        let known: Mutex<BTreeMap<usize, (Outcome, Code)>> = Mutex::default();
        self.each(&all, |index, candidate| {
            let check = |digest| {
                let terms = self.task.description_terms(candidate, digest, None)?;
                if terms.part == DescriptionPart::Approved {
                    lock(&self.approved).insert(index);
                }
                Ok(terms)
            };
            let queue = |effort| lock(&uncompiled).push((!candidate.is_shipped(), effort, index));
            let decision = match catch_panic(|| candidate.look_up(&self.task.sandbox, &check)) {
                Ok(CacheLookup::ToCompile(effort)) => return queue(effort),
                Ok(CacheLookup::Described(prepared, effort)) => {
                    queue(effort);
                    (Ok(prepared), Code::Uncompiled)
                }
                Ok(CacheLookup::Ready(prepared)) => (Ok(prepared), Code::Settled),
                Err(refused) => (Err(refused), Code::Settled),
            };
            lock(&known).insert(index, decision);
        });
        // In order, so that events do not depend on timing.
        for (index, (outcome, code)) in std::mem::take(&mut *lock(&known)) {
            let Some(candidate) = self.candidates.get(index) else { continue };
            match code {
                Code::Settled => self.record(index, candidate, outcome),
                Code::Uncompiled => self.decide(index, candidate, outcome),
            }
        }
        let mut uncompiled = std::mem::take(&mut *lock(&uncompiled));
        uncompiled.sort_unstable();
        let last: HashSet<usize> = uncompiled
            .iter()
            .filter(|(_, effort, _)| effort.goes_last())
            .map(|(_, _, index)| *index)
            .collect();
        self.progress.send_modify(|progress| progress.last = last.len());
        *lock(&self.last) = last;
        *lock(&self.uncompiled) = uncompiled.into_iter().map(|(_, _, index)| index).collect();
    }

    pub(super) fn compiling(&self) -> Vec<Compiling> {
        if self.progress.borrow().is_complete() {
            return Vec::new();
        }
        let decided = lock(&self.decided);
        let left =
            self.candidates.iter().enumerate().filter(|(index, _)| !decided.contains_key(index));
        left.map(|(index, candidate)| self.compiling_file(index, candidate)).collect()
    }

    pub(super) fn compiling_file(&self, index: usize, candidate: &Candidate) -> Compiling {
        let approval = match lock(&self.approved).contains(&index) {
            true => BytesApproval::Approved,
            false => BytesApproval::Missing,
        };
        Compiling { plugin: candidate.name(), file: candidate.file(), approval }
    }

    /// Compiles the remaining candidates.
    pub(super) fn compile(&self) {
        let _turn = lock(&self.turn);
        self.compile_left();
    }

    pub(super) fn compile_left(&self) {
        let _end = End(self);
        self.compile_wanted(|| |_: usize, _: &Candidate| true);
        self.tell(LoadStep::End);
    }

    /// Compiles the candidates that are still wanted when their turn comes, and cancels the others
    /// once none is wanted. Those stay in `uncompiled`. Returns true if there was work to do.
    pub(super) fn compile_wanted<W: Fn(usize, &Candidate) -> bool>(
        &self,
        wanted_now: impl Fn() -> W + Sync,
    ) -> bool {
        let cancel = self.cancel.child_token();
        let still_wanted = |of: &[usize]| -> Vec<usize> {
            let is_wanted = wanted_now();
            let wanted =
                |index: &usize| self.candidates.get(*index).is_some_and(|it| is_wanted(*index, it));
            of.iter().copied().filter(wanted).collect()
        };
        let uncompiled = lock(&self.uncompiled).clone();
        let indices = if uncompiled.is_empty() { uncompiled } else { still_wanted(&uncompiled) };
        self.each(&indices, |index, candidate| {
            if cancel.is_cancelled() || still_wanted(&[index]).is_empty() {
                return;
            }
            match self.described(index) {
                Some(prepared) => self.compile_described(index, candidate, &prepared),
                None => self.compile_unknown(index, candidate, &cancel),
            }
            let left = lock(&self.uncompiled).clone();
            if still_wanted(&left).is_empty() {
                cancel.cancel();
            }
        });
        !indices.is_empty()
    }

    fn compile_unknown(&self, index: usize, candidate: &Candidate, cancel: &CancellationToken) {
        let check = |digest| self.task.description_terms(candidate, digest, None);
        let outcome = catch_panic(|| candidate.prepare(&self.task.sandbox, cancel, &check));
        // A failure after the cancellation says nothing about the candidate.
        if outcome.is_ok() || !cancel.is_cancelled() {
            self.record(index, candidate, outcome);
        }
    }

    /// Compiles a plugin that is registered already. If that fails, each call of it says so.
    fn compile_described(&self, index: usize, candidate: &Candidate, prepared: &Prepared) {
        let held = catch_panic(|| prepared.hold().map_err(CandidateError::from));
        if let Err(CandidateError { reason, .. }) = held {
            tracing::error!("plugin {} cannot be compiled: {reason}", candidate.name());
        }
        self.tell(LoadStep::Done(&candidate.name()));
        self.mark_done(index);
    }

    /// Returns the plugin of a candidate that is registered already.
    fn described(&self, index: usize) -> Option<Arc<Prepared>> {
        let decided = lock(&self.decided);
        decided.get(&index)?.standing.as_ref().map(|plugin| plugin.prepared.clone())
    }

    fn each(&self, indices: &[usize], work: impl Fn(usize, &Candidate) + Sync) {
        cores::on_every_core(indices, |_, index| {
            if let Some(candidate) = self.candidates.get(*index) {
                work(*index, candidate);
            }
        });
    }

    fn record(&self, index: usize, candidate: &Candidate, outcome: Outcome) {
        self.tell(LoadStep::Done(&candidate.name()));
        self.decide(index, candidate, outcome);
        self.mark_done(index);
    }

    fn mark_done(&self, index: usize) {
        lock(&self.uncompiled).retain(|left| *left != index);
        let was_last = lock(&self.last).remove(&index);
        self.progress.send_modify(|progress| {
            progress.decided += 1;
            progress.last = progress.last.saturating_sub(was_last.into());
        });
    }
}

/// A guard that marks the end of the work, even after a panic.
struct End<'a>(&'a Work);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| progress.goes_on = false);
    }
}
