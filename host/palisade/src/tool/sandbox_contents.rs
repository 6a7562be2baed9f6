//! The contents of the sandbox of a call, in words for a person.

use super::SideEffects;

/// The power of a plugin beyond the classes of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// Nothing.
    Class,
    /// Requests, with or without secrets.
    Requests,
    /// Environment variables.
    Environment,
    /// Requests and environment variables.
    Both,
}

impl Power {
    /// Returns the power of a plugin with these grants, each as
    /// [`Plugin::grants`](crate::plugins::Plugin::grants) has it.
    #[must_use]
    pub fn of(grants: &[String]) -> Self {
        let has = |kind: &str| grants.iter().any(|grant| grant.starts_with(kind));
        match (has("net "), has("env ")) {
            (false, false) => Self::Class,
            (true, false) => Self::Requests,
            (false, true) => Self::Environment,
            (true, true) => Self::Both,
        }
    }
}

/// Describes the sandbox of a call of this class.
#[must_use]
pub fn sandbox_contents(class: SideEffects, power: Power) -> &'static str {
    use SideEffects::{Execute, Network, None, Read, Write};
    match (class, power) {
        (_, Power::Class) | (None, Power::Requests) => without_grants(class),
        (None, Power::Environment | Power::Both) => "no files, no network; the granted variables",
        (Read, Power::Requests) => {
            "the workspace, read-only; GET and HEAD as granted, no environment"
        }
        (Read, Power::Environment) => "the workspace, read-only; no network; the granted variables",
        (Read, Power::Both) => {
            "the workspace, read-only; GET and HEAD as granted; the granted variables"
        }
        (Write | Execute, Power::Requests) => {
            "the workspace, read-write; GET and HEAD as granted, no environment"
        }
        (Write | Execute, Power::Environment) => {
            "the workspace, read-write; no network; the granted variables"
        }
        (Write | Execute, Power::Both) => {
            "the workspace, read-write; GET and HEAD as granted; the granted variables"
        }
        (Network, Power::Requests) => "no files; requests as granted, no environment",
        (Network, Power::Environment) => {
            "no files; no network without a grant; the granted variables"
        }
        (Network, Power::Both) => "no files; requests as granted; the granted variables",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_decide_which_power_is_told() {
        let power = |grants: &[&str]| {
            let grants: Vec<String> = grants.iter().map(|grant| (*grant).to_owned()).collect();
            Power::of(&grants)
        };
        assert_eq!(power(&[]), Power::Class);
        assert_eq!(power(&["net GET https://env.example.org"]), Power::Requests);
        assert_eq!(power(&["env LANG (not set)"]), Power::Environment);
        assert_eq!(power(&["net GET https://a.org", "env LANG"]), Power::Both);
        let told = |power| sandbox_contents(SideEffects::Read, power);
        assert!(!told(Power::Requests).contains("variables"), "there is none");
        assert!(told(Power::Environment).contains("no network"));
    }
}
