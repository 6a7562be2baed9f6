//! Tests of the confinement, observed from inside and from outside of a command.

use super::*;
use std::net::TcpListener;

/// Asserts that a command is denied. The tests also show that it would succeed without confinement.
async fn denied(world: &World, command: &str) -> String {
    let output = world.run(command).await;
    let said = failed(&output).to_owned();
    assert!(
        said.contains("ermission denied") || said.contains("not permitted"),
        "{command}: {said}"
    );
    said
}

#[tokio::test]
async fn workspace_and_home_can_be_changed_in_every_way() {
    let world = World::new(CONFINED);
    let command = "set -e; mkdir -p a/b; echo one > a/f; echo two >> a/f; mv a/f a/b/f; \
        ln -s b a/l; ln a/b/f a/hard; : > a/hard; rm a/hard; rmdir a/b 2>/dev/null || rm -r a/b; \
        echo x > $TMPDIR/x; cp $TMPDIR/x back; mv $TMPDIR/x moved; \
        printf '#!/bin/sh\\necho ran' > script; chmod +x script; ./script > /dev/null; \
        head -c 8 /dev/urandom > /dev/null; echo done";
    assert_eq!(succeeded(&world.run(command).await), "done\n");
    assert!(world.workspace().join("back").exists() && world.workspace().join("moved").exists());
}

#[tokio::test]
async fn writes_outside_the_workspace_are_denied() {
    let home = std::env::home_dir().expect("a home");
    for place in [Path::new("/tmp"), Path::new("/var/tmp"), &home, Path::new("/etc")] {
        let target = place.join(format!("palisade-test-{}", std::process::id()));
        denied(&World::new(CONFINED), &format!("echo x > {}", quoted(&target))).await;
        assert!(!target.exists(), "{}", target.display());
    }
    for verb in [
        "echo x >",
        "echo x >>",
        ": >",
        "rm -f",
        "mv -f file",
        "ln -f file",
        "truncate -s 0",
        "mkdir -p x && mv x",
    ] {
        let world = World::new(CONFINED);
        std::fs::write(world.workspace().join("file"), "mine").unwrap();
        let target =
            if verb.starts_with("mkdir") { world.outer.path().join("new") } else { world.canary() };
        let output = world.run(&format!("{verb} {}", quoted(&target))).await;
        failed(&output);
        assert_eq!(std::fs::read_to_string(world.canary()).unwrap(), "sings", "{verb}");
        assert_eq!(std::fs::read_dir(world.outer.path()).unwrap().count(), 2, "{verb}");
    }
}

#[tokio::test]
async fn reads_outside_the_workspace_and_system_are_denied() {
    let world = World::new(CONFINED);
    let canary = quoted(&world.canary());
    assert!(!denied(&world, &format!("cat {canary}")).await.contains("sings"));
    for command in [
        "cat /etc/shadow",
        "cat /proc/1/environ",
        "cat /proc/self/status",
        "ls /etc",
        "ls /",
        "ls /sys",
        "ls ..",
        "cat /dev/tty",
        "ls $HOME/..",
    ] {
        denied(&World::new(CONFINED), command).await;
    }
    assert_eq!(
        succeeded(&World::new(UNCONFINED).run("cat ../canary").await),
        "sings",
        "it is the kernel that denies it"
    );
}

#[tokio::test]
async fn links_do_not_lead_out() {
    let world = World::new(CONFINED);
    assert!(
        !denied(&world, &format!("ln -s {} link && cat link", quoted(&world.canary())))
            .await
            .contains("sings")
    );
    failed(&World::new(CONFINED).run("ln -s .. up && echo x > up/new").await);
}

#[tokio::test]
async fn devices_cannot_be_created() {
    let world = World::new(CONFINED);
    denied(&world, "mknod disk b 8 0 || mknod zero c 1 5").await;
    assert_eq!(std::fs::read_dir(world.workspace()).unwrap().count(), 0);
}

#[tokio::test]
async fn tcp_connections_are_denied() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
    let output = World::new(CONFINED).run(&connect).await;
    assert_eq!(output.metadata["network"], json!("denied"));
    assert!(failed(&output).contains("not permitted"), "{}", text(&output));
    assert!(listener.accept().is_err(), "nothing arrived");
    for setup in [CONNECTED, UNCONFINED] {
        let output = World::new(setup).run(&connect).await;
        succeeded(&output);
        assert_eq!(output.metadata["network"], json!("open"));
        assert!(listener.accept().is_ok(), "the same command connects where it may");
    }
}

#[tokio::test]
async fn signals_to_outside_processes_are_denied() {
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let output = World::new(CONFINED).run(&format!("kill {}", other.id())).await;
    let alive = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    if output.metadata["landlock_abi"].as_u64() >= Some(6) {
        failed(&output);
        assert!(alive);
    }
}

#[tokio::test]
async fn metadata_describes_the_confinement() {
    let confined = run("true").await;
    assert_eq!(confined.metadata["confined_by"], json!("landlock"));
    assert!(confined.metadata["landlock_abi"].as_u64() >= Some(3));
    let free = World::new(UNCONFINED).run("true").await;
    assert_eq!(free.metadata["confined_by"], json!("nothing"));
    assert_eq!(free.metadata["landlock_abi"], Value::Null);
    assert_eq!(free.metadata["network"], json!("open"));
}

#[tokio::test]
async fn nothing_runs_without_landlock_unless_unconfined() {
    let world = World::new(Setup { kernel: Kernel::WithoutLandlock, ..CONFINED });
    let refused = world.call(json!({"command": "echo x > ran"})).await.unwrap_err();
    assert!(matches!(refused, ErrorKind::PermissionDenied { .. }), "{refused}");
    let advice = refused.advice("shell").unwrap().told(&palisade::Places::new("here"));
    assert!(advice.contains("`shell.unconfined = true`"), "{advice}");
    assert!(!world.workspace().join("ran").exists());
    let free = World::new(Setup { kernel: Kernel::WithoutLandlock, ..UNCONFINED });
    succeeded(&free.run("echo x").await);
}

#[tokio::test]
async fn threads_of_the_host_stay_unconfined() {
    let privileges = || {
        std::fs::read_to_string("/proc/thread-self/status")
            .unwrap()
            .lines()
            .find(|line| line.starts_with("NoNewPrivs"))
            .map(str::to_owned)
    };
    let before = privileges();
    let world = World::new(CONFINED);
    succeeded(&world.run("true").await);
    assert_eq!(privileges(), before);
    std::fs::write(world.outer.path().join("after"), "x").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| std::fs::read_dir("/etc").unwrap().count());
    });
    assert!(std::process::Command::new("ls").arg("/etc").output().unwrap().status.success());
}
