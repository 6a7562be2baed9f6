//! Tests of the execution environment of a command.

use super::*;
use std::collections::BTreeMap;

#[tokio::test]
async fn environment_is_short_and_not_inherited() {
    let output = run("env; ls -A \"$HOME\"; echo mode=$(stat -c %a \"$HOME\")").await;
    let variables: BTreeMap<&str, &str> =
        succeeded(&output).lines().filter_map(|line| line.split_once('=')).collect();
    let mut variables = variables;
    assert_eq!(variables.remove("mode"), Some("700"), "nobody else may enter");
    let known =
        ["HOME", "LANG", "LC_ALL", "OLDPWD", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "TZ", "_"];
    assert!(variables.keys().all(|name| known.contains(name)), "{variables:?}");
    assert_eq!(variables["PATH"], "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    assert_eq!(variables["TERM"], "dumb");
    assert_eq!(variables["HOME"], variables["TMPDIR"]);
    assert!(variables["HOME"].contains("palisade.private-shell-"), "{variables:?}");
}

#[tokio::test]
async fn concurrent_calls_have_separate_groups_and_homes() {
    let one = World::new(CONFINED);
    let two = World::new(CONFINED);
    let command = "echo group $$; echo home $HOME; echo x > $HOME/file; chmod 500 $HOME; \
        until [ -e go ]; do sleep 0.02; done";
    let both = async {
        let seen = [one.sink.line("group ").await, two.sink.line("group ").await];
        let homes = [one.sink.line("home ").await, two.sink.line("home ").await];
        for (world, home) in [&one, &two].into_iter().zip(&homes) {
            assert!(Path::new(home).is_dir(), "{home}");
            std::fs::write(world.workspace().join("go"), "").unwrap();
        }
        (seen, homes)
    };
    let (first, second, (groups, homes)) = tokio::join!(one.run(command), two.run(command), both);
    assert_eq!((first.outcome, second.outcome), (Outcome::Success, Outcome::Success));
    assert_ne!(groups[0], groups[1]);
    assert_ne!(homes[0], homes[1]);
    assert!(homes.iter().all(|home| !Path::new(home).exists()), "{homes:?}");
}

#[tokio::test]
async fn deep_and_locked_homes_are_removed() {
    let world = World::new(CONFINED);
    let command = "cd $HOME; p=$(printf 'd/%.0s' $(seq 150)); for i in 1 2; do \
        mkdir -p $p && cd -P $p; done; \
        mkdir -p $HOME/locked/inner; touch $HOME/locked/inner/file; \
        chmod 500 $HOME/locked/inner $HOME/locked; echo $HOME";
    let output = world.run(command).await;
    let home = Path::new(succeeded(&output).trim());
    assert!(home.is_absolute() && !home.exists(), "{}", home.display());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn inherited_descriptors_are_closed_in_the_command() {
    use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
    let world = World::new(UNCONFINED);
    let low = std::fs::File::open(world.canary()).unwrap();
    let high = fcntl_dupfd_cloexec(&low, 40).unwrap();
    // The last entry is the handle of the listed directory, which is closed by then.
    let listing = "for f in /proc/$$/fd/*; do readlink $f; done; true";
    fcntl_setfd(&low, FdFlags::empty()).unwrap();
    fcntl_setfd(&high, FdFlags::empty()).unwrap();
    let spawned = std::process::Command::new("/bin/sh").args(["-c", listing]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&spawned.stdout).matches("canary").count(),
        2,
        "a child would inherit both"
    );
    let output = world.run(listing).await;
    assert!(!succeeded(&output).contains("canary"), "{}", text(&output));
}

#[tokio::test]
async fn swapping_the_workspace_path_has_no_effect() {
    let world = World::new(CONFINED);
    std::fs::rename(world.workspace(), world.outer.path().join("moved")).unwrap();
    std::fs::create_dir(world.workspace()).unwrap();
    assert_eq!(succeeded(&world.run("echo here > file; cat file").await), "here\n");
    assert!(world.outer.path().join("moved/file").exists());
}
