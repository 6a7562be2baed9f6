//! Workspaces with special files and sparse files, and calls that exceed their disk limits.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;

use palisade::SideEffects;
use palisade_tests::guest::{HOSTILE_PROBE, LIMITS_FILES};
use palisade_tests::mounted::Mounted;
use palisade_tests::oracle::{around, around_both};
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::{Case, Oracle, World, skip};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, makedev, mknodat, renameat_with};
use serde_json::json;

use super::ENOUGH;

/// Operations that would block, or have side effects, if they opened a special file.
const OPENING: [&str; 8] =
    ["open", "open-itself", "open-write", "create", "truncate", "append", "set-size", "readdir"];

fn probed(ops: &[&str], path: &str, arrange: impl Fn(&World) + 'static) -> Case {
    let case = Case::new(HOSTILE_PROBE, "probe_write").input(json!({"ops": ops, "paths": [path]}));
    case.allow(SideEffects::Write).timeout(ENOUGH).arrange(arrange)
}

#[track_caller]
fn never_opens(arrange: impl Fn(&World) + Clone + 'static) {
    let seen = around_both(&probed(&OPENING, "special", arrange));
    let answers: Vec<Vec<String>> = serde_json::from_str(seen.output()).unwrap();
    assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [1; OPENING.len()], "{answers:?}");
    for (op, answer) in OPENING.iter().zip(answers.concat()) {
        assert!(["not-permitted", "not-directory"].contains(&answer.as_str()), "{op}: {answer}");
    }
    seen.changed_nothing();
}

#[test]
fn pipe_swapped_in_between_check_and_open_blocks_nothing() {
    if leaves_out(&[Group::D]) {
        return;
    }
    let case = probed(&OPENING, "special", |world| {
        world.file("special", "inside");
        mknodat(CWD, world.outer().join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o666), 0)
            .unwrap();
    });
    let world = case.world();
    let (file, pipe) = (world.root().join("special"), world.outer().join("pipe"));
    let over = std::sync::atomic::AtomicBool::new(false);
    let mut seen = std::collections::BTreeSet::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                renameat_with(CWD, &file, CWD, &pipe, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..20 {
                // The program has to exit by itself: an open that blocks would keep it from
                // exiting.
                let ran = case.program(&world).run().exits_with(0).json();
                let answers: Vec<Vec<String>> =
                    serde_json::from_str(ran["output"].as_str().unwrap()).unwrap();
                seen.extend(answers.concat());
            }
        }));
        over.store(true, std::sync::atomic::Ordering::SeqCst);
        tried.unwrap();
    });
    assert!(
        seen.contains("not-permitted") && seen.len() > 1,
        "sometimes it was the file: {seen:?}"
    );
}

fn node(kind: FileType, device: u64) -> impl Fn(&World) + Clone + 'static {
    move |world: &World| {
        mknodat(CWD, world.root().join("special"), kind, Mode::from_raw_mode(0o666), device)
            .unwrap();
    }
}

/// Returns whether the test may create this kind of node.
fn can_make(kind: FileType, device: u64) -> bool {
    let made = mknodat(CWD, World::new().root().join("probe"), kind, Mode::RUSR, device).is_ok();
    if !made {
        skip("only root makes devices");
    }
    made
}

#[test]
fn pipes_and_sockets_are_never_opened() {
    never_opens(node(FileType::Fifo, 0));
    never_opens(|world| drop(UnixListener::bind(world.root().join("special")).unwrap()));
}

#[test]
fn devices_are_never_opened() {
    // `/dev/zero`, `/dev/null`, `/dev/tty`, and the first loop device.
    let devices = [
        (FileType::CharacterDevice, 1, 5),
        (FileType::CharacterDevice, 1, 3),
        (FileType::CharacterDevice, 5, 0),
        (FileType::BlockDevice, 7, 0),
    ];
    for (kind, major, minor) in devices {
        if can_make(kind, makedev(major, minor)) {
            never_opens(node(kind, makedev(major, minor)));
        }
    }
}

