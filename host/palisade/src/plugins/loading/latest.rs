//! The current state of a file's bytes: known, in the cache, compiled, or left to be compiled.

use super::background::Deferred;
use super::slot::{Latest, Slot};
use super::work::{Outcome, Work, catch_panic, lock};
use crate::plugins::candidate::{Candidate, FileDigest};
use crate::tool::Digest;
use tokio_util::sync::CancellationToken;

/// A file with its previous state.
pub(super) struct Job {
    pub(super) candidate: Candidate,
    pub(super) before: Option<Slot>,
    pub(super) treatment: Treatment,
}

/// The treatment of a file.
pub(super) enum Treatment {
    Scan,
    Refuse(String),
    /// Its directory cannot be read, so its state is kept.
    Keep,
    /// Only its approval is asked for again.
    Judge,
}

/// The treatment of files that have to be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uncompiled {
    /// The scan compiles them.
    Compile,
    /// They keep their state, and are compiled behind the scan.
    Defer,
    /// As [`Defer`](Self::Defer), in a scan without a change of a file: what has failed for want of
    /// room is not tried again.
    DeferNew,
}

/// The current state of a file, or the file if it has to be compiled behind the scan.
pub(super) type Found = Result<Latest, Box<Deferred>>;

impl Work {
    /// Returns the current state of a file's bytes.
    pub(super) fn latest(&self, job: &Job, uncompiled: Uncompiled) -> Found {
        let known = job.before.as_ref().map(|slot| &slot.latest);
        let file_digest = match (&job.treatment, known) {
            (Treatment::Keep | Treatment::Judge, Some(known)) => return Ok(known.clone()),
            (Treatment::Refuse(reason), _) => Err(reason.clone()),
            _ => job.candidate.file_digest(
                self.task.sandbox.cache(),
                known.and_then(|known| known.file_digest.as_ref()),
            ),
        };
        let file_digest = match file_digest {
            Ok(file_digest) => file_digest,
            Err(reason) => return Ok(failed(None, None, reason)),
        };
        if let Some(known) = known.filter(|known| {
            known.digest == Some(file_digest.digest) && !is_touched(known, &file_digest)
        }) {
            return Ok(Latest { file_digest: Some(file_digest), ..known.clone() });
        }
        let standing = job.before.as_ref().and_then(|slot| slot.standing.as_ref());
        if let Some(back) = standing.filter(|standing| standing.digest() == file_digest.digest) {
            let latest = Latest::from_plugin(back.clone());
            return Ok(Latest { file_digest: Some(file_digest), ..latest });
        }
        let before = job.before.as_ref();
        let has_failed = |known: &&Latest| {
            let bytes = known.file_digest.as_ref().map(|known| known.digest);
            known.digest.is_none() && known.plugin.is_err() && bytes == Some(file_digest.digest)
        };
        match (uncompiled, known.filter(has_failed)) {
            (Uncompiled::Compile, _) => {
                Ok(self.compiled(&job.candidate, file_digest, before, &self.cancel))
            }
            (Uncompiled::DeferNew, Some(known)) => Ok(known.clone()),
            (Uncompiled::Defer | Uncompiled::DeferNew, _) => {
                self.ready(&job.candidate, file_digest, before)
            }
        }
    }

    /// Returns the state of new bytes if they need no compilation.
    fn ready(
        &self,
        candidate: &Candidate,
        file_digest: FileDigest,
        before: Option<&Slot>,
    ) -> Found {
        let cached = catch_panic(|| {
            let digest = file_digest.digest;
            let terms = self.task.description_terms(candidate, digest, before)?;
            let part = terms.part;
            Ok((part, candidate.prepare_cached(digest, terms, &self.task.sandbox)))
        });
        match cached {
            Ok((_, Some(prepared))) => Ok(self.prepared(candidate, file_digest, Ok(prepared))),
            Ok((part, None)) => {
                // With the identity of the file when it was left, so that a later write is seen.
                if let Some(latest) = lock(&self.background).take(candidate, file_digest.digest) {
                    return Ok(latest);
                }
                let (candidate, before) = (candidate.clone(), before.cloned());
                Err(Box::new(Deferred { candidate, file_digest, before, part }))
            }
            Err(error) => Ok(self.prepared(candidate, file_digest, Err(error))),
        }
    }

    /// Returns the state of new bytes, and compiles them if their code is not in the cache.
    pub(super) fn compiled(
        &self,
        candidate: &Candidate,
        file_digest: FileDigest,
        before: Option<&Slot>,
        cancel: &CancellationToken,
    ) -> Latest {
        let check = |digest| self.task.description_terms(candidate, digest, before);
        let outcome = catch_panic(|| {
            let terms = check(file_digest.digest)?;
            match candidate.prepare_cached(file_digest.digest, terms, &self.task.sandbox) {
                Some(prepared) => Ok(prepared),
                None => candidate.prepare(&self.task.sandbox, cancel, &check),
            }
        });
        self.prepared(candidate, file_digest, outcome)
    }

    fn prepared(&self, candidate: &Candidate, file_digest: FileDigest, outcome: Outcome) -> Latest {
        match outcome {
            Ok(prepared) => Latest {
                file_digest: Some(file_digest),
                ..Latest::from_plugin(self.plugin(candidate, prepared))
            },
            Err(error) => {
                let reason = self.task.rejection(candidate, &error);
                let digest = error.lasting_digest(Some(file_digest.digest));
                failed(Some(file_digest), digest, reason)
            }
        }
    }
}

/// Returns the state of bytes that are no plugin. A failure with a digest lasts as long as the
/// file has these bytes.
pub(super) fn failed(
    file_digest: Option<FileDigest>,
    digest: Option<Digest>,
    reason: String,
) -> Latest {
    Latest { file_digest, digest, plugin: Err(reason) }
}

/// Returns true if a rejected file has been written again, in which case it is tried again.
fn is_touched(known: &Latest, now: &FileDigest) -> bool {
    let identities = known
        .file_digest
        .as_ref()
        .and_then(|file_digest| file_digest.identity.as_ref())
        .zip(now.identity.as_ref());
    known.plugin.is_err() && identities.is_some_and(|(then, now)| !then.is_still(now))
}
