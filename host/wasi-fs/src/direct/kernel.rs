//! Detects file systems of the kernel: `/proc/self/mem` is the host's memory, wherever it is
//! mounted.

use rustix::fs::Stat;
use std::os::fd::{AsFd, OwnedFd};

use crate::errors::{Fault, Refusal};

/// The device number of the mount's file system, on which every file may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device(Option<u64>);

impl Device {
    /// Returns the device of a mount's root, or none if the kernel owns that file system.
    pub(super) fn new(root: impl AsFd) -> Self {
        let stat = rustix::fs::fstat(&root).ok();
        Self(stat.filter(|_| !is_the_kernels(&root)).and_then(|stat| device(&stat)))
    }

    /// Refuses a file on a file system of the kernel. The check is free for files on the mount's
    /// device.
    pub(super) fn check(self, opened: &OwnedFd, stat: &Stat) -> Result<(), Fault> {
        if self.0.is_some() && self.0 == device(stat) || !is_the_kernels(opened) {
            Ok(())
        } else {
            Err(Refusal::Kernel.into())
        }
    }
}

/// Refuses to change an entry of a directory on a file system of the kernel.
pub(super) fn check_directory(directory: impl AsFd) -> Result<(), Fault> {
    if is_the_kernels(directory) { Err(Refusal::Kernel.into()) } else { Ok(()) }
}

#[allow(
    clippy::useless_conversion,
    reason = "the type of a device's number differs between systems"
)]
fn device(stat: &Stat) -> Option<u64> {
    u64::try_from(stat.st_dev).ok()
}

/// The magic numbers of these file systems, from `linux/magic.h` and from the kernel sources of the
/// ones not listed there.
#[cfg(target_os = "linux")]
const KERNELS: [u32; 18] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x6573_5543, // fusectl
    0x4249_4e4d, // binfmt_misc
    0x6165_676c, // pstore
    0x6e73_6673, // nsfs
    0x0765_5821, // resctrl
    0x1980_0202, // mqueue
];

/// The magic numbers of file systems that hold files and may count no blocks: in memory without a
/// limit, of a server that does not tell its size, or stacked on such a one.
#[cfg(target_os = "linux")]
const STORES: [u32; 20] = [
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x6573_5546, // fuse
    0x794c_7630, // overlay
    0x0102_1997, // 9p
    0x0000_6969, // nfs
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb2
    0x0000_517b, // smb
    0x5346_414f, // afs
    0x6b41_4653, // afs (kafs)
    0x7375_7245, // coda
    0x00c3_6400, // ceph
    0x0000_f15f, // ecryptfs
    0x6175_6673, // aufs
    0x7c7c_6673, // prl_fs
    0x786f_4256, // vboxsf
    0xbacb_acbc, // vmhgfs
    0x00c0_ffee, // hostfs
    0x0000_0187, // autofs, which holds mount points
];

/// Returns whether a file lies on a file system of the kernel. A failed `fstatfs` counts as an
/// ordinary file system, since the file type is checked as well. On other systems, always returns
/// false.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_the_kernels(file: impl AsFd) -> bool {
    // The magic numbers have 32 bits, but the type of the field differs between architectures.
    rustix::fs::fstatfs(file)
        .is_ok_and(|system| is_type_of_kernel(system.f_type as u32, system.f_blocks == 0))
}

/// Returns whether a file system with this magic number is the kernel's. One without blocks stores
/// nothing, so that its files are the kernel's, known by its number or not.
#[cfg(target_os = "linux")]
fn is_type_of_kernel(magic: u32, has_no_blocks: bool) -> bool {
    KERNELS.contains(&magic) || (has_no_blocks && !STORES.contains(&magic))
}

#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn is_the_kernels(_: impl AsFd) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::path::Path;

    /// The names of the file systems of the kernel in `mountinfo`.
    const OWN: [&str; 18] = [
        "proc",
        "sysfs",
        "debugfs",
        "tracefs",
        "securityfs",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "efivarfs",
        "selinuxfs",
        "smackfs",
        "fusectl",
        "binfmt_misc",
        "pstore",
        "resctrl",
        "mqueue",
        "devpts",
    ];
    /// The names of usual file systems of files.
    const USUAL: [&str; 7] = ["tmpfs", "ramfs", "overlay", "ext4", "xfs", "btrfs", "devtmpfs"];

    fn is_refused(directory: impl AsRef<Path>) -> bool {
        let judged = check_directory(File::open(directory).expect("a directory can be opened"));
        judged.is_err_and(|fault| matches!(fault, Fault::Refused(Refusal::Kernel)))
    }

    #[test]
    fn directory_is_judged_by_its_file_system() {
        let files = tempfile::tempdir().expect("a directory can be made");
        assert!(!is_refused(files.path()));
        for own in ["/proc", "/proc/self", "/proc/self/fd"] {
            assert!(is_refused(own), "{own}");
        }
    }

    #[test]
    fn file_system_without_blocks_is_the_kernels() {
        let [ext4, tmpfs, fuse, proc] = [0xef53, 0x0102_1994, 0x6573_5546, 0x9fa0];
        let [nfsd, rpc_pipefs, apparmorfs] = [0x6e66_7364, 0x6759_6969, 0x5a3c_69f0];
        let [xenfs, functionfs] = [0xabba_1974, 0x0a64_7361];
        for magic in [proc, nfsd, rpc_pipefs, apparmorfs, xenfs, functionfs] {
            assert!(is_type_of_kernel(magic, true), "{magic:x}");
        }
        assert!(is_type_of_kernel(proc, false));
        for (magic, blocks) in [(ext4, false), (tmpfs, true), (tmpfs, false), (fuse, true)] {
            assert!(!is_type_of_kernel(magic, blocks), "{magic:x}");
        }
    }

    #[test]
    fn mounted_file_systems_are_judged_by_type() {
        let mounts =
            fs::read_to_string("/proc/self/mountinfo").expect("the kernel tells its mounts");
        let mut judged = 0;
        // The last mount at a path covers the earlier ones, and a special character is escaped.
        let mut at: std::collections::BTreeMap<&str, &str> = std::collections::BTreeMap::new();
        for line in mounts.lines() {
            let (mount, system) = line.split_once(" - ").expect("a separator");
            let path = mount.split(' ').nth(4).expect("a mount point");
            at.insert(path, system.split(' ').next().expect("a type"));
        }
        for (path, name) in
            at.into_iter().filter(|(path, _)| !path.contains('\\') && Path::new(path).is_dir())
        {
            if (OWN.contains(&name) || USUAL.contains(&name)) && File::open(path).is_ok() {
                assert_eq!(is_refused(path), OWN.contains(&name), "{name} at {path}");
                judged += 1;
            }
        }
        assert!(judged > 0, "none of the mounts is known: {mounts}");
    }
}
