//! A lock that tools of the run can change decides nothing in favour of a plugin.

use crate::{approve, configuration, lock, plugin, program};
use palisade_tests::World;
use palisade_tests::mounted::Mounted;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn lock_in_the_workspace_of_the_run_approves_nothing() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let _ = program(&world, &["call", "look"]).run().exits_with(0);
    // The workspace is a directory around the configuration, as a home directory is.
    let home = world.home();
    let at_home = |words: &[&str]| program(&world, words).args(["--workspace"]).args([&home]).run();
    at_home(&["call", "look"]).exits_with(4).stderr_contains(&[
        "the approvals in",
        "are not used: the file is in the workspace",
        "--workspace",
        "is not approved",
    ]);
    let before = fs::read(lock(&world)).unwrap();
    let ran = at_home(&["approve", "git", "--yes"]).exits_with(2);
    ran.stderr_contains(&["would be in the workspace", "--workspace"]);
    assert_eq!(fs::read(lock(&world)).unwrap(), before);
    let _ = at_home(&["list", "--locked", "--strict"]).exits_with(6);
    // It still revokes.
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    let plugins = world.plugins();
    let named = ["call", "look", "--plugins", plugins.to_str().unwrap()];
    at_home(&named).exits_with(4).stderr_contains(&["was revoked"]);
}

#[test]
fn link_from_the_workspace_or_into_it_approves_nothing() {
    for is_inside in [true, false] {
        let world = World::new();
        world.install("git", &plugin("look").build());
        approve(&world);
        let name = if is_inside { "real" } else { "../linked" };
        world.folder("real");
        let folder = world.root().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("palisade.toml"), configuration(&world)).unwrap();
        if is_inside {
            // A link outside of the workspace leads to the lock in it.
            fs::copy(lock(&world), folder.join("palisade.lock")).unwrap();
            symlink(&folder, world.outer().join("link")).unwrap();
        } else {
            symlink(&folder, world.root().join("link")).unwrap();
            fs::copy(lock(&world), folder.join("palisade.lock")).unwrap();
        }
        let config = match is_inside {
            true => world.outer().join("link/palisade.toml"),
            false => world.root().join("link/palisade.toml"),
        };
        let words = ["call", "look", "--config", config.to_str().unwrap()];
        let ran = program(&world, &words).run().exits_with(4);
        ran.stderr_contains(&["are not used: the file is in the workspace"]);
    }
}

#[test]
fn lock_that_the_workspace_shows_through_a_mount_approves_nothing() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let home = world.home();
    let bind = ["--bind", home.to_str().unwrap()];
    let outer = world.outer().to_owned();
    for (mounted, workspace) in [("same", "same"), ("around/below", "around")] {
        let Some(_mounted) = Mounted::at(outer.join(mounted), &bind) else { return };
        let run = |words: &[&str]| {
            program(&world, words).args(["--workspace"]).args([outer.join(workspace)]).run()
        };
        let ran = run(&["call", "look"]).exits_with(4);
        ran.stderr_contains(&["are not used: the file is in the workspace"]);
        let ran = run(&["approve", "git", "--yes"]).exits_with(2);
        ran.stderr_contains(&["would be in the workspace", "--workspace"]);
    }
    let _ = program(&world, &["call", "look"]).run().exits_with(0);
}

#[test]
fn link_that_passes_the_workspace_approves_nothing() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let own = lock(&world).parent().unwrap().to_owned();
    symlink(&own, world.outer().join("straight")).unwrap();
    symlink(&own, world.root().join("inner")).unwrap();
    symlink(world.root().join("inner"), world.outer().join("passing")).unwrap();
    let call = |name: &str| {
        let config = world.outer().join(name).join("palisade.toml");
        program(&world, &["call", "look", "--config"]).args([config]).run()
    };
    let _ = call("straight").exits_with(0);
    call("passing").exits_with(4).stderr_contains(&["the file is in the workspace"]);
}

