//! The system calls of a command, in the words of seccomp: what Landlock does not cover.
//!
//! Everything is allowed but what stands here. A list of what is allowed would have to hold for every program of a system.

use super::Network;
use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID,
    CLONE_NEWUSER, CLONE_NEWUTS, SOCK_DGRAM, SOCK_RAW, c_int, c_long,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};
use std::collections::BTreeMap;
use std::error::Error;

/// Denied whatever the arguments are.
const DENIED: &[c_long] = &[
    // Input and output of every kind, past this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The memory and the descriptors of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // The keyrings of the user.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Memory, semaphores and messages that every process of the user can reach by number or name.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // A namespace gives rights within it, and with them reach into the kernel.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    OPEN_TREE_ATTR,
    // The flags and attributes of a file, by its path: Landlock does not look here.
    FILE_SETATTR,
    // Programs for the kernel, and views of the whole machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    // The names of files in every directory that the user may read: Landlock does not look here. A program
    // that is given no watches at all, such as `tail -f`, asks again and again in their place.
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_syslog,
    // The machine itself, for a host that runs as root.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// What makes and joins sockets.
const SOCKETS: &[c_long] =
    &[libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];

/// The families that `shell.network = true` opens. Not Unix sockets: services that let the user in, such as the
/// session's bus or a container daemon, would do for a command what it may not do itself.
const NETWORK: [c_int; 3] = [AF_INET, AF_INET6, AF_NETLINK];

const NAMESPACES: [c_int; 7] =
    [CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS];

/// What sends a signal to a process, or opens a handle that can.
const SIGNALS: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// `F_SETOWN` and `F_SETOWN_EX`.
const OWN_BY_FCNTL: [c_int; 2] = [libc::F_SETOWN, 15];
/// `FIOSETOWN` and `SIOCSPGRP`.
const OWN_BY_IOCTL: [c_int; 2] = [0x8901, 0x8902];

/// `kill` with this number sends the signal to all processes that it may be sent to.
const EVERYBODY: [c_int; 1] = [-1];

/// The same number on every architecture; `libc` has no name for it yet.
const OPEN_TREE_ATTR: c_long = 467;
/// As above.
const FILE_SETATTR: c_long = 469;

/// The first number that was no system call when this list was written. What came later is answered as by a kernel
/// without it. All numbers of the ABI x32 are larger.
const UNKNOWN: u32 = 471;

/// The bits of a socket's type that are no flags.
const TYPE: u64 = 0xf;
/// `ioprio_set` for one process.
const IOPRIO_WHO_PROCESS: u64 = 1;

/// Filters the system calls of the calling thread for good. No signal goes to a process with one of the threads `spared`, nor to
/// the process group that it leads.
pub(super) fn filter(network: Network, spared: &[c_int]) -> Result<(), Box<dyn Error>> {
    let architecture = std::env::consts::ARCH.try_into()?;
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    // A call by the numbers of another architecture, such as `int 0x80`, kills: the numbers mean something else there.
    let filter = SeccompFilter::new(rules(network, spared)?, SeccompAction::Allow, denied, architecture)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter(&[not_known()?, program].concat())?)
}

/// Answers `ENOSYS`, so that a program does without: to `clone3`, whose flags lie in memory, where no filter looks, and
/// to all that is newer than this list.
fn not_known() -> Result<BpfProgram, std::num::TryFromIntError> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let statement = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    Ok(vec![
        // The number of the call is the first word.
        statement(LOAD_WORD, 0, 0, 0),
        statement(JUMP_IF_NOT_LESS, 1, 0, UNKNOWN),
        statement(JUMP_IF_EQUAL, 0, 1, libc::SYS_clone3.try_into()?),
        statement(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ])
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What is denied: each call with the arguments for which it is, or with none for all of them.
fn rules(network: Network, spared: &[c_int]) -> Result<Rules, BackendError> {
    let mut rules: Rules = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    // Only of the calling process itself, whom all of these call 0.
    rules.insert(libc::SYS_prlimit64, vec![all([differs(0, 0)?])?]);
    rules.insert(libc::SYS_setpriority, vec![all([differs(0, 0)?])?, all([differs(1, 0)?])?]);
    rules.insert(libc::SYS_ioprio_set, vec![all([differs(0, IOPRIO_WHO_PROCESS)?])?, all([differs(1, 0)?])?]);
    let namespaces = NAMESPACES.iter().map(|flag| all([has(0, flag.unsigned_abs().into())?]));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    // A pair is for its two ends. One of datagrams could be sent to the path of another socket.
    let pairs = [
        all([differs(0, number(AF_UNIX))?])?,
        all([masked(1, TYPE, number(SOCK_DGRAM))?])?,
        all([masked(1, TYPE, number(SOCK_RAW))?])?,
    ];
    rules.insert(libc::SYS_socketpair, pairs.into());
    match network {
        Network::Closed => rules.extend(SOCKETS.iter().map(|call| (*call, Vec::new()))),
        Network::Open => {
            let others = NETWORK.iter().map(|family| differs(0, number(*family))).collect::<Result<Vec<_>, _>>()?;
            rules.insert(libc::SYS_socket, vec![SeccompRule::new(others)?]);
        }
    }
    for call in SIGNALS {
        // To `kill`, the negative number is that of a process group.
        let spared = spared.iter().flat_map(|thread| [*thread, thread.wrapping_neg()]);
        let denied = spared.chain(EVERYBODY).map(|whom| all([equals(0, number(whom))?]));
        rules.insert(*call, denied.collect::<Result<_, _>>()?);
    }
    // A process that has joined the group of a spared one would send its signals there as to its own group.
    if !spared.is_empty() {
        let joined = spared.iter().map(|thread| all([equals(1, number(*thread))?]));
        rules.insert(libc::SYS_setpgid, joined.collect::<Result<_, _>>()?);
    }
    // The owner of a descriptor is sent a signal of its maker's choice when there is something to read.
    rules.insert(libc::SYS_fcntl, either(OWN_BY_FCNTL)?);
    rules.insert(libc::SYS_ioctl, either(OWN_BY_IOCTL)?);
    Ok(rules)
}

/// Denied where the second argument is one of these.
fn either(commands: [c_int; 2]) -> Result<Vec<SeccompRule>, BackendError> {
    commands.into_iter().map(|command| all([equals(1, number(command))?])).collect()
}

/// A number as the low half of an argument.
fn number(value: c_int) -> u64 {
    value.cast_unsigned().into()
}

fn all<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into())
}

fn equals(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn differs(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

fn has(argument: u8, flag: u64) -> Result<SeccompCondition, BackendError> {
    masked(argument, flag, flag)
}
