//! Tests of the denied system calls, made from inside a command, each beside an allowed
//! counterpart.

use super::*;
use crate::confine::filter_calls;
use rustix::io::Errno;
use rustix::process::{Pid, getpid, setpgid, test_kill_process, test_kill_process_group};

const EPERM: i32 = libc::EPERM;
const ENOSYS: i32 = libc::ENOSYS;

/// A system call with its arguments in Perl syntax; `$b` is a buffer for the kernel's output.
struct Syscall(&'static str, i64, &'static str);

/// Makes the calls in one command and returns the error number of each, or 0.
async fn error_numbers(setup: Setup, calls: &[Syscall]) -> Vec<(&'static str, i32)> {
    let list: Vec<String> = calls
        .iter()
        .map(|Syscall(_, number, arguments)| format!("[{number}, {arguments}]"))
        .collect();
    let script = format!(
        "my $b = \"\\0\" x 256; for ({}) {{ my ($n, @a) = @$_; $! = 0; my $r = syscall($n, @a); \
         print(($r == -1 ? $!+0 : 0), \"\\n\") }}",
        list.join(", ")
    );
    let world = World::new(setup);
    std::fs::write(world.workspace().join("calls.pl"), script).unwrap();
    let output = world.run("perl calls.pl").await;
    let errors: Vec<i32> = succeeded(&output).lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(errors.len(), calls.len());
    calls.iter().map(|Syscall(name, ..)| *name).zip(errors).collect()
}

#[track_caller]
fn all_return(errors: &[(&str, i32)], wanted: i32) {
    let others: Vec<_> = errors.iter().filter(|(_, error)| *error != wanted).collect();
    assert!(others.is_empty(), "these did not return {wanted}: {others:?}");
}

/// Without a filter, each of these calls is allowed, and succeeds or fails for another reason.
const ESCAPING: &[Syscall] = &[
    Syscall("a Unix socket", libc::SYS_socket, "1, 1, 0"),
    Syscall("a socket for TCP", libc::SYS_socket, "2, 1, 0"),
    Syscall("a socket for TCP over IPv6", libc::SYS_socket, "10, 1, 0"),
    Syscall("a socket for UDP", libc::SYS_socket, "2, 2, 0"),
    Syscall("a socket for multipath TCP", libc::SYS_socket, "2, 1, 262"),
    Syscall("a socket for netlink", libc::SYS_socket, "16, 3, 0"),
    Syscall(
        "a pair of datagrams, which can be sent to a path",
        libc::SYS_socketpair,
        "1, 2, 0, $b",
    ),
    Syscall("a raw pair, which is one of datagrams", libc::SYS_socketpair, "1, 3, 0, $b"),
    Syscall("ptrace", libc::SYS_ptrace, "16, 0, 0, 0"),
    Syscall("a watch of a directory outside", libc::SYS_inotify_add_watch, "-1, '/', 0x100"),
    Syscall("watches of files", libc::SYS_inotify_init1, "0"),
    Syscall("a signal to every process", libc::SYS_kill, "-1, 0"),
    Syscall("the owner of a descriptor", libc::SYS_fcntl, "1, 15, $b"),
    Syscall("process_vm_readv", libc::SYS_process_vm_readv, "getppid(), 0, 0, 0, 0, 0"),
    Syscall("process_vm_writev", libc::SYS_process_vm_writev, "getppid(), 0, 0, 0, 0, 0"),
    Syscall("pidfd_getfd", libc::SYS_pidfd_getfd, "-1, 0, 0"),
    Syscall("the limits of another", libc::SYS_prlimit64, "getppid(), 7, 0, $b"),
    Syscall("the priority of another", libc::SYS_setpriority, "0, getppid(), 0"),
    Syscall("the priority of a group", libc::SYS_setpriority, "1, 0, 0"),
    Syscall("the priority of input and output of another", libc::SYS_ioprio_set, "1, getppid(), 0"),
    Syscall("the processors of another", libc::SYS_sched_setaffinity, "getppid(), 0, $b"),
    Syscall("the scheduling of another", libc::SYS_sched_setattr, "getppid(), $b, 0"),
    Syscall("the policy of another", libc::SYS_sched_setscheduler, "getppid(), 5, $b"),
    Syscall("the parameters of another", libc::SYS_sched_setparam, "getppid(), $b"),
    Syscall("shmget", libc::SYS_shmget, "0, 0, 0"),
    Syscall("shmat", libc::SYS_shmat, "-1, 0, 0"),
    Syscall("shmdt", libc::SYS_shmdt, "1"),
    Syscall("shmctl", libc::SYS_shmctl, "-1, 0, 0"),
    Syscall("semget", libc::SYS_semget, "0, 0, 0"),
    Syscall("semctl", libc::SYS_semctl, "-1, 0, 0"),
    Syscall("msgget", libc::SYS_msgget, "77777, 0"),
    Syscall("msgctl", libc::SYS_msgctl, "-1, 0, 0"),
    Syscall("mq_open", libc::SYS_mq_open, "'palisade-no-such-queue', 0, 0, 0"),
    Syscall("file_setattr, which Landlock does not look at", 469, "-100, '/', $b, 0, 0"),
    Syscall("setuid by a path", libc::SYS_fchmodat, "-100, 'calls.pl', 04755"),
    Syscall("setuid by a descriptor", libc::SYS_fchmod, "-1, 04755"),
    Syscall("setuid by a path with flags", 452, "-100, 'calls.pl', 04755, 0"),
    Syscall("a created file with setuid", libc::SYS_openat, "-100, 'made', 0101, 04755"),
    Syscall("a file without a name, with setuid", libc::SYS_openat, "-100, '.', 020200001, 04755"),
];

