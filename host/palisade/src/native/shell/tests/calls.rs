//! Tests of the denied system calls, made from inside a command, each beside an allowed
//! counterpart.

use super::*;
use crate::native::shell::confine::filtered;
use rustix::io::Errno;
use rustix::process::{Pid, getpid, setpgid, test_kill_process, test_kill_process_group};

const EPERM: i32 = libc::EPERM;
const ENOSYS: i32 = libc::ENOSYS;

/// A system call with its arguments in Perl syntax; `$b` is a buffer for the kernel's output.
struct Made(&'static str, i64, &'static str);

/// Makes the calls in one command and returns the error number of each, or 0.
async fn made(setup: Setup, calls: &[Made]) -> Vec<(&'static str, i32)> {
    let list: Vec<String> =
        calls.iter().map(|Made(_, number, arguments)| format!("[{number}, {arguments}]")).collect();
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
    calls.iter().map(|Made(name, ..)| *name).zip(errors).collect()
}

#[track_caller]
fn each(made: &[(&str, i32)], wanted: i32) {
    let others: Vec<_> = made.iter().filter(|(_, error)| *error != wanted).collect();
    assert!(others.is_empty(), "these did not come to {wanted}: {others:?}");
}

/// Without a filter, each of these calls is allowed, and succeeds or fails for another reason.
const REACHING_OUT: &[Made] = &[
    Made("a Unix socket", libc::SYS_socket, "1, 1, 0"),
    Made("a socket for TCP", libc::SYS_socket, "2, 1, 0"),
    Made("a socket for TCP over IPv6", libc::SYS_socket, "10, 1, 0"),
    Made("a socket for UDP", libc::SYS_socket, "2, 2, 0"),
    Made("a socket for multipath TCP", libc::SYS_socket, "2, 1, 262"),
    Made("a socket for netlink", libc::SYS_socket, "16, 3, 0"),
    Made("a pair of datagrams, which can be sent to a path", libc::SYS_socketpair, "1, 2, 0, $b"),
    Made("a raw pair, which is one of datagrams", libc::SYS_socketpair, "1, 3, 0, $b"),
    Made("ptrace", libc::SYS_ptrace, "16, 0, 0, 0"),
    Made("a watch of a directory outside", libc::SYS_inotify_add_watch, "-1, '/', 0x100"),
    Made("watches of files", libc::SYS_inotify_init1, "0"),
    Made("a signal to every process", libc::SYS_kill, "-1, 0"),
    Made("the owner of a descriptor", libc::SYS_fcntl, "1, 15, $b"),
    Made("process_vm_readv", libc::SYS_process_vm_readv, "getppid(), 0, 0, 0, 0, 0"),
    Made("process_vm_writev", libc::SYS_process_vm_writev, "getppid(), 0, 0, 0, 0, 0"),
    Made("pidfd_getfd", libc::SYS_pidfd_getfd, "-1, 0, 0"),
    Made("the limits of another", libc::SYS_prlimit64, "getppid(), 7, 0, $b"),
    Made("the priority of another", libc::SYS_setpriority, "0, getppid(), 0"),
    Made("the priority of a group", libc::SYS_setpriority, "1, 0, 0"),
    Made("the priority of input and output of another", libc::SYS_ioprio_set, "1, getppid(), 0"),
    Made("the processors of another", libc::SYS_sched_setaffinity, "getppid(), 0, $b"),
    Made("the scheduling of another", libc::SYS_sched_setattr, "getppid(), $b, 0"),
    Made("the policy of another", libc::SYS_sched_setscheduler, "getppid(), 5, $b"),
    Made("the parameters of another", libc::SYS_sched_setparam, "getppid(), $b"),
    Made("shmget", libc::SYS_shmget, "0, 0, 0"),
    Made("shmat", libc::SYS_shmat, "-1, 0, 0"),
    Made("shmdt", libc::SYS_shmdt, "1"),
    Made("shmctl", libc::SYS_shmctl, "-1, 0, 0"),
    Made("semget", libc::SYS_semget, "0, 0, 0"),
    Made("semctl", libc::SYS_semctl, "-1, 0, 0"),
    Made("msgget", libc::SYS_msgget, "77777, 0"),
    Made("msgctl", libc::SYS_msgctl, "-1, 0, 0"),
    Made("mq_open", libc::SYS_mq_open, "'palisade-no-such-queue', 0, 0, 0"),
    Made("file_setattr, which Landlock does not look at", 469, "-100, '/', $b, 0, 0"),
];

