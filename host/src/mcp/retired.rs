//! Ids of requests that were cancelled: none may be used again, as the protocol says, for what is still said about the old request would be taken for an answer to
//! the new one.

use rmcp::model::RequestId;
use std::collections::VecDeque;

/// How many are remembered. Whoever comes around again after that has waited long enough for the old request to have ended.
const REMEMBERED: usize = 4096;

/// The last ones that were cancelled.
#[derive(Debug, Default)]
pub(super) struct Retired(VecDeque<RequestId>);

impl Retired {
    pub(super) fn add(&mut self, id: RequestId) {
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.0.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_known_and_so_many_of_them() {
        let mut retired = Retired::default();
        for number in 0..=REMEMBERED as i64 {
            retired.add(RequestId::Number(number));
        }
        assert!(!retired.has(&RequestId::Number(0)));
        assert!(retired.has(&RequestId::Number(1)) && retired.has(&RequestId::Number(REMEMBERED as i64)));
    }
}
