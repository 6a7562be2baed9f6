//! What one validation may spend: steps, and the budget of the call that waits for it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::super::MAX_VALUE_DEPTH;
use super::super::pattern::Matching;
use crate::budget::{Budget, Exhausted};

/// How many steps are taken before the budget is asked again: 100 µs at most.
const SLICE: u64 = 2_000;
/// The most memory that the errors of one run may keep, in bytes.
const MAX_KEPT: u64 = 8 << 20;
/// How much of it is reserved at once, in bytes.
const KEPT_AHEAD: u64 = 64 << 10;
/// What the validator keeps of a name beside its bytes: the text and its allocation.
const KEPT_NAME: u64 = 40;

/// What one validation may spend, and what weighs more than a step.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Tariff {
    /// The steps of the account. Most take some five nanoseconds, and none more than 50 (measured, optimised).
    pub(in super::super) steps: u64,
    /// What matching a text costs. The slowest patterns take some 40 ns a byte for each KiB (measured), which this keeps below half
    /// a second in all.
    pub(in super::super) value_pattern: Matching,
    /// What matching the name of a property costs, likewise.
    pub(in super::super) name_pattern: Matching,
    /// What a value costs for the subschemas that judge it without a look at it.
    pub(in super::super) silent: u64,
    /// What an error costs; nothing where the validator only tells whether a value conforms.
    pub(in super::super) error: Option<ErrorCost>,
}

/// What an error costs that the validator makes and keeps until the end of the run.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct ErrorCost {
    /// In steps.
    pub(in super::super) steps: u64,
    /// In bytes, without the names that it repeats.
    pub(in super::super) bytes: u64,
}

/// How a metered run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Spent {
    /// Within the account, with so many steps left: the result counts.
    Within(u64),
    /// The account was empty: the result is void.
    Everything,
    /// The value is nested too deeply: the result is void.
    TooDeep,
    /// The budget of the call is exhausted: the result is void.
    Stopped(Exhausted),
}

/// Runs the validator with a new account, under a budget where a call has one.
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

/// The budget of this thread, for as long as a validation runs: also where the validator panics.
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
    /// The steps until the budget is asked again.
    slice: Cell<u64>,
    /// The steps behind those.
    rest: Cell<u64>,
    ended: Cell<Option<Spent>>,
    /// The memory that errors keep, and how much is reserved for it, in bytes.
    kept: Cell<u64>,
    reserved: Cell<u64>,
}

thread_local! {
    // The accessors get no argument of ours, and a value cannot carry the account: the validator makes values of its own.
    static ACCOUNT: Account = const {
        let nothing = Matching { byte: 0, text: 0 };
        let tariff = Tariff { steps: 0, value_pattern: nothing, name_pattern: nothing, silent: 0, error: None };
        let (slice, rest, kept, reserved) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
        Account { tariff: Cell::new(tariff), slice, rest, ended: Cell::new(None), kept, reserved }
    };
    // Apart from the account, which is looked at for each step and needs no destructor.
    static BUDGET: RefCell<Option<Arc<dyn Budget>>> = const { RefCell::new(None) };
}

/// What the budget of this thread says; all is allowed where there is none.
fn asked(ask: impl FnOnce(&(dyn Budget + 'static)) -> Result<(), Exhausted>) -> Result<(), Exhausted> {
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

    /// Takes steps from beyond the slice, if the budget allows another one.
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

    /// Counts memory that an error keeps. A value that has no memory left for its errors is not explained.
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
        self.ended.set(Some(self.ended.get().unwrap_or(why)));
        false
    }
}

/// Takes steps; false where the account is empty.
pub(super) fn spend(steps: impl FnOnce(&Tariff) -> u64) -> bool {
    ACCOUNT.with(|account| account.spend(steps(&account.tariff.get())))
}

/// Takes steps for a member that is handed out, whose name the validator may keep; false where the account is empty.
pub(super) fn hand_out(name: &str, steps: impl FnOnce(&Tariff) -> u64) -> bool {
    ACCOUNT.with(|account| {
        let tariff = account.tariff.get();
        account.spend(steps(&tariff)) && (tariff.error.is_none() || account.keep(name.len() as u64 + KEPT_NAME))
    })
}

/// Pays for an error.
pub(super) fn make_error() {
    ACCOUNT.with(|account| {
        if let Some(ErrorCost { steps, bytes }) = account.tariff.get().error {
            let _ = account.spend(steps) && account.keep(bytes);
        }
    });
}

/// Takes one step; false where the account is empty.
pub(in super::super) fn step() -> bool {
    ACCOUNT.with(|account| account.spend(1))
}

/// Whether a value at this depth may be looked into. Where not, the account is closed.
pub(super) fn may_enter(depth: usize) -> bool {
    depth < MAX_VALUE_DEPTH || ACCOUNT.with(|account| account.close(Spent::TooDeep))
}

/// Memory that the budget counts until it is given back.
pub(super) struct Reserved(u64);

impl Reserved {
    /// Reserves memory, in bytes; `None` where there is none, and the account is closed then.
    pub(super) fn new(bytes: u64) -> Option<Self> {
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

/// Gives reserved memory back, in bytes.
fn give_back(bytes: u64) {
    let _ = asked(|budget| {
        budget.release(bytes);
        Ok(())
    });
}
