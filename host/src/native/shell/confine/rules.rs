//! The rules of a command, in the words of Landlock.

use super::Bounds;
use crate::native::shell::Network;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use std::error::Error;
use std::fs;

/// The newest version whose restrictions are asked for; an older kernel gives what it has.
const ASKED: ABI = ABI::V9;

/// Where the system keeps its programs and libraries: read and run. Not `/opt`, where services keep their secrets beside their programs, and nothing of PATH is.
const PROGRAMS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// What programs read in `/etc` to work at all: read. Never the directory as a whole.
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

/// Beginnings of names in `/etc` that carry a version: the libraries of Python and Java under `/usr` link to files there, and fail without them.
const VERSIONED: &[&str] = &["python3", "java-"];

/// Keeps the signals of the calling thread within a domain of its own, for good, where the kernel can. Nothing else is
/// restricted. What is restricted further from this thread is a domain within this one: signals go into it and never
/// out of it.
pub(super) fn enclose() -> Result<(), RulesetError> {
    Ruleset::default().scope(Scope::Signal)?.create()?.restrict_self()?;
    Ok(())
}

/// Restricts the calling thread for good, and gives back the version of Landlock that is in force: 0 where none is.
pub(super) fn restrict(bounds: Bounds<'_>) -> Result<u32, Box<dyn Error>> {
    let rules = Ruleset::default().handle_access(AccessFs::from_all(ASKED))?.scope(Scope::from_all(ASKED))?;
    let rules = match bounds.network {
        Network::Closed => rules.handle_access(AccessNet::from_all(ASKED))?,
        Network::Open => rules,
    };
    let status = rules
        .create()?
        .add_rule(PathBeneath::new(bounds.workspace, own()))?
        .add_rule(PathBeneath::new(PathFd::new(bounds.home)?, own()))?
        // What does not exist is passed over, and a file gets of these rights what a file can have.
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(PROGRAMS, AccessFs::from_read(ASKED)))?
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(settings(), AccessFs::ReadFile | AccessFs::ReadDir))?
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(
            ["/dev/null", "/dev/zero", "/dev/full"],
            AccessFs::ReadFile | AccessFs::WriteFile,
        ))?
        .add_rules::<_, _, _, RulesetError>(path_beneath_rules(["/dev/random", "/dev/urandom"], AccessFs::ReadFile))?
        .restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => 0,
        (_, LandlockStatus::Available { effective_abi, .. }) => effective_abi as u32,
        _ => 0,
    })
}

/// The rights in the workspace and in the private directory: everything, but for devices. Whoever may make or drive one reaches the disks behind all files.
fn own() -> BitFlags<AccessFs> {
    AccessFs::from_all(ASKED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn settings() -> Vec<String> {
    let versioned = |name: &String| VERSIONED.iter().any(|start| name.starts_with(start));
    let names =
        fs::read_dir("/etc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let found = names.filter(versioned).map(|name| format!("/etc/{name}"));
    SETTINGS.iter().map(|&path| path.to_owned()).chain(found).collect()
}
