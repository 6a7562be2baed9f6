//! File systems whose files are the kernel's own: `/proc/self/mem` is the memory of the host, whatever directory it is mounted below.

use rustix::fs::Stat;
use std::os::fd::{AsFd, OwnedFd};

use crate::sandbox::guard::errors::{Fault, Refusal};

/// The device of a directory's file system, of which every file may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device(Option<u64>);

impl Device {
    /// That of a mount's root, unless that is the kernel's own.
    pub(super) fn of(root: impl AsFd) -> Self {
        let stat = rustix::fs::fstat(&root).ok();
        Self(stat.filter(|_| !is_the_kernels(&root)).and_then(|stat| device(&stat)))
    }

    /// Refuses what has been opened on a file system of the kernel. What lies on the mount's own costs nothing to judge.
    pub(super) fn check(self, opened: &OwnedFd, stat: &Stat) -> Result<(), Fault> {
        if self.0.is_some() && self.0 == device(stat) || !is_the_kernels(opened) {
            Ok(())
        } else {
            Err(Refusal::Kernel.into())
        }
    }
}

#[allow(clippy::useless_conversion, reason = "the type of a device's number differs between systems")]
fn device(stat: &Stat) -> Option<u64> {
    u64::try_from(stat.st_dev).ok()
}

/// The numbers of such file systems, from `linux/magic.h` and from the sources of those that are not listed there.
#[cfg(target_os = "linux")]
const KERNELS: [u32; 17] = [
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
];

/// Whether a file lies on one of them. Where the system does not say, it is taken for an ordinary one: its type has been looked at.
#[cfg(target_os = "linux")]
fn is_the_kernels(file: impl AsFd) -> bool {
    // The kernel's numbers have 32 bits, in a field whose type differs between architectures.
    rustix::fs::fstatfs(file).is_ok_and(|system| KERNELS.contains(&(system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_the_kernels(_: impl AsFd) -> bool {
    false
}