#[test]
fn refusal_by_the_lock_of_the_project_names_it_and_its_remedy() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let text = fs::read_to_string(lock(&world)).unwrap();
    let digest = text.lines().find(|line| line.starts_with("digest")).unwrap();
    let other = format!("digest = \"sha256:{}\"", "0".repeat(64));
    world.file("palisade.lock", text.replace(digest, &other));
    let project = world.root().join("palisade.lock");
    let ran = program(&world, &["call", "look"]).run().exits_with(4);
    ran.stderr_contains(&["the project", project.to_str().unwrap()]);
    assert!(!ran.stderr.contains("palisade approve"), "it would change nothing: {ran:?}");
    let ran = program(&world, &["approve", "git", "--yes"]).run().exits_with(4);
    ran.stderr_contains(&[project.to_str().unwrap()]);
    // Without an approval of the user's, the project refuses it also after one.
    fs::remove_file(lock(&world)).unwrap();
    let ran = program(&world, &["approve", "git", "--yes"]).run().exits_with(4);
    ran.stderr_contains(&["still refuses", project.to_str().unwrap()]);
    assert!(ran.stdout.contains("`git` is approved."), "{ran:?}");
}

#[test]
fn naming_a_plugin_for_a_run_does_not_override_the_lock_of_the_project() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let own = fs::read_to_string(lock(&world)).unwrap();
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    let revoked = fs::read_to_string(lock(&world)).unwrap();
    fs::remove_file(lock(&world)).unwrap();
    let plugins = world.plugins();
    let named = ["call", "look", "--plugins", plugins.to_str().unwrap()];
    let call = || program(&world, &named).run();
    let _ = call().exits_with(0);
    let digest = own.lines().find(|line| line.starts_with("digest")).unwrap();
    let other = own.replace(digest, &format!("digest = \"sha256:{}\"", "0".repeat(64)));
    for project in [revoked, other] {
        world.file("palisade.lock", project);
        call().exits_with(4).stderr_contains(&["the `palisade.lock` of the project"]);
    }
    // The pinned bytes need no approval of the user's.
    world.file("palisade.lock", own);
    let _ = call().exits_with(0);
}

#[test]
fn files_that_decide_about_another_run_are_closed_to_tools() {
    let world = World::new();
    let folder = world.root().join("cfg");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("palisade.toml"), "").unwrap();
    let elsewhere = world.outer().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let other = program(&world, &["list", "--config"]).args([folder.join("palisade.toml")]);
    let _ = other.args(["--workspace"]).args([&elsewhere]).run().exits_with(0);
    for name in ["grants.toml", "palisade.lock", "palisade.words/x", "palisade.plugins/evil.wasm"] {
        let write = format!("{{\"path\": \"cfg/{name}\", \"content\": \"x\"}}");
        let write = ["call", "write_file", &write, "--allow", "write"];
        let _ = program(&world, &write).run().exits_with(4);
        assert!(!folder.join(name).exists(), "{name}");
    }
    for name in ["grants.toml", "palisade.lock"] {
        fs::write(folder.join(name), "planted").unwrap();
        let read = format!("{{\"path\": \"cfg/{name}\"}}");
        let ran = program(&world, &["call", "read_file", &read]).run().exits_with(4);
        assert!(!ran.stdout.contains("planted") && !ran.stderr.contains("planted"), "{ran:?}");
    }
    let other = "{\"path\": \"cfg/notes.txt\", \"content\": \"x\"}";
    let _ = program(&world, &["call", "write_file", other, "--allow", "write"]).run().exits_with(0);
}

#[test]
fn lock_of_a_project_is_closed_to_tools_at_any_depth() {
    let world = World::new();
    world.folder("sub");
    world.file("sub/palisade.lock", "[[revoked]]");
    for name in ["sub/palisade.lock", "sub/Palisade.LOCK", "new/palisade.lock"] {
        let write = format!("{{\"path\": \"{name}\", \"content\": \"x\"}}");
        let write = ["call", "write_file", &write, "--allow", "write"];
        let _ = program(&world, &write).run().exits_with(4);
    }
    let kept = fs::read_to_string(world.root().join("sub/palisade.lock")).unwrap();
    assert_eq!(kept, "[[revoked]]");
}
