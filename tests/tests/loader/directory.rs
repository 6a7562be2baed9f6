//! Directories with other files beside plugins.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use palisade::{BuildError, CacheMode, Host, plugins::Shipped};
use palisade_tests::guest::{LOADER_GOOD, cache};
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World, skip};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{load, says, with_good};

#[test]
fn pipe_socket_and_directory_are_refused_at_once() {
    let world = with_good();
    let named = |name: &str| world.plugins().join(name);
    mknodat(CWD, named("a-pipe.wasm"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = UnixListener::bind(named("b-socket.wasm")).unwrap();
    fs::create_dir(named("c-directory.wasm")).unwrap();
    symlink("/dev/zero", named("d-device.wasm")).unwrap();
    symlink("nowhere", named("e-dangling.wasm")).unwrap();
    let loaded = load(&world);
    assert_eq!(loaded.tools, ["good", "better"]);
    let files: Vec<&str> = loaded.rejected.iter().map(|(file, _)| file.as_str()).collect();
    assert_eq!(
        files,
        ["a-pipe.wasm", "b-socket.wasm", "c-directory.wasm", "d-device.wasm", "e-dangling.wasm"]
    );
    for (file, reason) in &loaded.rejected {
        assert!(
            reason.contains("not a regular file") || reason.contains("cannot be read"),
            "{file}: {reason}"
        );
    }
}

#[test]
fn unreadable_file_is_refused() {
    if rustix::process::geteuid().is_root() {
        return skip("root reads everything");
    }
    let world = super::with_file(b"");
    fs::set_permissions(world.plugins().join("a-bad.wasm"), fs::Permissions::from_mode(0o000))
        .unwrap();
    says(load(&world).reason(), &["cannot be read"]);
}

#[test]
fn files_of_other_names_are_ignored() {
    let world = with_good();
    for name in ["readme.md", "wasm", "plugin.wasm.bak", "PLUGIN.WASM", ".hidden"] {
        fs::write(world.plugins().join(name), "not a plugin").unwrap();
    }
    let loaded = load(&world);
    assert_eq!((loaded.tools.len(), loaded.rejected.len()), (2, 0));
}

#[test]
fn subdirectories_are_ignored() {
    let world = with_good();
    fs::create_dir(world.plugins().join("deeper")).unwrap();
    fs::write(world.plugins().join("deeper/bad.wasm"), "not a plugin").unwrap();
    assert_eq!(load(&world).rejected, []);
}

#[test]
fn link_to_a_plugin_is_a_plugin() {
    let world = World::new();
    symlink(LOADER_GOOD.file(), world.plugins().join("linked.wasm")).unwrap();
    assert_eq!(load(&world).tools, ["good", "better"]);
}

#[test]
fn plugins_are_registered_in_byte_order_of_names() {
    let world = World::new();
    for name in ["b", "a", "B", "a2", "a10"] {
        let tool = Told::new(&format!(
            "of_{}{}",
            name.to_lowercase(),
            name.chars().filter(|c| c.is_uppercase()).count()
        ));
        fs::write(world.plugins().join(format!("{name}.wasm")), Wat::new(tool).build()).unwrap();
    }
    assert_eq!(load(&world).tools, ["of_b1", "of_a0", "of_a100", "of_a20", "of_b0"]);
}

#[test]
fn empty_directory_has_no_tools_and_no_error() {
    let loaded = load(&World::new());
    assert_eq!((loaded.tools.len(), loaded.rejected.len()), (0, 0));
}

#[test]
fn missing_directory_is_an_error_naming_it() {
    let world = World::new();
    let missing = world.outer().join("no-such-directory");
    let builder = Host::builder().shipped(Shipped::LeftOut).cache(CacheMode::Directory(cache()));
    let error = builder.plugins(&missing).build().err();
    assert!(
        matches!(error, Some(BuildError::Load(palisade::plugins::LoadError::Directory(_)))),
        "{error:?}"
    );
    Program::new(&world)
        .args(["list", "--plugins"])
        .args([missing])
        .run()
        .exits_with(2)
        .stderr_contains(&["no-such-directory", "--plugins"]);
}

#[test]
fn rejection_is_on_stderr_and_the_list_complete() {
    let world = super::with_file(b"not a plugin");
    let ran = Program::new(&world)
        .args(["--no-builtin", "list", "--plugins"])
        .args([world.plugins()])
        .run()
        .exits_with(0);
    ran.stderr_contains(&["rejected", "a-bad.wasm", "it is not WebAssembly"]);
    assert!(ran.stdout.contains("better"), "{}", ran.stdout);
}

#[test]
fn directory_named_twice_is_loaded_once() {
    let (world, other) = (with_good(), World::new());
    symlink(world.plugins(), other.outer().join("link")).unwrap();
    let host = Host::builder()
        .workspace(other.root())
        .shipped(Shipped::LeftOut)
        .cache(CacheMode::Directory(cache()))
        .plugins(world.plugins())
        .plugins(other.outer().join("link"))
        .build()
        .unwrap();
    assert_eq!((host.plugins().len(), host.rejected().len()), (1, 0), "{:?}", host.rejected());
}
