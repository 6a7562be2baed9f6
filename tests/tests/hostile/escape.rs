//! Every operation on every kind of path that is invalid or escapes: the exact code that the guest
//! sees, with nothing outside touched or read.

use palisade::SideEffects;
use palisade_tests::guest::HOSTILE_PROBE;
use palisade_tests::oracle::{around, around_both};
use palisade_tests::without_openat2::{Refused, exists, refused_here};
use palisade_tests::{Case, Observed, World, skip};
use serde_json::json;

use super::ENOUGH;

/// The code of a refusal, as the guest sees it.
const REFUSED: &str = "not-permitted";

/// Returns true if a code is a refusal. Following a symlink to hard-link its target is outside the
/// contract, so `invalid` counts too.
fn refuses(op: &str, code: &str) -> bool {
    code == REFUSED || (op == "link-from-followed" && code == "invalid")
}

/// Operations that look or read.
const READING: [&str; 8] =
    ["open", "open-itself", "stat", "lstat", "hash", "readdir", "readlink", "link-from-followed"];
/// Operations that change something.
const CHANGING: [&str; 20] = [
    "open-write",
    "create",
    "create-new",
    "truncate",
    "append",
    "set-size",
    "append-by-reader",
    "write-by-reader",
    "set-size-by-reader",
    "set-handle-times",
    "set-times",
    "set-own-times",
    "mkdir",
    "mkdir-below",
    "rmdir",
    "unlink",
    "rename-from",
    "rename-to",
    "link-from",
    "link-to",
];
/// Operations that follow a symlink at the end of a path.
const FOLLOWING: [&str; 13] = [
    "open",
    "stat",
    "hash",
    "readdir",
    "link-from-followed",
    "open-write",
    "create",
    "truncate",
    "append",
    "set-size",
    "set-times",
    "set-handle-times",
    "mkdir-below",
];

/// Paths that escape lexically.
const OUT: [&str; 14] = [
    "..",
    "../",
    "../.",
    "../secret.txt",
    "dir/../../secret.txt",
    "./../secret.txt",
    ".//..//",
    "..//secret.txt",
    "dir/sub/../../../secret.txt",
    "/",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/cwd/../etc/passwd",
    "../../../../../../../../../../etc/passwd",
];
/// Paths that escape through a symlink in their middle.
const THROUGH: [&str; 9] = [
    "out-dir/secret.txt",
    "out-dir-absolute/secret.txt",
    "out-dir/folder/secret.txt",
    "out-slash/secret.txt",
    "dir/up/secret.txt",
    "root/etc/passwd",
    "proc-root/etc/passwd",
    "proc-cwd/Cargo.toml",
    "out-chain/secret.txt",
];
/// Symlinks that escape, at the end of a path.
const LINKS: [&str; 9] = [
    "out-file",
    "out-file-absolute",
    "out-dir",
    "out-dir-absolute",
    "out-slash",
    "root",
    "proc-root",
    "proc-fd",
    "out-dangling",
];
/// Symlinks in a loop, or in a chain that is too long.
const LOOPS: [&str; 4] = ["loop-a", "self", "chain-0", "dir/to-loop"];

fn furnished(world: &World) {
    for (path, contents) in
        [("file.txt", "inside"), ("here.txt", "here"), ("dir/inner.txt", "inner")]
    {
        world.file(path, contents);
    }
    world.folder("dir/sub").folder("empty");
    for (path, to) in [
        ("out-file", "../secret.txt"),
        ("out-file-absolute", "@/secret.txt"),
        ("out-dir", "../outside"),
        ("out-dir-absolute", "@/outside"),
        ("out-slash", "../outside/"),
        ("out-chain", "out-dir"),
        ("out-dangling", "../not-yet.txt"),
        ("dir/up", "../.."),
        ("root", "/"),
        ("proc-root", "/proc/self/root"),
        ("proc-cwd", "/proc/self/cwd"),
        ("proc-fd", "/proc/self/fd/0"),
        ("loop-a", "loop-b"),
        ("loop-b", "loop-a"),
        ("self", "self"),
        ("dir/to-loop", "../self"),
        ("to-file", "file.txt"),
        ("to-dir", "dir"),
    ] {
        world.link(path, to);
    }
    // Linux follows at most 40 symlinks: `chain-2` still resolves, `chain-0` does not.
    (0..41).for_each(|number| {
        drop(world.link(&format!("chain-{number}"), &format!("chain-{}", number + 1)).read(""));
    });
    world.link("chain-41", "file.txt");
}

