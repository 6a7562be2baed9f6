//! Plugins that are added from files, updated and removed.

use crate::terminal::Terminal;
use crate::{add, file, files, folder, keys, lock, lock_text, looks, plugin, program, signature};
use palisade::tool::Digest;
use palisade_tests::program::finish;
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn added_file_runs_until_it_is_removed() {
    let world = World::new();
    let bytes = plugin("look");
    let path = file(&world, "git.wasm", &bytes);
    let ran = add(&world, path.to_str().unwrap()).run().exits_with(0);
    assert!(ran.stdout.contains("`git`: it is new.") && ran.stdout.contains("look"), "{ran:?}");
    assert!(ran.stdout.contains("`git` is approved and installed, from file:///"), "{ran:?}");
    fs::remove_file(&path).unwrap();
    looks(&world);
    assert_eq!(files(&world), [format!("git@{}.wasm", Digest::of(&bytes).hex())]);
    let text = lock_text(&world);
    assert!(text.contains(&format!("source = \"file://{}\"", path.display())), "{text}");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder(&world)), 0o700);
    assert_eq!(mode(&folder(&world).join(&files(&world)[0])), 0o600);
    let _ = program(&world, &["call", "look", "--locked"]).run().exits_with(0);
    let _ = program(&world, &["remove", "git"]).run().exits_with(0);
    let _ = program(&world, &["call", "look"]).run().exits_with(3);
    assert!(files(&world).is_empty() && !lock_text(&world).contains("git"));
    program(&world, &["remove", "git"]).run().exits_with(3).stderr_contains(&["was added"]);
}

#[test]
fn file_has_one_source_in_each_spelling() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap());
    let around = folder.join("..").join(folder.file_name().unwrap()).join(name);
    let _ = add(&world, around.to_str().unwrap()).run().exits_with(0);
    let _ = add(&world, path.to_str().unwrap()).run().exits_with(0);
    let text = lock_text(&world);
    assert!(text.matches("[[plugin]]").count() == 1 && !text.contains("/../"), "{text}");
    // As an earlier version of the program wrote it.
    let spelled = format!("file://{}", around.display());
    let own = format!("file://{}", path.canonicalize().unwrap().display());
    fs::write(lock(&world), text.replace(&own, &spelled)).unwrap();
    fs::write(&path, plugin("peek")).unwrap();
    let ran = program(&world, &["update", "git", "--yes"]).run().exits_with(0);
    assert!(ran.stdout.contains("it has changed since it was approved"), "{ran:?}");
    let text = lock_text(&world);
    assert!(text.matches("[[plugin]]").count() == 1 && !text.contains("/../"), "{text}");
}

#[test]
fn add_asks_at_a_terminal_and_no_leaves_nothing() {
    for (keys, code) in [("y\n", 0), ("n\n", 4)] {
        let world = World::new();
        let path = file(&world, "git.wasm", &plugin("look"));
        let mut terminal = Terminal::new();
        let child = terminal.start(&world, &["add", path.to_str().unwrap()]);
        terminal.shows("Approve `git`? [y]es, [N]o: ");
        terminal.types(keys);
        let _ = finish(child).exits_with(code);
        assert_eq!(files(&world).len(), usize::from(code == 0));
        assert_eq!(lock_text(&world).contains("git"), code == 0);
    }
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let ran = program(&world, &["add", path.to_str().unwrap()]).run().exits_with(4);
    ran.stderr_contains(&[
        "there is no terminal for the question; with its name, --yes approves what is shown",
    ]);
    assert!(files(&world).is_empty() && !lock(&world).exists());
}

#[test]
fn add_under_a_name_that_means_something_else_is_refused() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    for name in ["web", "files", "native", "keys", "directories", "builtin"] {
        let ran = add(&world, path.to_str().unwrap()).args(["--name", name]).run().exits_with(2);
        ran.stderr_contains(&[&format!("`{name}` is the name of"), "--name"]);
        assert!(files(&world).is_empty(), "{name}");
    }
}

