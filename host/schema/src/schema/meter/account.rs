//! The account of one validation: its steps, and the budget of the call that waits for it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::super::MAX_VALUE_DEPTH;
use super::super::pattern::Matching;
use crate::budget::{Budget, Exhausted};

/// The number of steps between two checks of the budget: 100 µs at most.
const SLICE: u64 = 2_000;
/// The maximum steps of work between two accesses to values, which nothing can interrupt: 40 ms at
/// most.
const UNINTERRUPTED: u64 = 1_000_000;
/// The maximum memory of the errors of one run, in bytes.
const MAX_KEPT: u64 = 8 << 20;
/// The size of one reservation of this memory, in bytes.
const KEPT_AHEAD: u64 = 64 << 10;
/// The memory that the validator needs for a name besides its text, in bytes.
const KEPT_NAME: u64 = 40;

/// The limits of one validation, and the prices of operations that cost more than a step.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Tariff {
    /// The steps of the account. Most take some five nanoseconds, and none more than 50 (measured,
    /// optimised).
    pub(in super::super) steps: u64,
    /// The price of matching a text. The slowest patterns take some 40 ns per byte and KiB of
    /// compiled size (measured); this price keeps the total below half a second.
    pub(in super::super) value_pattern: Matching,
    /// The price of matching a property name with all patterns for it, likewise.
    pub(in super::super) name_pattern: Matching,
    /// The price of a value for subschemas that do not access it.
    pub(in super::super) silent: u64,
    /// The number of passes over the list of evaluated elements of an array.
    pub(in super::super) passes: u64,
    /// The price of an error; none if the validator only checks conformance.
    pub(in super::super) error: Option<ErrorCost>,
}

/// The price of an error, which the validator keeps until the end of the run.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct ErrorCost {
    /// In steps.
    pub(in super::super) steps: u64,
    /// In bytes, without quoted names.
    pub(in super::super) bytes: u64,
}

/// The end of a metered run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Spent {
    /// Within the account, with the remaining steps. The result is valid.
    Within(u64),
    /// The account is empty. The result is invalid.
    Everything,
    /// The value is nested too deeply. The result is invalid.
    TooDeep,
    /// The budget of the call is exhausted. The result is invalid.
    Stopped(Exhausted),
}

/// Runs the validator with a new account, and under the budget of a call if there is one.
pub(in super::super) fn run<T>(
    tariff: Tariff,
    budget: Option<&Arc<dyn Budget>>,
    validate: impl FnOnce() -> T,
) -> (T, Spent) {
    let _lent = budget.map(Lent::new);
    ACCOUNT.with(|account| account.open(tariff));
    let result = validate();
    (result, ACCOUNT.with(Account::ended))
}

/// The budget of this thread during a validation. Dropping it clears the budget, even if the
/// validator panics.
struct Lent;

impl Lent {
    fn new(budget: &Arc<dyn Budget>) -> Self {
        BUDGET.with(|lent| *lent.borrow_mut() = Some(budget.clone()));
        Self
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        give_back(ACCOUNT.with(|account| account.reserved.take()));
        BUDGET.with(|lent| *lent.borrow_mut() = None);
    }
}

struct Account {
    tariff: Cell<Tariff>,
    /// The steps until the next check of the budget.
    slice: Cell<u64>,
    /// The steps after those.
    rest: Cell<u64>,
    ended: Cell<Option<Spent>>,
    /// The memory of the errors, and its reservation, in bytes.
    kept: Cell<u64>,
    reserved: Cell<u64>,
}

thread_local! {
    // Thread-local, because the accessors take no argument for it, and the values cannot carry it:
    // the validator creates values of its own.
    static ACCOUNT: Account = const {
        let nothing = Matching { byte: 0, text: 0 };
        let tariff = Tariff { steps: 0, value_pattern: nothing, name_pattern: nothing, silent: 0, passes: 0, error: None };
        let slice = Cell::new(0);
        let rest = Cell::new(0);
        let kept = Cell::new(0);
        let reserved = Cell::new(0);
        Account { tariff: Cell::new(tariff), slice, rest, ended: Cell::new(None), kept, reserved }
    };
    // Separate from the account, which is accessed for each step and needs no destructor.
    static BUDGET: RefCell<Option<Arc<dyn Budget>>> = const { RefCell::new(None) };
}

