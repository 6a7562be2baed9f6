//! Memory reserved in an account, until it is released or its charge is dropped.

use super::call_account::Account;
use super::counters::Owed;
use crate::tool::budget::{Budget, Exhausted};

impl Account {
    /// Reserves memory, in bytes, until the charge is dropped.
    ///
    /// # Errors
    ///
    /// The errors of [`reserve`](Self::reserve).
    pub fn charge(&self, bytes: u64) -> Result<Charge, Exhausted> {
        self.reserve(bytes)?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// Creates a charge of zero bytes.
    pub(crate) fn empty_charge(&self) -> Charge {
        Charge { account: self.clone(), bytes: 0 }
    }
}

/// A budget without a deadline, for work that is bounded by the length of its input.
impl Budget for Account {
    fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
        Self::reserve(self, bytes)
    }

    fn release(&self, bytes: u64) {
        Self::release(self, bytes);
    }

    fn check(&self) -> Result<(), Exhausted> {
        Ok(())
    }
}

/// Reserved memory, released on drop.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    bytes: u64,
}

impl Charge {
    /// Returns the account of the reservation.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Reserves more memory for the guest, in bytes. The sandbox checks the address space for it.
    ///
    /// # Errors
    ///
    /// The errors of [`Account::reserve`]; the charge is unchanged then.
    pub(crate) fn grow(&mut self, more: u64) -> Result<(), Exhausted> {
        self.account.count(more)?;
        self.bytes += more;
        Ok(())
    }

    /// Releases a part, in bytes.
    pub(crate) fn shrink(&mut self, less: u64) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.account.release(less);
    }

    /// Moves the memory out of the call's account, which may end first. It still counts towards the
    /// process's total, and for the client that it is kept for.
    pub fn into_owed(mut self) -> Owed {
        self.account.give_up(std::mem::take(&mut self.bytes))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}