#[test]
fn plugin_with_a_taken_tool_is_added_and_updated_by_a_person_alone() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let _ = add(&world, path.to_str().unwrap()).run().exits_with(0);
    let next = |tool: &str, other: &str| Wat::new(Told::new(tool)).extra(other).build();
    let other = file(&world, "aaa.wasm", &next("look", "(func $next)"));
    let ran = add(&world, other.to_str().unwrap()).run().exits_with(4);
    ran.stderr_contains(&[
        "`aaa` has a name of a loaded plugin, and only one of the two will load",
        "`look`",
        "`[plugins.aaa]`",
        "answer at a terminal",
    ]);
    assert_eq!(files(&world).len(), 1);
    // The former version of a plugin is no other plugin.
    let free = file(&world, "aaa.wasm", &plugin("peek"));
    let _ = add(&world, free.to_str().unwrap()).run().exits_with(0);
    fs::write(&free, next("peek", "(func $next)")).unwrap();
    let _ = program(&world, &["update", "aaa", "--yes"]).run().exits_with(0);
    fs::write(&free, next("look", "(func $last)")).unwrap();
    let ran = program(&world, &["update", "aaa", "--yes"]).run().exits_with(4);
    ran.stderr_contains(&["`aaa` has a name of a loaded plugin"]);
    looks(&world);
}

#[test]
fn update_shows_the_difference_and_a_dry_run_changes_nothing() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let _ = add(&world, path.to_str().unwrap()).run().exits_with(0);
    let ran = program(&world, &["update"]).run().exits_with(0);
    assert!(ran.stdout.contains("`git` is up to date"), "{ran:?}");
    fs::write(&path, plugin("peek")).unwrap();
    let before = (files(&world), lock_text(&world));
    let ran = program(&world, &["update", "--dry-run"]).run().exits_with(0);
    for part in ["it has new tools: peek", "Nothing was changed"] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    assert_eq!((files(&world), lock_text(&world)), before);
    let ran = program(&world, &["update"]).run().exits_with(4);
    ran.stderr_contains(&["there is no terminal for the question"]);
    assert_eq!((files(&world), lock_text(&world)), before);
    looks(&world);
    let ran = program(&world, &["update", "git", "--yes"]).run().exits_with(0);
    assert!(ran.stdout.contains("`git` is updated."), "{ran:?}");
    let _ = program(&world, &["call", "look"]).run().exits_with(3);
    assert_eq!(program(&world, &["call", "peek"]).run().exits_with(0).stdout, "done");
    assert_eq!(files(&world).len(), 1);
    program(&world, &["update", "nothing"]).run().exits_with(3).stderr_contains(&["`nothing`"]);
}

/// Installs the plugin `git`, and returns its file.
fn installed(world: &World) -> std::path::PathBuf {
    let path = file(world, "git.wasm", &plugin("look"));
    let _ = add(world, path.to_str().unwrap()).run().exits_with(0);
    folder(world).join(&files(world)[0])
}

#[test]
fn changed_or_dropped_file_in_the_folder_runs_nothing() {
    let world = World::new();
    let own = installed(&world);
    fs::write(folder(&world).join("evil.wasm"), plugin("peek")).unwrap();
    let ran = program(&world, &["call", "peek"]).run().exits_with(4);
    ran.stderr_contains(&["is not approved"]);
    looks(&world);
    fs::write(&own, plugin("peek")).unwrap();
    let ran = program(&world, &["call", "peek"]).run().exits_with(4);
    ran.stderr_contains(&["is not approved", "`palisade update git` fetches the approved file"]);
    fs::write(&own, "damaged").unwrap();
    let advice = "has changed since it was installed (`palisade update git` fetches the approved";
    program(&world, &["list"]).run().exits_with(0).stderr_contains(&[advice]);
    fs::write(&own, plugin("peek")).unwrap();
    let _ = program(&world, &["call", "look"]).run().exits_with(3);
    let _ = program(&world, &["call", "look", "--locked"]).run().exits_with(3);
    // It cannot be approved under the name of other bytes, and is fetched again.
    let ran = program(&world, &["approve", "git", "--yes"]).run().exits_with(6);
    ran.stderr_contains(&["its file was changed after it was installed"]);
    let _ = program(&world, &["update", "git"]).run().exits_with(0);
    looks(&world);
    assert_eq!(fs::read(&own).unwrap(), plugin("look"));
    assert!(folder(&world).join("evil.wasm").exists(), "a file of the user is not touched");
}

#[test]
fn changed_file_of_a_revoked_plugin_is_removed() {
    let world = World::new();
    let own = installed(&world);
    fs::write(&own, plugin("peek")).unwrap();
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    let removed = program(&world, &["remove", "git"]).run().exits_with(0);
    assert!(removed.stdout.contains("Its bytes stay revoked."), "{removed:?}");
    assert!(!own.exists());
    let _ = program(&world, &["remove", "git"]).run().exits_with(3);
}

