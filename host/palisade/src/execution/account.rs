//! The memory account of one call. Every layer of the host reserves from it before allocating for
//! the call.

mod address_space;
mod budget;
#[cfg(test)]
pub(crate) mod budget_checks;
mod call_account;
mod charge;
mod client_shares;
mod counters;
mod descriptions;

pub(crate) use address_space::has_room;
pub use address_space::{address_space_limit, fits_address_space};
pub use budget::CallBudget;
pub(crate) use call_account::HOST_DATA;
pub use call_account::{Account, MemoryLimits};
pub use charge::Charge;
pub use client_shares::ClientShares;
pub use counters::Owed;
pub(crate) use counters::{Counter, hold_always, release_always};
pub(crate) use descriptions::{
    DescriptionMemory, DescriptionPart, DescriptionRoom, DescriptionTerms, HeldDescription,
};