#[test]
fn special_files_are_listed_and_removed_like_any_entry() {
    let seen = around(&probed(&["lstat", "unlink"], "special", node(FileType::Fifo, 0)));
    assert!(seen.output().contains("Fifo") && seen.output().contains("done"), "{}", seen.output());
    assert!(seen.worlds().all(|world| world.inside().is_empty()));
}

fn amount(tool: &str, amount: u64, arrange: impl Fn(&World) + 'static) -> Case {
    Case::new(LIMITS_FILES, tool)
        .input(json!({"amount": amount}))
        .allow(SideEffects::Write)
        .timeout(ENOUGH)
        .arrange(arrange)
}

#[test]
fn sparse_tebibyte_file_is_read_to_the_limit() {
    if leaves_out(&[Group::E]) {
        return;
    }
    let big =
        |world: &World| File::create(world.root().join("big")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(
        around(&probed(&["stat"], "big", big)).output(),
        r#"[["DescriptorType::RegularFile"]]"#
    );
    assert_eq!(around(&amount("read", 1 << 20, big)).limit(), "bytes_read");
    assert_eq!(around(&amount("read", 1, big)).output(), "1048576 read");
}

#[test]
fn sparse_file_counts_by_its_length() {
    assert_eq!(around_both(&amount("stretch", 1 << 40, |_| {})).limit(), "bytes_written");
    assert_eq!(around(&amount("stretch", 1, |_| {})).output(), "stretched");
}

#[test]
fn writing_ends_at_the_limit_with_reported_changes() {
    let seen = around(&amount("write", 65, |_| {}));
    assert_eq!(seen.limit(), "bytes_written");
    seen.modified(&["written"]);
}

#[test]
fn new_entries_end_at_the_limit_and_are_all_reported() {
    if leaves_out(&[Group::C]) {
        return;
    }
    let seen = around(&amount("make", 1_000_000, |_| {}));
    assert_eq!(seen.limit(), "new_entries");
    assert!(!seen.result["files_modified"].as_array().unwrap().is_empty());
}

#[test]
fn directory_of_100_000_entries_is_listed_to_the_limit() {
    if leaves_out(&[Group::E]) {
        return;
    }
    let crowd = |world: &World| {
        (0..100_001).for_each(|n| drop(File::create(world.root().join(format!("{n}"))).unwrap()));
    };
    assert_eq!(around(&amount("list", 1, crowd)).limit(), "listed_entries");
}

#[test]
fn full_disk_is_reported_to_the_guest() {
    let ops = json!({"ops": ["create", "append"], "paths": ["disk/more.txt"]});
    let case = Case::new(HOSTILE_PROBE, "probe_write")
        .input(ops)
        .allow(SideEffects::Write)
        .timeout(ENOUGH);
    let oracle = Oracle::for_case(&case);
    let world = &oracle.stage.world;
    let Some(_disk) =
        Mounted::at(world.root().join("disk"), &["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
    else {
        return;
    };
    fs::write(world.root().join("disk/filler"), vec![0; 1 << 20]).unwrap();
    let result = oracle.call(&case.to_call(world), ENOUGH);
    let answer = result.output().unwrap();
    assert!(answer.contains("io") || answer.contains("insufficient-space"), "{answer}");
}

#[test]
fn mount_in_the_workspace_is_part_of_it() {
    // Pins the behaviour: a mount point inside is part of the workspace, since an operator put it
    // there.
    let case = Case::new(HOSTILE_PROBE, "probe_read")
        .input(json!({"ops": ["open", "readdir"], "paths": ["mounted/inner.txt", "mounted"]}));
    let oracle = Oracle::for_case(&case.timeout(ENOUGH));
    let world = &oracle.stage.world;
    let Some(_disk) = Mounted::at(world.root().join("mounted"), &["-t", "tmpfs", "tmpfs"]) else {
        return;
    };
    fs::write(world.root().join("mounted/inner.txt"), "inner").unwrap();
    let call = palisade::Call::new(
        "probe_read",
        json!({"ops": ["open", "readdir"], "paths": ["mounted/inner.txt", "mounted"]}),
    );
    let answer = oracle.call(&call, ENOUGH).output().unwrap().into_owned();
    assert_eq!(answer, r#"[["inner","bad-descriptor"],["not-directory","inner.txt"]]"#);
}
