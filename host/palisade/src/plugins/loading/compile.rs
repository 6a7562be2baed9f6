//! Decides the candidates: those in the cache at once, and the others by compiling them on every
//! core.

use super::cores;
use super::work::{Outcome, Work, catch_panic, lock};
use crate::plugins::candidate::{CacheLookup, Candidate, Effort};
use crate::plugins::loaded::Compiling;
use crate::plugins::observer::LoadStep;
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

impl Work {
    /// Decides the cached candidates and queues the others.
    pub(super) fn prepare_cached(&self) {
        self.tell(LoadStep::Start(self.candidates.len()));
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        let unknown: Mutex<Vec<(bool, Effort, usize)>> = Mutex::default();
        let known: Mutex<BTreeMap<usize, Outcome>> = Mutex::default();
        self.each(&all, |index, candidate| {
            let outcome = match catch_panic(|| candidate.look_up(&self.task.sandbox)) {
                Ok(CacheLookup::ToCompile(effort)) => {
                    return lock(&unknown).push((!candidate.is_shipped(), effort, index));
                }
                Ok(CacheLookup::Ready(prepared)) => Ok(prepared),
                Err(refused) => Err(refused),
            };
            lock(&known).insert(index, outcome);
        });
        // In order, so that events do not depend on timing.
        for (index, outcome) in std::mem::take(&mut *lock(&known)) {
            if let Some(candidate) = self.candidates.get(index) {
                self.record(index, candidate, outcome);
            }
        }
        let mut unknown = std::mem::take(&mut *lock(&unknown));
        unknown.sort_unstable();
        let last: HashSet<usize> = unknown
            .iter()
            .filter(|(_, effort, _)| effort.goes_last())
            .map(|(_, _, index)| *index)
            .collect();
        self.progress.send_modify(|progress| progress.last = last.len());
        *lock(&self.last) = last;
        *lock(&self.unknown) = unknown.into_iter().map(|(_, _, index)| index).collect();
    }

    pub(super) fn compiling(&self) -> Vec<Compiling> {
        if self.progress.borrow().is_complete() {
            return Vec::new();
        }
        let decided = lock(&self.decided);
        let left =
            self.candidates.iter().enumerate().filter(|(index, _)| !decided.contains_key(index));
        left.map(|(_, candidate)| Compiling { plugin: candidate.name(), file: candidate.file() })
            .collect()
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
    /// once none is wanted. Those stay in `unknown`. Returns true if there was work to do.
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
        let unknown = lock(&self.unknown).clone();
        let indices = if unknown.is_empty() { unknown } else { still_wanted(&unknown) };
        self.each(&indices, |index, candidate| {
            if cancel.is_cancelled() || still_wanted(&[index]).is_empty() {
                return;
            }
            let outcome = catch_panic(|| candidate.prepare(&self.task.sandbox, &cancel));
            // A failure after the cancellation says nothing about the candidate.
            if outcome.is_ok() || !cancel.is_cancelled() {
                self.record(index, candidate, outcome);
            }
            let left = lock(&self.unknown).clone();
            if still_wanted(&left).is_empty() {
                cancel.cancel();
            }
        });
        !indices.is_empty()
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
        lock(&self.unknown).retain(|left| *left != index);
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
