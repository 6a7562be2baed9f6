//! The reason why the check of an input ends without a valid input.

use crate::tool::ErrorKind;
use crate::tool::budget::Exhausted;

/// The reason why an input is not accepted.
pub(in crate::dispatch) enum CheckError {
    Refused(ErrorKind),
    Exhausted(Exhausted),
}

impl CheckError {
    /// Separates the verdict on an input from an exhausted budget.
    pub(in crate::dispatch) fn or_verdict<T>(
        checked: Result<T, Self>,
    ) -> Result<Result<T, ErrorKind>, Exhausted> {
        match checked {
            Ok(checked) => Ok(Ok(checked)),
            Err(Self::Refused(kind)) => Ok(Err(kind)),
            Err(Self::Exhausted(why)) => Err(why),
        }
    }

    pub(super) fn or(self, exhausted: impl FnOnce(Exhausted) -> ErrorKind) -> ErrorKind {
        match self {
            Self::Refused(kind) => kind,
            Self::Exhausted(why) => exhausted(why),
        }
    }
}

impl From<ErrorKind> for CheckError {
    fn from(kind: ErrorKind) -> Self {
        Self::Refused(kind)
    }
}

impl From<Exhausted> for CheckError {
    fn from(why: Exhausted) -> Self {
        Self::Exhausted(why)
    }
}
