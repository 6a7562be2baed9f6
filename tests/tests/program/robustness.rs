//! Workspaces and environments that try to harm the user of the program.

use crate::{program, with_guest};
use palisade_tests::World;
use palisade_tests::guest::{CONCURRENCY_COUNT, LOADER_GOOD, cache};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[test]
fn pipe_as_project_file_does_not_block() {
    let world = World::new();
    let pipe = world.root().join("palisade.toml");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .expect("a pipe");
    program(&world, &["list"])
        .run()
        .exits_with(2)
        .stderr_contains(&["palisade.toml", "not a regular file"]);
}

#[test]
fn linked_project_file_is_not_followed_or_quoted() {
    let world = World::new();
    let other = world.home().join("notes");
    fs::write(&other, "my secret = is here\n").expect("a file can be written");
    std::os::unix::fs::symlink(&other, world.root().join("palisade.toml"))
        .expect("a link can be made");
    let ran = program(&world, &["list"]).run().exits_with(2);
    ran.stderr_contains(&["symbolic link"]);
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
}

#[test]
fn project_file_text_is_escaped() {
    let world = World::new();
    world.file("palisade.toml", "[confirm]\nwrite = \"\u{1b}[2J\u{202e}otua\"\n");
    let ran = program(&world, &["list"]).run().exits_with(2);
    assert!(!ran.stderr.contains(['\u{1b}', '\u{202e}']), "{:?}", ran.stderr);
}

#[test]
fn arguments_are_escaped_in_usage_errors() {
    let world = World::new();
    let trick = "a\u{1b}[2J\u{202e}\u{9b}31m\u{7}b";
    for words in [
        &[trick][..],
        &["list", &format!("--{trick}")],
        &["call", "calculate", "{}", "--timeout", trick],
        &["call", "calculate", "{}", "--allow", trick],
        &["export", "--format", trick],
    ] {
        let ran = program(&world, words).run().exits_with(2);
        let tricks = ['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}'];
        assert!(!ran.stderr.contains(tricks) && ran.stderr.contains("u{202e}"), "{ran:?}");
    }
}

#[test]
fn directory_name_is_escaped() {
    let world = World::new();
    let named = world.root().join("w\u{1b}]0;x\u{7}\u{202e}y\n\u{9b}z");
    fs::create_dir(&named).expect("a directory can be made");
    let path = r#"{"path": "a\u009b31m\u202eb", "content": ""}"#;
    for words in
        [&["doctor"][..], &["config", "show"], &["policy", "explain", "write_file", path, "--json"]]
    {
        let ran = program(&world, words).directory(named.clone()).run();
        let tricks = ['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}'];
        assert!(!ran.stdout.contains(tricks) && !ran.stderr.contains(tricks), "{words:?}: {ran:?}");
    }
}

#[test]
fn full_stderr_causes_no_panic() {
    let world = World::new();
    let script =
        format!("{} call nosuch 2>/dev/full", palisade_tests::program::executable().display());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(world.root()).env("PALISADE_CACHE", cache());
    assert_eq!(shell.env("HOME", world.home()).status().expect("a shell").code(), Some(3));
}

#[test]
fn doctor_runs_no_compiler_from_the_workspace() {
    let world = World::new();
    world.file("rust-toolchain.toml", "[toolchain]\npath = \"/proc/self/cwd/evil\"\n");
    world.file("evil/bin/rustc", "#!/bin/sh\ntouch ran\necho rustc 1.95.0 '(evil)'\n");
    let evil = world.root().join("evil/bin/rustc");
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").unwrap_or_default();
    let ran = program(&world, &["doctor"])
        .directory(world.root())
        .env("PATH", path)
        .env("HOME", home)
        .run();
    assert!(!ran.stdout.contains("evil") && world.read("ran").is_none(), "{}", ran.stdout);
}

/// Not even root can create a directory in `/proc`, which otherwise passes for a temporary
/// directory.
#[cfg(target_os = "linux")]
#[test]
fn system_error_of_a_command_is_logged_without_paths_in_the_result() {
    let world = World::new();
    let words = ["call", "shell", r#"{"command": "true"}"#, "--allow", "execute", "--json"];
    let ran = program(&world, &words).env("TMPDIR", "/proc").run().exits_with(5);
    let error = &ran.json()["error"];
    assert_eq!(
        (&error["class"], &error["detail"]["kind"]),
        (&"execution_error".into(), &"internal".into()),
        "{ran:?}"
    );
    assert!(
        !ran.stdout.contains("/proc") && !ran.stdout.contains("palisade.private-shell"),
        "{}",
        ran.stdout
    );
    ran.stderr_contains(&["/proc/palisade.private-shell-"]);
    let doctor = program(&world, &["doctor"]).env("TMPDIR", "/proc").run();
    assert!(
        doctor.stdout.contains("/proc/palisade.private-shell-"),
        "the operator may see the path: {}",
        doctor.stdout
    );
}

#[test]
fn cache_in_the_workspace_is_refused_by_every_verb() {
    let world = World::new();
    let cache = world.root().join("cache");
    for words in [&["list"][..], &["call", "list_dir"], &["doctor"]] {
        let ran =
            program(&world, words).env("PALISADE_CACHE", cache.as_os_str()).run().exits_with(2);
        let said = [ran.stdout, ran.stderr].concat();
        assert!(said.contains("lies inside the workspace"), "{said}");
        assert!(world.inside().is_empty(), "{words:?}: {:?}", world.inside());
    }
}

/// Not even root can create a directory in `/sys`.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_cache_does_not_affect_the_call() {
    let world = World::new();
    let run = |words: &[&str]| {
        program(&world, words).env("PALISADE_CACHE", "/sys/palisade").run().exits_with(0)
    };
    run(&["call", "list_dir"]).stderr_contains(&[
        "every start compiles",
        "`/sys/palisade`",
        "PALISADE_CACHE",
    ]);
    assert!(
        run(&["doctor"]).stdout.contains("every start compiles: cannot use `/sys/palisade`"),
        "it is a note"
    );
}

