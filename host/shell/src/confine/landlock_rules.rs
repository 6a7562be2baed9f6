//! The Landlock rules of a command.

use super::Bounds;
use crate::Network;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use std::error::Error;
use std::fs;

/// The newest ABI whose restrictions are requested; an older kernel enforces those that it
/// supports.
const NEWEST_ABI: ABI = ABI::V9;

/// System programs and libraries: read and execute. `/opt` is excluded, because services keep
/// secrets beside their programs there and `PATH` does not include it.
const PROGRAMS: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Files in `/etc` that programs need: read only. Never the whole directory.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];

/// Prefixes of versioned names in `/etc`: the Python and Java libraries under `/usr` link to files
/// there and fail without them.
const VERSIONED: &[&str] = &["python3", "java-"];

/// Scopes the signals of the calling thread to a new Landlock domain, permanently, if the kernel
/// supports that. Nothing else is restricted. Domains that this thread's children add are nested in
/// this one: signals reach into them, but not out of this domain.
pub(super) fn scope_signals() -> Result<(), Box<dyn Error>> {
    // Every domain denies moves and links between directories that it does not grant.
    Ruleset::default()
        .handle_access(AccessFs::Refer)?
        .scope(Scope::Signal)?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::Refer))?
        .restrict_self()?;
    Ok(())
}

/// Restricts the calling thread permanently. Returns the Landlock ABI in force, or 0 for none.
pub(super) fn restrict(bounds: Bounds<'_>) -> Result<u32, Box<dyn Error>> {
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST_ABI))?
        .scope(Scope::from_all(NEWEST_ABI))?;
    let rules = match bounds.network {
        Network::Closed => rules.handle_access(AccessNet::from_all(NEWEST_ABI))?,
        Network::Open => rules,
    };
    let status = rules
        .create()?
        .add_rule(PathBeneath::new(bounds.workspace, full_access()))?
        .add_rule(PathBeneath::new(PathFd::new(bounds.home)?, full_access()))?
        // Missing paths are skipped, and a file gets only those rights that apply to files.
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(
            PROGRAMS,
            AccessFs::from_read(NEWEST_ABI),
        ))?
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(
            bounds.readable,
            AccessFs::from_read(NEWEST_ABI),
        ))?
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(
            settings(),
            AccessFs::ReadFile | AccessFs::ReadDir,
        ))?
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(
            ["/dev/null", "/dev/zero", "/dev/full"],
            AccessFs::ReadFile | AccessFs::WriteFile,
        ))?
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(
            ["/dev/random", "/dev/urandom"],
            AccessFs::ReadFile,
        ))?
        .restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => 0,
        (_, LandlockStatus::Available { effective_abi, .. }) => effective_abi as u32,
        _ => 0,
    })
}

/// Returns the rights in the workspace and in the home directory: everything except devices, which
/// give access to raw disks.
fn full_access() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST_ABI)
        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn settings() -> Vec<String> {
    let versioned = |name: &String| VERSIONED.iter().any(|start| name.starts_with(start));
    let names = fs::read_dir("/etc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let found = names.filter(versioned).map(|name| format!("/etc/{name}"));
    SETTINGS.iter().map(|&path| path.to_owned()).chain(found).collect()
}
