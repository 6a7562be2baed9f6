//! The lock of a terminal: programs at one terminal ask one after the other, so that an answer goes
//! to the question that is the last one on the screen.

use super::LOOK;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// The looks at the lock before the person is told: a second.
const LOOKS: u32 = 20;
/// The words of a program that waits for the answer to another one.
const WAITS: &str = "\n(another question waits for the answer to this one; a stopped palisade that asks goes on with \
                     `fg`)\n";

/// The right to ask at the controlling terminal. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct TerminalLock(#[allow(dead_code, reason = "its drop unlocks")] Option<File>);

impl TerminalLock {
    /// Waits until no other program asks at this terminal, and says so there if it takes longer.
    /// Returns `None` if the question is withdrawn meanwhile. A terminal whose device cannot be
    /// opened is not locked.
    pub(super) fn wait(terminal: &mut File, is_withdrawn: impl Fn() -> bool) -> Option<Self> {
        let Some(device) = device() else { return Some(Self(None)) };
        let mut left = LOOKS;
        while !is_withdrawn() {
            match flock(&device, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    std::thread::sleep(LOOK);
                    left = left.saturating_sub(1);
                    if left == 1 {
                        let _ = terminal.write_all(WAITS.as_bytes());
                    }
                }
                Ok(()) => return Some(Self(Some(device))),
                Err(_) => return Some(Self(None)),
            }
        }
        None
    }
}

/// Opens the device of the controlling terminal, which only its user can: `/dev/tty` is one file
/// for all terminals and users.
fn device() -> Option<File> {
    let number = number(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
    let flags = i32::try_from((OFlags::NOCTTY | OFlags::NONBLOCK).bits()).ok()?;
    let device = OpenOptions::new().read(true).custom_flags(flags).open(path(number)?).ok()?;
    (device.metadata().ok()?.rdev() == number).then_some(device)
}

/// Returns the number of the controlling terminal: the fifth field behind the name of the program
/// in `/proc/self/stat` (`proc_pid_stat(5)`).
fn number(stat: &str) -> Option<u64> {
    let field = stat.rsplit(')').next()?.split_whitespace().nth(4)?;
    u64::try_from(field.parse::<i64>().ok()?).ok().filter(|number| *number != 0)
}

/// Returns the usual path of a terminal of Linux: 136 to 143 are the major numbers of
/// pseudo-terminals, and 4 is that of consoles and serial lines (`devices.txt` of the kernel).
fn path(number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let path = match (major, minor) {
        (136..=143, _) => format!("/dev/pts/{}", (major - 136) * 256 + minor),
        (4, 0..64) => format!("/dev/tty{minor}"),
        (4, 64..) => format!("/dev/ttyS{}", minor - 64),
        _ => return None,
    };
    Some(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_of_a_process_is_found_by_its_number() {
        let path_of = |number: &str| {
            let stat = format!("12 (a) b) S 1 12 12 {number} 12 4194304 0");
            self::number(&stat).and_then(path).map(|path| path.display().to_string())
        };
        assert_eq!(path_of("34816").as_deref(), Some("/dev/pts/0"));
        assert_eq!(path_of("35071").as_deref(), Some("/dev/pts/255"));
        assert_eq!(path_of("1025").as_deref(), Some("/dev/tty1"));
        assert_eq!(path_of("1088").as_deref(), Some("/dev/ttyS0"));
        assert_eq!(path_of("0"), None);
        assert_eq!(path_of("-1"), None);
    }
}