#[test]
fn running_host_takes_an_update_up() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let _ = add(&world, path.to_str().unwrap()).run().exits_with(0);
    let locked = palisade_trust::LockedPlugins::open(lock(&world)).unwrap();
    let host = palisade::Host::builder()
        .workspace(world.root())
        .shipped(palisade::plugins::Shipped::LeftOut)
        .plugins(folder(&world))
        .approvals(std::sync::Arc::new(locked))
        .cache(palisade::CacheMode::Directory(palisade_tests::guest::cache()))
        .build()
        .unwrap();
    assert!(host.registry().has("look"));
    fs::write(&path, plugin("peek")).unwrap();
    let _ = program(&world, &["update", "--yes"]).run().exits_with(0);
    host.rescan();
    assert!(host.registry().has("peek") && !host.registry().has("look"));
    assert!(host.rejected().is_empty(), "{:?}", host.rejected());
    let _ = program(&world, &["remove", "git"]).run().exits_with(0);
    host.rescan();
    assert!(!host.registry().has("peek"));
}

#[test]
fn missing_file_is_told_and_restored_as_the_lock_has_it() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let _ = add(&world, path.to_str().unwrap()).run().exits_with(0);
    let own = folder(&world).join(&files(&world)[0]);
    fs::remove_file(&own).unwrap();
    let ran = program(&world, &["list"]).run().exits_with(0);
    ran.stderr_contains(&["the file of `git` is missing; `palisade update git` fetches it again"]);
    fs::write(&path, plugin("peek")).unwrap();
    program(&world, &["update", "--locked"])
        .run()
        .exits_with(4)
        .stderr_contains(&["has other bytes than its digest says"]);
    assert!(!own.exists());
    fs::write(&path, plugin("look")).unwrap();
    let before = lock_text(&world);
    let _ = program(&world, &["update", "--locked"]).run().exits_with(0);
    looks(&world);
    fs::remove_file(&own).unwrap();
    let _ = program(&world, &["update"]).run().exits_with(0);
    looks(&world);
    assert_eq!(lock_text(&world), before);
    let ran = add(&world, path.to_str().unwrap()).args(["--locked"]).run().exits_with(2);
    ran.stderr_contains(&["palisade update --locked"]);
}

#[test]
fn other_files_than_components_are_refused_within_bounds() {
    let world = World::new();
    for (bytes, says) in [
        (&b"\x1f\x8b\x08archive"[..], "archives are not unpacked"),
        (b"\0asm\x01\0\0\0", "core module"),
        (b"", "it is empty"),
        (b"\0asm\x0d\0\x01\0", "is no plugin"),
    ] {
        let path = file(&world, "git.wasm", bytes);
        add(&world, path.to_str().unwrap()).run().exits_with(6).stderr_contains(&[says]);
    }
    let large = fs::File::create(world.outer().join("large.wasm")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    let path = world.outer().join("large.wasm");
    add(&world, path.to_str().unwrap()).run().exits_with(2).stderr_contains(&["larger than"]);
    for (source, code) in [("missing.wasm", 3), ("ftp://x/y.wasm", 2), ("http://a.org/x.wasm", 2)] {
        let _ = add(&world, source).run().exits_with(code);
    }
    assert!(files(&world).is_empty() && !lock(&world).exists());
}

#[test]
fn name_and_digest_of_the_command_line_hold() {
    let world = World::new();
    let bytes = plugin("look");
    let path = file(&world, "git.wasm", &bytes);
    let path = path.to_str().unwrap();
    let other = Digest::of(b"other").to_string();
    let ran = add(&world, path).args(["--digest", &other]).run().exits_with(4);
    ran.stderr_contains(&["other bytes than its digest says"]);
    let _ = add(&world, path).args(["--digest", "x"]).run().exits_with(2);
    let _ = add(&world, path).args(["--name", "../x"]).run().exits_with(2);
    let digest = Digest::of(&bytes).to_string();
    let _ = add(&world, path).args(["--name", "a", "--digest", &digest]).run().exits_with(0);
    assert!(files(&world)[0].starts_with("a@"));
    let second = file(&world, "a.wasm", &plugin("peek"));
    let ran = add(&world, second.to_str().unwrap()).run().exits_with(2);
    ran.stderr_contains(&["`a` is installed from `file:///", "--name"]);
}

#[test]
fn signature_of_the_directory_is_needed_for_a_copy_from_it() {
    let world = World::new();
    let (secret, public) = keys(&world, "author");
    crate::trust(&world, &[&public], world.outer().to_str().unwrap());
    let bytes = plugin("look");
    let path = file(&world, "git.wasm", &bytes);
    let path = path.to_str().unwrap();
    add(&world, path).run().exits_with(6).stderr_contains(&["there is no signature"]);
    file(&world, "git.wasm.minisig", signature(&world, &secret, &bytes).as_bytes());
    let ran = add(&world, path).run().exits_with(0);
    assert!(ran.stdout.contains(&format!("signature  valid, by {public}")), "{ran:?}");
    looks(&world);
}

#[test]
fn revoked_plugin_stays_revoked_when_it_is_removed() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let path = path.to_str().unwrap();
    let _ = add(&world, path).run().exits_with(0);
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    let _ = program(&world, &["call", "look"]).run().exits_with(4);
    let ran = program(&world, &["update", "git", "--yes"]).run().exits_with(4);
    ran.stderr_contains(&["its approval was revoked"]);
    let ran = program(&world, &["remove", "git"]).run().exits_with(0);
    assert!(ran.stdout.contains("Its bytes stay revoked."), "{ran:?}");
    assert!(files(&world).is_empty());
    add(&world, path).run().exits_with(4).stderr_contains(&["revoked"]);
    let ran = add(&world, path).args(["--name", "other"]).run().exits_with(4);
    assert!(ran.stdout.contains("its bytes were revoked as the plugin `git`"), "{ran:?}");
    ran.stderr_contains(&["its bytes were revoked as the plugin `git`"]);
}