#[test]
fn truncated_cache_key_is_replaced() {
    let world = World::new();
    let cache = world.home().join("cache");
    let list =
        || program(&world, &["list"]).env("PALISADE_CACHE", cache.as_os_str()).run().exits_with(0);
    list();
    fs::write(cache.join("key"), "short").expect("a file can be written");
    list();
    assert_eq!(fs::metadata(cache.join("key")).expect("a key").len(), 32);
}

const SUM: [&str; 3] = ["call", "calculate", r#"{"expression": "6 * 7"}"#];

#[test]
fn descriptor_shortage_is_an_error_naming_it() {
    let world = World::new();
    for files in ["6", "9", "10", "11", "63"] {
        for words in [&SUM[..], &["list"]] {
            let ran = program(&world, words).limited(&format!("-n {files}")).run().exits_with(1);
            ran.stderr_contains(&[files, "ulimit -n"]);
        }
    }
    assert_eq!(program(&world, &SUM).limited("-n 64").run().exits_with(0).stdout, "42");
}

#[test]
fn address_space_shortage_is_an_error_naming_it() {
    let world = World::new();
    // Without optimisation the program itself takes 112 MB.
    for kib in ["150000", "200000"] {
        let ran = program(&world, &SUM).limited(&format!("-v {kib}")).run().exits_with(1);
        ran.stderr_contains(&["address space", "ulimit -v"]);
    }
    let ran = program(&world, &SUM).limited("-d 150000").run().exits_with(1);
    ran.stderr_contains(&["146 MiB of private memory", "ulimit -d"]);
}

#[test]
fn compile_child_stays_within_the_programs_limits() {
    let world = World::new();
    for (number, limit) in ["-t 100", "-v 8000000"].into_iter().enumerate() {
        let list = with_guest(&world, LOADER_GOOD, &["list"]).limited(limit);
        let ran = list
            .env("PALISADE_CACHE", world.home().join(format!("cache-{number}")))
            .run()
            .exits_with(0);
        assert!(
            ran.stdout.contains("better") && !ran.stderr.contains("rejected"),
            "{limit}: {ran:?}"
        );
    }
}

#[test]
fn file_size_limit_does_not_kill_a_loading_program() {
    let world = World::new();
    // 4 KiB hold neither compiled code nor a guest's memory, which the system counts as a file.
    let list = with_guest(&world, CONCURRENCY_COUNT, &["list"]).limited("-f 8");
    let ran = list.env("PALISADE_CACHE", world.home().join("cache")).run().exits_with(0);
    ran.stderr_contains(&["compiled code was not cached", "rejected", "File too large"]);
}

#[test]
fn machine_check_leaves_no_temporary_files() {
    let world = World::new();
    let scratch = world.outer().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let _ = program(&world, &["doctor"]).env("TMPDIR", &scratch).run().exits_with(0);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}

#[test]
fn file_as_workspace_is_reported() {
    let world = World::new();
    world.file("a.txt", "x");
    let ran = program(&world, &["list", "--workspace"])
        .args([world.root().join("a.txt")])
        .run()
        .exits_with(2);
    ran.stderr_contains(&["cannot open the workspace", "a.txt", "ot a directory"]);
}

#[cfg(target_os = "linux")]
#[test]
fn killed_program_leaves_no_process_or_directory() {
    let world = World::new();
    let daemon = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &";
    let command = format!(
        "echo $HOME > home; echo $$ > shell; {daemon} until [ -s daemon ]; do :; done; touch begun; sleep 1000"
    );
    let input = serde_json::json!({"command": command}).to_string();
    let mut child = program(&world, &["call", "shell", &input, "--allow", "execute"]).open();
    world.wait_for("begun");
    child.kill().expect("it is there");
    child.wait().expect("it has ended");
    let gone = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
    };
    let [home, shell, daemon] =
        ["home", "shell", "daemon"].map(|file| world.read(file).expect("it ran"));
    let begun = std::time::Instant::now();
    while !gone(&shell) || !gone(&daemon) || Path::new(home.trim()).exists() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{shell} {daemon} {home}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn helper_verb_is_hidden() {
    let world = World::new();
    program(&world, &["shell-helper"])
        .stdin("{}")
        .run()
        .exits_with(2)
        .stderr_contains(&["for palisade itself"]);
}

#[cfg(target_os = "linux")]
#[test]
fn only_the_users_file_opens_the_network_of_commands() {
    let socket =
        r#"{"command": "perl -e 'use Socket; socket(S, PF_INET, SOCK_DGRAM, 0) or die $!'"}"#;
    let words = ["call", "shell", socket, "--allow", "execute"];
    let world = World::new();
    let ran = program(&world, &words).run().exits_with(5);
    ran.stderr_contains(&["not permitted"]);
    crate::user_file(&world, "[shell]\nnetwork = true");
    let _ = program(&world, &words).run().exits_with(0);
    let world = World::new();
    world.file("palisade.toml", "[shell]\nnetwork = true");
    program(&world, &words).run().exits_with(2).stderr_contains(&["shell.network", "would loosen"]);
}