fn case(tool: &str, ops: &[&str], paths: &[&str]) -> Case {
    let case = Case::new(HOSTILE_PROBE, tool).input(json!({"ops": ops, "paths": paths}));
    case.allow(SideEffects::Write).timeout(ENOUGH).arrange(furnished)
}

/// Returns the answers: a row for each operation, with the code of each path.
#[track_caller]
fn answers(seen: &Observed, ops: &[&str], paths: &[&str]) -> Vec<Vec<String>> {
    let rows: Vec<Vec<String>> = serde_json::from_str(seen.output()).unwrap();
    let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
    assert_eq!(
        lengths,
        vec![paths.len(); ops.len()],
        "every path is tried with every operation: {rows:?}"
    );
    rows
}

/// Runs each operation on each path in both classes, and checks every code and that nothing has
/// changed.
#[track_caller]
fn each_is(ops: &[&str], paths: &[&str], right: impl Fn(&str, &str, &str) -> bool) {
    for tool in ["probe_read", "probe_write"] {
        let seen = around(&case(tool, ops, paths));
        let mut wrong = Vec::new();
        for (op, row) in ops.iter().zip(answers(&seen, ops, paths)) {
            wrong.extend(
                paths
                    .iter()
                    .zip(row)
                    .filter(|(path, code)| !right(op, path, code))
                    .map(|(path, code)| format!("{op} {path:.40}: {code}")),
            );
        }
        assert_eq!(wrong, Vec::<String>::new(), "{tool}");
        seen.changed_nothing().modified(&[]);
    }
}

#[test]
fn climbing_and_absolute_paths_are_refused() {
    each_is(&READING, &OUT, |op, _, code| refuses(op, code));
    each_is(&CHANGING, &OUT, |op, _, code| refuses(op, code));
}

#[test]
fn paths_through_outside_links_are_refused() {
    each_is(&READING, &THROUGH, |op, _, code| refuses(op, code));
    each_is(&CHANGING, &THROUGH, |op, _, code| refuses(op, code));
}

#[test]
fn outside_links_are_not_followed() {
    each_is(&FOLLOWING, &LINKS, |op, _, code| refuses(op, code));
    let slashed: Vec<String> = LINKS.iter().map(|link| format!("{link}/")).collect();
    let slashed: Vec<&str> = slashed.iter().map(String::as_str).collect();
    each_is(&FOLLOWING, &slashed, |op, _, code| refuses(op, code) || code == "not-directory");
}

#[test]
fn circular_and_long_link_chains_are_an_error() {
    each_is(&FOLLOWING, &LOOPS, |op, _, code| code == "loop" || refuses(op, code));
    let below: Vec<String> = LOOPS.iter().map(|link| format!("{link}/x")).collect();
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    each_is(&["open", "stat", "readdir"], &below, |_, _, code| code == "loop");
}

#[test]
fn invalid_paths_are_refused_before_use() {
    let (long, deep) = ("n".repeat(5000), "x/".repeat(100_000));
    let paths = ["", "a\0b", "file.txt\0", &long, &deep];
    let right = |op: &str, path: &str, code: &str| match path {
        _ if refuses(op, code) => true,
        "" => ["no-entry", REFUSED].contains(&code),
        path if path.contains('\0') => ["invalid", REFUSED].contains(&code),
        _ => ["name-too-long", REFUSED].contains(&code),
    };
    for ops in [
        &READING[..4],
        &READING[4..],
        &["create", "mkdir", "unlink"],
        &["rename-from", "rename-to", "link-to"],
    ] {
        each_is(ops, &paths, right);
    }
}

#[test]
fn link_creation_is_refused_everywhere() {
    let paths = ["new", "../new", "/tmp/new", "file.txt", "../../x", "/etc/passwd", "dir/new", ""];
    each_is(&["symlink-at", "symlink-to"], &paths, |_, _, code| {
        [REFUSED, "no-entry"].contains(&code)
    });
}

