//! What the sandbox of a call holds, in words for a person.

use super::SideEffects;

/// Whether a plugin has more than the classes of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// The classes alone.
    Class,
    /// A grant as well.
    Granted,
}

/// Describes the sandbox of a call of this class.
pub fn sandbox_contents(class: SideEffects, power: Power) -> &'static str {
    match (class, power) {
        (_, Power::Class) => without_grants(class),
        (SideEffects::None, Power::Granted) => "no files, no network; the granted environment",
        (SideEffects::Read, Power::Granted) => {
            "the workspace, read-only; GET and HEAD as granted; the granted environment"
        }
        (SideEffects::Write | SideEffects::Execute, Power::Granted) => {
            "the workspace, read-write; GET and HEAD as granted; the granted environment"
        }
        (SideEffects::Network, Power::Granted) => {
            "no files; requests as granted; the granted environment"
        }
    }
}

fn without_grants(class: SideEffects) -> &'static str {
    match class {
        SideEffects::None => "no files, no network, no environment",
        SideEffects::Read => "the workspace, read-only; no network, no environment",
        SideEffects::Write => "the workspace, read-write; no network, no environment",
        SideEffects::Execute => {
            "the workspace, read-write; a plugin has no programs, network or environment; `shell` runs programs that the kernel confines, with parts of both (SECURITY.md)"
        }
        SideEffects::Network => "no files; no network without a grant, no environment",
    }
}
