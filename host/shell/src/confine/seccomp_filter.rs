//! The seccomp filter of a command, for system calls that Landlock does not cover.
//!
//! The filter is a deny list: an allow list would have to suit every program of a system.

use super::Network;
use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET,
    CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS, SOCK_DGRAM, SOCK_RAW, c_int, c_long,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter, sock_filter,
};
use std::collections::BTreeMap;
use std::error::Error;

/// System calls that are denied with any arguments.
const DENIED: &[c_long] = &[
    // I/O of every kind that bypasses this filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Memory and file descriptors of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Keyrings of the user.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // IPC objects that every process of the user can reach by number or name.
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
    // A new namespace grants privileges within it, which widen the attack surface of the kernel.
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
    // Names and options of every mount, as in `/proc/self/mountinfo`.
    STATMOUNT,
    LISTMOUNT,
    // File flags and attributes by path, which Landlock does not cover.
    FILE_SETATTR,
    // Programs inside the kernel, and system-wide monitoring.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    // Names of files in every readable directory, which Landlock does not cover. A program without
    // inotify, such as `tail -f`, polls.
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_syslog,
    // Administration of the machine, for a host that runs as root.
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

/// System calls that create and connect sockets.
const SOCKETS: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// Address families that `shell.network = true` opens. Unix sockets are excluded: services that
/// trust the user, such as the session bus or a container daemon, could act on behalf of the
/// command.
const NETWORK_FAMILIES: [c_int; 3] = [AF_INET, AF_INET6, AF_NETLINK];

/// The flags of `clone` that create a namespace.
const NAMESPACES: [c_int; 7] = [
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
];

/// System calls that choose the processors and the scheduling policy of a thread.
const SCHEDULING: &[c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// System calls that set the permissions of a file, each with the argument that has them.
const PERMISSIONS: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];
/// System calls that open or create a file, each with the argument that has the flags. The next one
/// has the permissions of a created file.
const OPENS: &[(c_long, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];
/// The flags by which these calls create a file: `O_CREAT`, and the own bit of `O_TMPFILE`.
const CREATING: [c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
/// The permission by which a program runs with the rights of its owner. Such a program of the user
/// would end the confinement with any other user of the machine. setgid is not denied: repositories
/// that several users share need it for directories, and no filter sees the type of a file.
const SETUID: u64 = 0o4000;

/// System calls that signal a process or open a handle that can.
const SIGNALS: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// `F_SETOWN` and `F_SETOWN_EX`.
const OWNER_BY_FCNTL: [c_int; 2] = [libc::F_SETOWN, 15];
/// `FIOSETOWN` and `SIOCSPGRP`.
const OWNER_BY_IOCTL: [c_int; 2] = [0x8901, 0x8902];

/// `kill` with this process ID signals every process that the caller may signal.
const ALL_PROCESSES: [c_int; 1] = [-1];

/// The number is the same on every architecture; `libc` has no constant for it yet.
const OPEN_TREE_ATTR: c_long = 467;
/// As above.
const FCHMODAT2: c_long = 452;
/// As above.
const FILE_SETATTR: c_long = 469;
/// As above.
const STATMOUNT: c_long = 457;
/// As above.
const LISTMOUNT: c_long = 458;

/// The first number that was not a system call when this list was written. Newer system calls fail
/// as on an older kernel. All numbers of the x32 ABI are larger.
const FIRST_UNKNOWN: u32 = 471;

/// Mask of the socket type without its flags.
const SOCKET_TYPE: u64 = 0xf;
/// `IOPRIO_WHO_PROCESS` of `ioprio_set`.
const IOPRIO_WHO_PROCESS: u64 = 1;

/// Filters the system calls of the calling thread permanently. Signals to these threads and to the
/// process groups of their numbers are denied.
pub(super) fn filter(network: Network, protected_threads: &[c_int]) -> Result<(), Box<dyn Error>> {
    let architecture = std::env::consts::ARCH.try_into()?;
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    // A call with the numbers of another architecture, such as `int 0x80`, kills the process,
    // because those numbers mean other calls.
    let filter = SeccompFilter::new(
        rules(network, protected_threads)?,
        SeccompAction::Allow,
        denied,
        architecture,
    )?;
    let program: BpfProgram = filter.try_into()?;
    Ok(apply_filter(&[unknown_calls()?, program].concat())?)
}

/// Returns a filter that fails with `ENOSYS`, so that programs use a fallback: for `clone3` and
/// `openat2`, whose arguments are in memory that no filter can read, and for all calls newer than
/// this list.
fn unknown_calls() -> Result<BpfProgram, std::num::TryFromIntError> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let statement = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    Ok(vec![
        // The first word of the data is the system call number.
        statement(LOAD_WORD, 0, 0, 0),
        statement(JUMP_IF_NOT_LESS, 2, 0, FIRST_UNKNOWN),
        statement(JUMP_IF_EQUAL, 1, 0, libc::SYS_clone3.try_into()?),
        statement(JUMP_IF_EQUAL, 0, 1, libc::SYS_openat2.try_into()?),
        statement(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
    ])
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns the denied calls, each with the arguments for which it is denied, or with none for all.
fn rules(network: Network, protected_threads: &[c_int]) -> Result<Rules, BackendError> {
    let mut rules: Rules = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    // Allowed for the calling process only, which all of these calls address as 0.
    rules.insert(libc::SYS_prlimit64, vec![all([differs(0, 0)?])?]);
    rules.insert(libc::SYS_setpriority, vec![all([differs(0, 0)?])?, all([differs(1, 0)?])?]);
    rules.insert(
        libc::SYS_ioprio_set,
        vec![all([differs(0, IOPRIO_WHO_PROCESS)?])?, all([differs(1, 0)?])?],
    );
    for call in SCHEDULING {
        rules.insert(*call, vec![all([differs(0, 0)?])?]);
    }
    let namespaces = NAMESPACES.iter().map(|flag| all([has(0, flag.unsigned_abs().into())?]));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    for (call, argument) in PERMISSIONS {
        rules.insert(*call, vec![all([has(*argument, SETUID)?])?]);
    }
    for (call, flags) in OPENS {
        let setuid = |flag| all([has(*flags, number(flag))?, has(*flags + 1, SETUID)?]);
        rules.insert(*call, CREATING.into_iter().map(setuid).collect::<Result<_, _>>()?);
    }
    // A stream pair only connects its two ends. A datagram socket of a pair could send to the path
    // of another socket.
    let pairs = [
        all([differs(0, number(AF_UNIX))?])?,
        all([masked(1, SOCKET_TYPE, number(SOCK_DGRAM))?])?,
        all([masked(1, SOCKET_TYPE, number(SOCK_RAW))?])?,
    ];
    rules.insert(libc::SYS_socketpair, pairs.into());
    match network {
        Network::Closed => rules.extend(SOCKETS.iter().map(|call| (*call, Vec::new()))),
        Network::Open => {
            let others = NETWORK_FAMILIES
                .iter()
                .map(|family| differs(0, number(*family)))
                .collect::<Result<Vec<_>, _>>()?;
            rules.insert(libc::SYS_socket, vec![SeccompRule::new(others)?]);
        }
    }
    for call in SIGNALS {
        // A negative number addresses a process group in `kill`.
        let protected =
            protected_threads.iter().flat_map(|thread| [*thread, thread.wrapping_neg()]);
        let denied = protected.chain(ALL_PROCESSES).map(|target| all([equals(0, number(target))?]));
        rules.insert(*call, denied.collect::<Result<_, _>>()?);
    }
    // A process in the process group of a protected thread could signal that group as its own,
    // with the argument 0.
    if !protected_threads.is_empty() {
        let joined = protected_threads.iter().map(|thread| all([equals(1, number(*thread))?]));
        rules.insert(libc::SYS_setpgid, joined.collect::<Result<_, _>>()?);
    }
    // The owner of a descriptor receives a signal that the caller chooses when the descriptor
    // becomes readable.
    rules.insert(libc::SYS_fcntl, second_is_one_of(OWNER_BY_FCNTL)?);
    rules.insert(libc::SYS_ioctl, second_is_one_of(OWNER_BY_IOCTL)?);
    Ok(rules)
}

/// Returns rules that deny a call whose second argument is one of these.
fn second_is_one_of(commands: [c_int; 2]) -> Result<Vec<SeccompRule>, BackendError> {
    commands.into_iter().map(|command| all([equals(1, number(command))?])).collect()
}

/// Converts a number to the low half of an argument.
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