/// Asks the budget of this thread. Without a budget everything is allowed.
fn asked(
    ask: impl FnOnce(&(dyn Budget + 'static)) -> Result<(), Exhausted>,
) -> Result<(), Exhausted> {
    BUDGET.with(|lent| lent.borrow().as_deref().map_or(Ok(()), ask))
}

impl Account {
    fn open(&self, tariff: Tariff) {
        self.tariff.set(tariff);
        self.slice.set(tariff.steps.min(SLICE));
        self.rest.set(tariff.steps.saturating_sub(SLICE));
        self.ended.set(None);
        self.kept.set(0);
        self.reserved.set(0);
    }

    fn ended(&self) -> Spent {
        self.ended.get().unwrap_or_else(|| Spent::Within(self.left()))
    }

    fn left(&self) -> u64 {
        self.slice.get().saturating_add(self.rest.get())
    }

    fn spend(&self, steps: u64) -> bool {
        match self.slice.get().checked_sub(steps) {
            Some(left) if left > 0 => {
                self.slice.set(left);
                true
            }
            _ => self.next_slice(steps),
        }
    }

    /// Takes the steps from beyond the current slice, if the budget allows another one.
    #[cold]
    fn next_slice(&self, steps: u64) -> bool {
        if self.ended.get().is_some() {
            return false;
        }
        let left = self.left().saturating_sub(steps);
        if left == 0 {
            return self.close(Spent::Everything);
        }
        if let Err(why) = asked(Budget::check) {
            return self.close(Spent::Stopped(why));
        }
        self.slice.set(left.min(SLICE));
        self.rest.set(left.saturating_sub(SLICE));
        true
    }

    /// Takes the steps of work that cannot be interrupted. If there are too many, the run ends
    /// before that work begins.
    fn spend_uninterrupted(&self, steps: u64) -> bool {
        if steps > UNINTERRUPTED { self.close(Spent::Everything) } else { self.spend(steps) }
    }

    /// Charges memory of an error. If none is left, the run ends and the value is not explained.
    fn keep(&self, bytes: u64) -> bool {
        let kept = self.kept.get().saturating_add(bytes);
        self.kept.set(kept);
        let lacking = kept.saturating_sub(self.reserved.get());
        if lacking == 0 {
            return self.ended.get().is_none();
        }
        let more = lacking.max(KEPT_AHEAD);
        if kept > MAX_KEPT || asked(|budget| budget.reserve(more)).is_err() {
            return self.close(Spent::Everything);
        }
        self.reserved.set(self.reserved.get().saturating_add(more));
        true
    }

    fn close(&self, why: Spent) -> bool {
        self.slice.set(0);
        self.rest.set(0);
        // The first reason counts.
        self.ended.set(Some(self.ended.get().unwrap_or(why)));
        false
    }
}

/// Takes steps. Returns false if the account is empty.
pub(super) fn spend(steps: impl FnOnce(&Tariff) -> u64) -> bool {
    ACCOUNT.with(|account| account.spend(steps(&account.tariff.get())))
}

/// Takes the steps of work that cannot be interrupted. Returns false if the account is empty.
pub(super) fn spend_uninterrupted(steps: impl FnOnce(&Tariff) -> u64) -> bool {
    ACCOUNT.with(|account| account.spend_uninterrupted(steps(&account.tariff.get())))
}

/// Takes the steps for a returned member, and charges its name, which the validator may keep in an
/// error. Returns false if the account is empty.
pub(super) fn hand_out(name: &str, steps: impl FnOnce(&Tariff) -> u64) -> bool {
    ACCOUNT.with(|account| {
        let tariff = account.tariff.get();
        account.spend_uninterrupted(steps(&tariff))
            && (tariff.error.is_none() || account.keep(name.len() as u64 + KEPT_NAME))
    })
}

/// Charges an error.
pub(super) fn make_error() {
    ACCOUNT.with(|account| {
        if let Some(ErrorCost { steps, bytes }) = account.tariff.get().error {
            let _ = account.spend(steps) && account.keep(bytes);
        }
    });
}

/// Takes one step. Returns false if the account is empty.
pub(in super::super) fn step() -> bool {
    ACCOUNT.with(|account| account.spend(1))
}

/// Returns whether access inside a value at this depth is allowed. If not, closes the account.
pub(super) fn may_enter(depth: usize) -> bool {
    depth < MAX_VALUE_DEPTH || ACCOUNT.with(|account| account.close(Spent::TooDeep))
}

/// Memory reserved from the budget until it is dropped.
pub(in super::super) struct Reserved(u64);

impl Reserved {
    /// Reserves memory, in bytes. Returns `None` and closes the account if there is none.
    pub(in super::super) fn new(bytes: u64) -> Option<Self> {
        match asked(|budget| budget.reserve(bytes)) {
            Ok(()) => Some(Self(bytes)),
            Err(why) => {
                ACCOUNT.with(|account| account.close(Spent::Stopped(why)));
                None
            }
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        give_back(self.0);
    }
}

/// Releases reserved memory, in bytes.
fn give_back(bytes: u64) {
    let _ = asked(|budget| {
        budget.release(bytes);
        Ok(())
    });
}