#[test]
fn read_tool_changes_nothing_at_valid_paths() {
    let paths = ["file.txt", "dir", "empty", "new.txt", "to-file", "to-dir", "dir/inner.txt"];
    let seen = around_both(&case("probe_read", &CHANGING, &paths));
    for (op, row) in CHANGING.iter().zip(answers(&seen, &CHANGING, &paths)) {
        let none = ["not-permitted", "no-entry", "is-directory", "not-directory"];
        assert!(row.iter().all(|code| none.contains(&code.as_str())), "{op}: {row:?}");
        // This one opens the file as a directory first.
        let of_a_file = if *op == "mkdir-below" { "not-directory" } else { REFUSED };
        assert_eq!(row[0], of_a_file, "{op}");
    }
    seen.changed_nothing().modified(&[]);
}

/// The legitimate twins: the answer of each operation on a path where it is allowed.
const TWINS: [(&str, &str, &str); 24] = [
    ("open", "file.txt", "inside"),
    ("open", "to-dir/inner.txt", "inner"),
    ("open", "chain-2", "inside"),
    ("open-itself", "file.txt", "done"),
    ("stat", "to-file", "DescriptorType::RegularFile"),
    ("lstat", "to-file", "DescriptorType::SymbolicLink"),
    ("hash", "dir/../file.txt", "done"),
    ("readdir", "dir", "inner.txt sub to-loop up"),
    ("readlink", "to-file", "file.txt"),
    ("open-write", "file.txt", "done"),
    ("create", "created.txt", "done"),
    ("create-new", "dir/new.txt", "done"),
    ("append", "file.txt", "done"),
    ("set-size", "dir/new.txt", "done"),
    ("truncate", "created.txt", "done"),
    ("set-times", "to-file", "done"),
    ("set-own-times", "to-file", "done"),
    ("mkdir", "made", "done"),
    ("mkdir-below", "dir/sub", "done"),
    ("rmdir", "empty", "done"),
    // Hard links need the operator's permission.
    ("link-from", "file.txt", "not-permitted"),
    ("rename-to", "moved.txt", "done"),
    ("unlink", "out-file", "done"),
    ("unlink", "there.txt", "done"),
];

#[test]
fn same_operations_work_where_permitted() {
    let reading: Vec<_> = TWINS.iter().take(9).collect();
    let (ops, paths): (Vec<&str>, Vec<&str>) =
        reading.iter().map(|(op, path, _)| (*op, *path)).unzip();
    for tool in ["probe_read", "probe_write"] {
        let told = answers(&around_both(&case(tool, &ops, &paths)), &ops, &paths);
        for (number, (op, path, expected)) in reading.iter().enumerate() {
            assert_eq!(told[number][number], *expected, "{op} {path}");
        }
    }
    for (op, path, expected) in TWINS
        .iter()
        .skip(9)
        .filter(|(_, path, _)| !["there.txt", "dir/new.txt", "created.txt"].contains(path))
    {
        assert_eq!(
            answers(&around(&case("probe_write", &[op], &[path])), &[op], &[path]),
            [[*expected]],
            "{op} {path}"
        );
    }
}

#[test]
fn created_files_can_be_changed_and_removed() {
    let (ops, paths) =
        (["create-new", "append", "set-size", "truncate", "stat", "unlink"], ["made.txt"]);
    let seen = around(&case("probe_write", &ops, &paths));
    let expected = ["done", "done", "done", "done", "DescriptorType::RegularFile", "done"];
    assert_eq!(answers(&seen, &ops, &paths).concat(), expected);
    seen.changed_nothing();
}

#[test]
fn openat2_is_refused_when_requested() {
    assert!(refused_here().is_none() || !exists());
}

#[test]
fn suite_passes_without_openat2() {
    if !exists() {
        return skip("this kernel has no openat2, so everything here ran without it");
    }
    for refused in Refused::ALL {
        let ran = match refused.run_again("escape::", &["suite_passes_without_openat2"]) {
            Ok(ran) => ran,
            Err(error) => return skip(&format!("this kernel accepts no filter: {error}")),
        };
        let told = format!(
            "{}{}",
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        );
        assert!(ran.status.success() && !told.contains(" 0 passed"), "{refused:?}: {told}");
    }
}