#[test]
fn grants_are_told_when_their_bytes_go() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let _ = add(&world, path.to_str().unwrap()).run().exits_with(0);
    let _ = program(&world, &["grant", "git", "env", "LANG"]).run().exits_with(0);
    fs::write(&path, plugin("peek")).unwrap();
    let ran = program(&world, &["update", "--yes"]).run().exits_with(0);
    ran.stderr_contains(&["it had the grant `env LANG`", "give it again"]);
    let ran = program(&world, &["remove", "git"]).run().exits_with(0);
    ran.stderr_contains(&["`palisade grant git revoke` takes its grants back"]);
}

#[test]
fn grants_of_another_name_are_told_when_the_bytes_go() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let _ = program(&world, &["grant", path.to_str().unwrap(), "env", "LANG"]).run().exits_with(0);
    let _ = add(&world, path.to_str().unwrap()).args(["--name", "own"]).run().exits_with(0);
    let ran = program(&world, &["remove", "own"]).run().exits_with(0);
    ran.stderr_contains(&["it had the grant `env LANG`; `palisade grant git revoke` takes"]);
    let _ = program(&world, &["grant", "git", "revoke"]).run().exits_with(0);
    let _ = add(&world, path.to_str().unwrap()).args(["--name", "own"]).run().exits_with(0);
    let ran = program(&world, &["remove", "own"]).run().exits_with(0);
    assert!(!ran.stderr.contains("grant"), "{ran:?}");
}

#[test]
fn plugin_that_needs_the_network_is_added_before_it_has_a_grant() {
    let world = World::new();
    let server = crate::server::Server::start(|_| crate::server::Reply::new(200, "hello"));
    let path = palisade_tests::guest::NET_FETCH.file();
    let ran = add(&world, path.to_str().unwrap()).args(["--name", "fetcher"]).run().exits_with(0);
    ran.stderr_contains(&["it asks for the network", "palisade grant fetcher net"]);
    let input = format!("{{\"authority\": \"{}\"}}", server.authority());
    let ran = program(&world, &["call", "send_read", &input]).run().exits_with(3);
    ran.stderr_contains(&["palisade grant"]);
    assert!(server.requests().is_empty());
    let rule = format!("GET http://{} private", server.authority());
    let _ = program(&world, &["grant", "fetcher", "net", &rule]).run().exits_with(0);
    let _ = program(&world, &["call", "send_read", &input]).run().exits_with(0);
    assert_eq!(server.requests().len(), 1);
}
