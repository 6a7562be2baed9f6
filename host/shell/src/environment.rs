//! The execution environment of a command: directory, variables, private home, and no inherited
//! descriptors.

use crate::Confinement;
use crate::start_error::StartError;
use palisade::internal::{PRIVATE_PREFIX, closing_redirections, inherited_descriptors};
use palisade::workspace::Workspace;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The search path for programs: system directories only.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Maximum length of a time zone, in bytes. The longest zone name has some 30; the rest is for
/// POSIX rules.
const MAX_TIME_ZONE: usize = 64;

/// Returns the whole environment. Only the time zone is taken from the host.
pub(crate) fn variables(home: &Path, time_zone: Option<&str>) -> Vec<(&'static str, OsString)> {
    let mut variables: Vec<(&str, OsString)> = vec![
        ("PATH", PATH.into()),
        ("HOME", home.into()),
        ("TMPDIR", home.into()),
        ("LANG", "C.UTF-8".into()),
        ("LC_ALL", "C.UTF-8".into()),
        ("TERM", "dumb".into()),
    ];
    variables.extend(time_zone.map(|zone| ("TZ", zone.into())));
    variables
}

/// Returns the time zone of this process, if it is valid.
pub(crate) fn time_zone() -> Option<String> {
    std::env::var("TZ").ok().filter(|zone| is_time_zone(zone))
}

/// Returns true if a text is a time zone name or rule and not the path of a file.
fn is_time_zone(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_+-,.:<>".contains(c);
    text.len() <= MAX_TIME_ZONE
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '<')
        && text.chars().all(plain)
}

/// Creates a private home directory for one command, outside of the workspace if possible. Only
/// this user may enter it, and no other tool.
pub(crate) fn create_home(workspace: &Path) -> io::Result<TempDir> {
    let default = std::env::temp_dir();
    let is_outside = |parent: &PathBuf| {
        parent.canonicalize().is_ok_and(|path| path.is_dir() && !path.starts_with(workspace))
    };
    let parents = [default.clone(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()];
    let parent = parents.into_iter().find(is_outside).unwrap_or(default).canonicalize()?;
    let private = std::fs::Permissions::from_mode(0o700);
    let prefix = format!("{PRIVATE_PREFIX}shell-");
    tempfile::Builder::new().prefix(&prefix).permissions(private).tempdir_in(parent)
}

/// Removes a home directory with its content.
///
/// An empty directory is removed directly. Otherwise a child process does it: a deep tree must not
/// exhaust the stack or the descriptors of the host, and write-protected directories need `chmod`
/// first.
pub(crate) fn remove_home(home: &Path) {
    const REMOVE: &str = "rm -rf -- \"$1\" || { chmod -R u+rwx -- \"$1\"; rm -rf -- \"$1\"; }";
    let is_missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    if std::fs::remove_dir(home).is_ok() || home.symlink_metadata().is_err_and(is_missing) {
        return;
    }
    let mut remove = Command::new("/bin/sh");
    remove.args(["-c", REMOVE, "sh"]).arg(home).env_clear().env("PATH", PATH);
    let removed = remove.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !removed.is_ok_and(|status| status.success()) {
        tracing::warn!(
            "the private directory `{}` of a command could not be removed",
            home.display()
        );
    }
}

/// Returns the workspace as a path for the child process: through the open handle if the system can
/// name it, so that replacing the path has no effect.
pub(crate) fn working_directory(workspace: &Workspace) -> PathBuf {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        let handle = PathBuf::from(format!("/proc/self/fd/{}", workspace.dir().as_raw_fd()));
        if handle.is_dir() {
            return handle;
        }
    }
    workspace.root().to_owned()
}

/// Returns the shell with its command. If there are inherited descriptors, another shell closes
/// them first.
///
/// An inherited directory handle would bypass any confinement.
pub(crate) fn shell_command(
    command: &str,
    confinement: Confinement,
) -> Result<Command, StartError> {
    let open = inherited_descriptors();
    let Some(highest) = open.iter().max() else {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command);
        return Ok(shell);
    };
    let redirections = closing_redirections(&open);
    let mut shell = Command::new(closing_shell(*highest, confinement)?);
    shell
        .arg("-c")
        .arg(format!("exec{redirections}; exec /bin/sh -c \"$1\""))
        .arg("sh")
        .arg(command);
    Ok(shell)
}

/// Returns a shell that can close descriptors up to this one: POSIX shells only support one digit.
fn closing_shell(highest: u32, confinement: Confinement) -> Result<&'static str, StartError> {
    if highest <= 9 {
        return Ok("/bin/sh");
    }
    if Path::new("/bin/bash").exists() {
        return Ok("/bin/bash");
    }
    match confinement {
        Confinement::Landlock => Err(StartError::InheritedDescriptor(highest)),
        Confinement::Unconfined => Ok("/bin/sh"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;

    #[test]
    fn time_zones_are_accepted_and_file_paths_are_not() {
        for zone in ["UTC", "Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3", "<+03>-3"] {
            assert!(is_time_zone(zone), "{zone}");
        }
        for other in ["", "/etc/shadow", ":/etc/shadow", "../x", "A B", &"x".repeat(65)] {
            assert!(!is_time_zone(other), "{other}");
        }
    }

    #[test]
    fn home_is_outside_a_workspace_that_contains_tmp() {
        let workspace = std::env::temp_dir().canonicalize().unwrap();
        let home = create_home(&workspace).unwrap();
        assert!(!home.path().starts_with(&workspace), "{}", home.path().display());
    }

    #[test]
    fn unclosable_descriptors_are_an_error_when_confined() {
        assert_eq!(closing_shell(9, Confinement::Landlock).unwrap(), "/bin/sh");
        let bash = Path::new("/bin/bash").exists();
        assert_eq!(closing_shell(10, Confinement::Landlock).is_ok(), bash);
        assert_eq!(
            closing_shell(10, Confinement::Unconfined).unwrap(),
            if bash { "/bin/bash" } else { "/bin/sh" }
        );
    }
}
