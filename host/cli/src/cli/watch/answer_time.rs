//! The time from which a typed line answers the question on the screen.

use std::time::{Duration, Instant};

/// The time in which nothing that is typed answers a question which took the place of another: the
/// person may have meant the other one.
const DEAD_TIME: Duration = Duration::from_secs(1);

/// The time from which a typed line answers the question on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnswerTime {
    from: Instant,
}

impl AnswerTime {
    /// Returns the time of a question that was put on the screen at `shown`, and is the first there
    /// or follows an answer of this person.
    pub(super) fn of_question(shown: Instant) -> Self {
        Self { from: shown }
    }

    /// Returns the time of a question that at `shown` took the place of another, which was answered
    /// elsewhere.
    pub(super) fn of_replacement(shown: Instant) -> Self {
        Self { from: shown + DEAD_TIME }
    }

    /// Returns whether a line that was typed at this time answers the question.
    pub(super) fn is_open(self, typed: Instant) -> bool {
        typed >= self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_typed_for_another_question_answers_nothing() {
        let shown = Instant::now();
        let moment = Duration::from_millis(1);
        let question = AnswerTime::of_question(shown);
        assert!(question.is_open(shown) && !question.is_open(shown - moment));
        let replacement = AnswerTime::of_replacement(shown);
        assert!(!replacement.is_open(shown + DEAD_TIME - moment));
        assert!(replacement.is_open(shown + DEAD_TIME));
    }
}
