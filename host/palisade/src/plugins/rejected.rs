//! Rejected plugin files, and plugins that cannot be registered.

use super::approval::NotApproved;
use std::fmt;

/// A rejected plugin file with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The file.
    pub file: String,
    /// The problem, with the accepted form.
    pub reason: String,
    /// The kind of problem.
    pub cause: Cause,
}

/// The kind of problem with a rejected plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The file itself, or its directory.
    File,
    /// A name that the plugin claims is taken. The first plugin has it, which need not be the one
    /// that the user wants.
    NameTaken,
    /// The plugin is not approved: see [`Host::unapproved`](crate::Host::unapproved).
    NotApproved,
}

/// The reason why a plugin is not registered.
#[derive(Debug, Clone)]
pub(crate) struct RegistrationError {
    pub(crate) reason: String,
    pub(crate) cause: Cause,
}

impl RegistrationError {
    pub(crate) fn name_taken(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), cause: Cause::NameTaken }
    }
}

impl From<&NotApproved> for RegistrationError {
    fn from(why: &NotApproved) -> Self {
        Self { reason: why.to_string(), cause: Cause::NotApproved }
    }
}

impl From<String> for RegistrationError {
    fn from(reason: String) -> Self {
        Self { reason, cause: Cause::File }
    }
}
