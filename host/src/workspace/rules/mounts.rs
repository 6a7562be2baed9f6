//! Mount points below a workspace, which can lead to a directory that lies elsewhere by its path.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Returns true if anything is mounted below a directory. Also true if the system cannot tell.
pub(super) fn any_below(root: &Path) -> bool {
    // Only Linux has bind mounts in unprivileged containers, and this file.
    if cfg!(not(target_os = "linux")) {
        return false;
    }
    std::fs::read("/proc/self/mountinfo").map_or(true, |table| points(&table).any(|point| is_below(&point, root)))
}

fn is_below(point: &Path, root: &Path) -> bool {
    point != root && point.starts_with(root)
}

/// Returns the mount points of a table in the form of `/proc/PID/mountinfo`.
fn points(table: &[u8]) -> impl Iterator<Item = PathBuf> {
    table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped)
}

/// Decodes the octal escapes of a path, such as `\040` for a space.
fn unescaped(path: &[u8]) -> PathBuf {
    let (mut decoded, mut rest) = (Vec::with_capacity(path.len()), path);
    while let [first, tail @ ..] = rest {
        let code = tail.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        (decoded, rest) = match (first, code) {
            (b'\\', Some(code)) => (pushed(decoded, code), &tail[3..]),
            _ => (pushed(decoded, *first), tail),
        };
    }
    PathBuf::from(OsString::from_vec(decoded))
}

fn pushed(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    const TABLE: &[u8] = b"22 1 0:20 / / rw - ext4 /dev/a rw\n30 22 0:21 / /home/a\\040b/ws/bm rw - ext4 /dev/b rw\n";

    #[test]
    fn mount_point_below_a_directory_is_found() {
        let below = |root: &str| points(TABLE).any(|point| is_below(&point, Path::new(root)));
        assert!(below("/home/a b/ws") && below("/") && below("/home"));
        assert!(!below("/home/a b/ws/bm") && !below("/home/a b/w") && !below("/srv"));
        assert_eq!(points(TABLE).count(), 2);
        assert!(any_below(Path::new("/")));
    }

    #[test]
    fn bytes_that_are_no_escape_stay() {
        for path in ["/a\\04", "/a\\9", "/\\"] {
            assert_eq!(unescaped(path.as_bytes()).as_os_str().as_bytes(), path.as_bytes());
        }
    }
}