/// Calls that some systems deny to every process already.
const REACHING_DEEP: &[Made] = &[
    Made("a socket of packets", libc::SYS_socket, "17, 3, 0"),
    Made("a socket for the kernel's ciphers", libc::SYS_socket, "38, 5, 0"),
    Made("a socket to the hypervisor", libc::SYS_socket, "40, 1, 0"),
    Made("io_uring_setup", libc::SYS_io_uring_setup, "1, $b"),
    Made("io_uring_enter", libc::SYS_io_uring_enter, "-1, 0, 0, 0, 0, 0"),
    Made("io_uring_register", libc::SYS_io_uring_register, "-1, 0, 0, 0"),
    Made("add_key", libc::SYS_add_key, "'user', 'palisade', $b, 1, -3"),
    Made("request_key", libc::SYS_request_key, "'user', 'palisade', 0, 0"),
    Made("keyctl", libc::SYS_keyctl, "0, -3, 0"),
    Made("unshare", libc::SYS_unshare, "0x10000000"),
    Made("setns", libc::SYS_setns, "-1, 0"),
    Made("a clone with a namespace for users", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
    Made("a clone with a namespace for the network", libc::SYS_clone, "0x40000011, 0, 0, 0, 0"),
    Made("mount", libc::SYS_mount, "0, '.', 0, 0, 0"),
    Made("chroot", libc::SYS_chroot, "'.'"),
    Made("bpf", libc::SYS_bpf, "0, 0, 0"),
    Made("perf_event_open", libc::SYS_perf_event_open, "0, 0, -1, -1, 0"),
    Made("userfaultfd", libc::SYS_userfaultfd, "1"),
    Made("fanotify_init", libc::SYS_fanotify_init, "0, 0"),
    Made("open_by_handle_at", libc::SYS_open_by_handle_at, "-1, 0, 0"),
    Made("kcmp", libc::SYS_kcmp, "0, 0, 0, 0, 0"),
    Made("statmount", 457, "$b, $b, 256, 0"),
    Made("listmount", 458, "$b, $b, 1, 0"),
];

#[tokio::test]
async fn outward_system_calls_are_denied_only_when_confined() {
    each(&made(CONFINED, REACHING_OUT).await, EPERM);
    for (name, error) in made(UNCONFINED, REACHING_OUT).await {
        assert_ne!(error, EPERM, "{name} is denied anyway, so that its denial shows nothing");
    }
}

#[tokio::test]
async fn kernel_system_calls_are_denied() {
    each(&made(CONFINED, REACHING_DEEP).await, EPERM);
}

#[tokio::test]
async fn ordinary_system_calls_are_allowed() {
    let kept = [
        Made("a pair of streams", libc::SYS_socketpair, "1, 1, 0, $b"),
        Made("a pair of packets", libc::SYS_socketpair, "1, 5, 0, $b"),
        Made("a pair that a child does not inherit", libc::SYS_socketpair, "1, 0x80801, 0, $b"),
        Made("its own limits", libc::SYS_prlimit64, "0, 7, 0, $b"),
        Made("its own priority", libc::SYS_setpriority, "0, 0, 10"),
        Made("its own policy", libc::SYS_sched_setscheduler, "0, 0, $b"),
        Made("a signal to itself", libc::SYS_kill, "$$, 0"),
        Made("a file in memory", libc::SYS_memfd_create, "'palisade', 0"),
    ];
    each(&made(CONFINED, &kept).await, 0);
}

#[tokio::test]
async fn opened_network_allows_internet_sockets_only() {
    let opened = [
        Made("a socket for TCP", libc::SYS_socket, "2, 1, 0"),
        Made("a socket for UDP", libc::SYS_socket, "2, 2, 0"),
        Made("a socket for UDP of IPv6", libc::SYS_socket, "10, 2, 0"),
        Made("a socket for netlink", libc::SYS_socket, "16, 3, 0"),
    ];
    each(&made(CONNECTED, &opened).await, 0);
    let closed = [
        Made("a Unix socket", libc::SYS_socket, "1, 1, 0"),
        Made("a pair of datagrams", libc::SYS_socketpair, "1, 2, 0, $b"),
        Made("a socket to the hypervisor", libc::SYS_socket, "40, 1, 0"),
        Made("shmget", libc::SYS_shmget, "0, 0, 0"),
    ];
    each(&made(CONNECTED, &closed).await, EPERM);
}

#[tokio::test]
async fn unknown_system_calls_are_missing() {
    let unknown = [
        Made("clone3, whose flags lie in memory", libc::SYS_clone3, "0, 0"),
        Made("a call of the ABI x32", 0x4000_0000 + libc::SYS_socket, "2, 1, 0"),
        Made("ptrace of the ABI x32, without its mark", 521, "0, 0, 0, 0"),
        Made("a call that is still to come", 600, "0"),
    ];
    each(&made(CONFINED, &unknown).await, ENOSYS);
}

/// Returns an ELF program that exits with 42 through the 32-bit system call numbers, or with 7 if
/// that call returns.
#[cfg(target_arch = "x86_64")]
fn by_other_numbers() -> Vec<u8> {
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
async fn foreign_architecture_call_kills() {
    use std::os::unix::fs::PermissionsExt as _;
    let ended = async |setup| {
        let world = World::new(setup);
        let file = world.workspace().join("program");
        std::fs::write(&file, by_other_numbers()).unwrap();
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
fn filter_protects_the_helper_and_blocks_broadcast_signals() {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let other = Pid::from_child(&child);
    let seen = std::thread::spawn(move || {
        let own = getpid();
        filtered(Network::Closed, &[own.as_raw_pid()]).unwrap();
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