/// Calls that some systems deny to every process already.
const PRIVILEGED: &[Syscall] = &[
    Syscall("a socket of packets", libc::SYS_socket, "17, 3, 0"),
    Syscall("a socket for the kernel's ciphers", libc::SYS_socket, "38, 5, 0"),
    Syscall("a socket to the hypervisor", libc::SYS_socket, "40, 1, 0"),
    Syscall("io_uring_setup", libc::SYS_io_uring_setup, "1, $b"),
    Syscall("io_uring_enter", libc::SYS_io_uring_enter, "-1, 0, 0, 0, 0, 0"),
    Syscall("io_uring_register", libc::SYS_io_uring_register, "-1, 0, 0, 0"),
    Syscall("add_key", libc::SYS_add_key, "'user', 'palisade', $b, 1, -3"),
    Syscall("request_key", libc::SYS_request_key, "'user', 'palisade', 0, 0"),
    Syscall("keyctl", libc::SYS_keyctl, "0, -3, 0"),
    Syscall("unshare", libc::SYS_unshare, "0x10000000"),
    Syscall("setns", libc::SYS_setns, "-1, 0"),
    Syscall("a clone with a namespace for users", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
    Syscall("a clone with a namespace for the network", libc::SYS_clone, "0x40000011, 0, 0, 0, 0"),
    Syscall("mount", libc::SYS_mount, "0, '.', 0, 0, 0"),
    Syscall("chroot", libc::SYS_chroot, "'.'"),
    Syscall("bpf", libc::SYS_bpf, "0, 0, 0"),
    Syscall("perf_event_open", libc::SYS_perf_event_open, "0, 0, -1, -1, 0"),
    Syscall("userfaultfd", libc::SYS_userfaultfd, "1"),
    Syscall("fanotify_init", libc::SYS_fanotify_init, "0, 0"),
    Syscall("open_by_handle_at", libc::SYS_open_by_handle_at, "-1, 0, 0"),
    Syscall("kcmp", libc::SYS_kcmp, "0, 0, 0, 0, 0"),
    Syscall("statmount", 457, "$b, $b, 256, 0"),
    Syscall("listmount", 458, "$b, $b, 1, 0"),
];

#[tokio::test]
async fn escaping_calls_are_denied_only_when_confined() {
    all_return(&error_numbers(CONFINED, ESCAPING).await, EPERM);
    for (name, error) in error_numbers(UNCONFINED, ESCAPING).await {
        assert_ne!(error, EPERM, "{name} is denied anyway, so that its denial shows nothing");
    }
}

#[tokio::test]
async fn privileged_kernel_interfaces_are_denied() {
    all_return(&error_numbers(CONFINED, PRIVILEGED).await, EPERM);
}

#[tokio::test]
async fn calls_that_programs_need_are_allowed() {
    let kept = [
        Syscall("a pair of streams", libc::SYS_socketpair, "1, 1, 0, $b"),
        Syscall("a pair of packets", libc::SYS_socketpair, "1, 5, 0, $b"),
        Syscall("a pair that a child does not inherit", libc::SYS_socketpair, "1, 0x80801, 0, $b"),
        Syscall("its own limits", libc::SYS_prlimit64, "0, 7, 0, $b"),
        Syscall("its own priority", libc::SYS_setpriority, "0, 0, 10"),
        Syscall("its own policy", libc::SYS_sched_setscheduler, "0, 0, $b"),
        Syscall("a signal to itself", libc::SYS_kill, "$$, 0"),
        Syscall("permissions without setuid", libc::SYS_fchmodat, "-100, 'calls.pl', 02755"),
        Syscall("a file in memory", libc::SYS_memfd_create, "'palisade', 0"),
    ];
    all_return(&error_numbers(CONFINED, &kept).await, 0);
}

#[tokio::test]
async fn open_network_has_address_families_only() {
    let opened = [
        Syscall("a socket for TCP", libc::SYS_socket, "2, 1, 0"),
        Syscall("a socket for UDP", libc::SYS_socket, "2, 2, 0"),
        Syscall("a socket for UDP of IPv6", libc::SYS_socket, "10, 2, 0"),
        Syscall("a socket for netlink", libc::SYS_socket, "16, 3, 0"),
    ];
    all_return(&error_numbers(CONNECTED, &opened).await, 0);
    let closed = [
        Syscall("a Unix socket", libc::SYS_socket, "1, 1, 0"),
        Syscall("a pair of datagrams", libc::SYS_socketpair, "1, 2, 0, $b"),
        Syscall("a socket to the hypervisor", libc::SYS_socket, "40, 1, 0"),
        Syscall("shmget", libc::SYS_shmget, "0, 0, 0"),
    ];
    all_return(&error_numbers(CONNECTED, &closed).await, EPERM);
}

#[tokio::test]
async fn unfilterable_and_unknown_calls_fail_as_missing() {
    let unknown = [
        Syscall("clone3, whose flags lie in memory", libc::SYS_clone3, "0, 0"),
        Syscall("openat2, whose permissions do", libc::SYS_openat2, "-100, '.', $b, 24"),
        Syscall("a call of the ABI x32", 0x4000_0000 + libc::SYS_socket, "2, 1, 0"),
        Syscall("ptrace of the ABI x32, without its mark", 521, "0, 0, 0, 0"),
        Syscall("a call that is still to come", 600, "0"),
    ];
    all_return(&error_numbers(CONFINED, &unknown).await, ENOSYS);
}

/// Returns an ELF program that exits with 42 through the 32-bit system call numbers, or with 7 if
/// that call returns.
#[cfg(target_arch = "x86_64")]
fn program_with_32_bit_calls() -> Vec<u8> {
    let code: &[u8] = &[
        0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80, 0xb8, 60, 0, 0, 0, 0xbf, 7, 0, 0, 0, 0x0f,
        5,
    ];
    let size = (64 + 56 + code.len()) as u64;
    let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    for value in [0x40_0000 + 64 + 56, 64, 0_u64] {
        program.extend(value.to_le_bytes());
    }
    program.extend(b"\0\0\0\0\x40\0\x38\0\x01\0\x40\0\0\0\0\0\x01\0\0\0\x05\0\0\0");
    for value in [0, 0x40_0000, 0x40_0000, size, size, 0x1000] {
        program.extend(value.to_le_bytes());
    }
    program.extend(code);
    program
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn calls_of_another_architecture_kill_the_process() {
    use std::os::unix::fs::PermissionsExt as _;
    let ended = async |setup| {
        let world = World::new(setup);
        let file = world.workspace().join("program");
        std::fs::write(&file, program_with_32_bit_calls()).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        succeeded(&world.run("./program 2>/dev/null; echo $?").await).to_owned()
    };
    // 128 plus the number of SIGSYS.
    let kernel_has_them = ended(UNCONFINED).await == "42\n";
    let confined = ended(CONFINED).await;
    assert!(
        confined.ends_with("159\n") || (!kernel_has_them && !confined.ends_with("42\n")),
        "{confined}"
    );
}

#[test]
fn filter_denies_signals_to_the_helper_and_to_all() {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let other = Pid::from_child(&child);
    let seen = std::thread::spawn(move || {
        let own = getpid();
        filter_calls(Network::Closed, &[own.as_raw_pid()]).unwrap();
        let pipe = std::io::pipe().unwrap();
        let owned = rustix::fs::fcntl_getfl(&pipe.0).map(drop);
        let to_groups = [test_kill_process_group(own), setpgid(Some(other), Some(own))];
        (
            [
                test_kill_process(own),
                test_kill_process_group(Pid::INIT),
                test_kill_process(other),
                owned,
            ],
            to_groups,
        )
    });
    let (seen, to_groups) = seen.join().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        to_groups,
        [Err(Errno::PERM); 2],
        "the helper leads a group, which nothing signals or joins"
    );
    assert_eq!(seen, [Err(Errno::PERM), Err(Errno::PERM), Ok(()), Ok(())]);
}
