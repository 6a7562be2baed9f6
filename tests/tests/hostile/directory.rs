//! Plugin directories with anything but plugins, and tampered caches.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use palisade::{CacheMode, Host, plugins::Shipped};
use palisade_tests::guest::HOSTILE_ECHO;
use palisade_tests::oracle::{self, Oracle};
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::wat::Told;
use palisade_tests::{Stage, Wat, World, skip};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::json;

use super::ENOUGH;

fn good(world: &World) {
    fs::copy(HOSTILE_ECHO.file(), world.plugins().join("good.wasm")).unwrap();
}

#[test]
fn entries_other_than_files_reject_only_themselves() {
    let loaded = oracle::loading(ENOUGH, |world| {
        good(world);
        let named = |name: &str| world.plugins().join(name);
        mknodat(CWD, named("a-pipe.wasm"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        drop(UnixListener::bind(named("b-socket.wasm")).unwrap());
        fs::create_dir(named("c-directory.wasm")).unwrap();
        for (name, to) in [
            ("d-zero.wasm", "/dev/zero"),
            ("e-nowhere.wasm", "nowhere"),
            ("f-self.wasm", "f-self.wasm"),
            ("g-tty.wasm", "/dev/tty"),
            ("h-kernel.wasm", "/proc/kmsg"),
            ("i-directory.wasm", "/"),
        ] {
            symlink(to, named(name)).unwrap();
        }
        File::create(named("j-huge.wasm")).unwrap().set_len(10 << 30).unwrap();
        fs::write(named("k-half.wasm"), &fs::read(HOSTILE_ECHO.file()).unwrap()[..4000]).unwrap();
    });
    assert_eq!(loaded.tools, ["echo"]);
    assert_eq!(loaded.rejected.len(), 11, "{:?}", loaded.rejected);
}

#[test]
fn devices_in_the_directory_are_refused_by_type() {
    let make =
        |place: &Path| mknodat(CWD, place, FileType::CharacterDevice, Mode::RUSR, makedev(1, 5));
    if make(&World::new().plugins().join("probe")).is_err() {
        return skip("only root makes devices");
    }
    let loaded = oracle::loading(ENOUGH, |world| make(&world.plugins().join("zero.wasm")).unwrap());
    assert!(loaded.reason().contains("not a regular file"), "{:?}", loaded.rejected);
}

#[test]
fn hundred_thousand_entries_are_skipped_in_bounded_time() {
    if leaves_out(&[Group::G]) {
        return;
    }
    let loaded = oracle::loading(ENOUGH, |world| {
        good(world);
        (0..100_000).for_each(|number| {
            drop(File::create(world.plugins().join(format!("{number}.txt"))).unwrap());
        });
    });
    assert_eq!((loaded.tools, loaded.rejected), (vec!["echo".to_owned()], Vec::new()));
}

#[test]
fn too_many_plugins_are_an_error() {
    if leaves_out(&[Group::G]) {
        return;
    }
    let world = World::new();
    (0..10_001).for_each(|number| {
        drop(File::create(world.plugins().join(format!("{number}.wasm"))).unwrap());
    });
    let built = Host::builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .plugins(world.plugins())
        .cache(CacheMode::Off)
        .build();
    let error = built.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("more than 10000 plugins"), "{error}");
}

#[test]
fn names_of_arbitrary_bytes_are_shown_escaped() {
    let loaded = oracle::loading(ENOUGH, |world| {
        good(world);
        for name in [
            &b"a\xff\xfe.wasm"[..],
            b"b\x1b[2J.wasm",
            "c\u{202e}msaw.wasm".as_bytes(),
            b"d\n{\"event\":1}.wasm",
            b".wasm",
            b"..wasm",
        ] {
            fs::write(world.plugins().join(OsStr::from_bytes(name)), "no plugin").unwrap();
        }
        let long = "n".repeat(250) + ".wasm";
        fs::write(world.plugins().join(long), "no plugin").unwrap();
    });
    assert_eq!(loaded.tools, ["echo"]);
    for (file, reason) in &loaded.rejected {
        assert!(
            !file.contains(['\u{1b}', '\n', '\u{202e}']) && !reason.contains('\u{1b}'),
            "{file:?}: {reason:?}"
        );
    }
    // `.wasm` alone is a hidden file without an extension.
    assert!(loaded.rejected.len() >= 6, "{:?}", loaded.rejected);
}

#[test]
fn confusable_tool_names_are_refused() {
    for name in [
        "Echo",
        "ECHO",
        "\u{435}cho",
        "echo\u{200b}",
        "echo ",
        "../echo",
        "/echo",
        "",
        &"e".repeat(300),
        "e\0cho",
        "echo\n",
    ] {
        let plugin = Wat::new(Told::new(name)).build();
        let loaded = oracle::loading(ENOUGH, |world| {
            good(world);
            fs::write(world.plugins().join("z.wasm"), &plugin).unwrap();
        });
        assert_eq!(loaded.tools, ["echo"], "{name:?}");
        assert!(loaded.reason().contains("is not a tool name"), "{name:?}: {:?}", loaded.rejected);
    }
    let twin = Wat::new(Told::new("echo")).build();
    let loaded = oracle::loading(ENOUGH, |world| {
        good(world);
        fs::write(world.plugins().join("z.wasm"), &twin).unwrap();
    });
    assert!(loaded.tools == ["echo"] && loaded.reason().contains("echo"), "{:?}", loaded.rejected);
}

/// Loads two plugins with a cache of their own, before and after `spoil` changes the cache, and
/// checks that both keep their tools and answers. The calls load the cached code.
fn with_cache(spoil: impl Fn(&Path)) {
    let oracle = Oracle::new(|world, builder| {
        good(world);
        fs::write(world.plugins().join("other.wasm"), Wat::new(Told::new("other")).build())
            .unwrap();
        builder
    });
    oracle.watch(ENOUGH, |stage: &Stage| {
        let (root, plugins, cache) =
            (stage.world.root(), stage.world.plugins(), stage.world.home().join("cache"));
        let build = move || {
            let builder =
                Host::builder().workspace(&root).shipped(Shipped::LeftOut).plugins(&plugins);
            let host = builder.cache(CacheMode::Directory(cache.clone())).build().unwrap();
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let called = |(tool, input)| runtime.block_on(host.call(tool, input, json!({})));
            let results = [("echo", json!({"text": "hello"})), ("other", json!({}))].map(called);
            let said = results.map(|result| result.output().map(std::borrow::Cow::into_owned));
            (host.registry().tool_names(), said)
        };
        let cache = stage.world.home().join("cache");
        let names = std::thread::scope(|scope| {
            let first = scope.spawn(&build).join().unwrap();
            spoil(&cache);
            (first, scope.spawn(&build).join().unwrap())
        });
        assert_eq!(names.0.0, ["echo", "other"]);
        assert_eq!(names.0.1, [Some("hello".to_owned()), Some("done".to_owned())]);
        assert_eq!(names.1, names.0);
        async {}
    });
}

fn entries(cache: &Path) -> Vec<std::path::PathBuf> {
    let all = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "code")).collect()
}

/// Replaces an entry by another file, as only an in-place change could end a process that has
/// mapped the entry: a host that is dropped may still compile in the background.
fn replace(entry: &Path, bytes: &[u8]) {
    let next = entry.with_extension("next");
    fs::write(&next, bytes).unwrap();
    fs::rename(&next, entry).unwrap();
}

#[test]
fn dropped_host_leaves_no_compiled_code_mapped() {
    let world = World::new();
    good(&world);
    let cache = world.home().join("cache");
    let count_maps = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|map| map.contains(cache.to_str().unwrap())).count()
    };
    let mut counts = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The first host compiles, and the others map the code of the cache.
    for _ in 0..20 {
        let builder = Host::builder().workspace(world.root()).shipped(Shipped::LeftOut);
        let builder = builder.plugins(world.plugins());
        let host = builder.cache(CacheMode::Directory(cache.clone())).build().unwrap();
        let result = runtime.block_on(host.call("echo", json!({"text": "hello"}), json!({})));
        assert_eq!(result.output().as_deref(), Some("hello"));
        let called = count_maps();
        drop((result, host));
        counts.push((called > 0, count_maps()));
    }
    assert_eq!(counts[1..], [(true, 0); 19], "{counts:?}");
}

#[test]
fn edited_compiled_code_is_recompiled() {
    with_cache(|cache| {
        for entry in entries(cache) {
            let mut bytes = fs::read(&entry).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            replace(&entry, &bytes);
        }
    });
}

#[test]
fn swapped_compiled_code_is_recompiled() {
    with_cache(|cache| {
        let entries = entries(cache);
        let (one, other) = (fs::read(&entries[0]).unwrap(), fs::read(&entries[1]).unwrap());
        replace(&entries[0], &other);
        replace(&entries[1], &one);
    });
}

#[test]
fn compiled_code_under_another_key_is_recompiled() {
    with_cache(|cache| fs::write(cache.join("key"), [7; 64]).unwrap());
    with_cache(|cache| fs::write(cache.join("key"), b"").unwrap());
    with_cache(|cache| fs::remove_file(cache.join("key")).unwrap());
}

#[test]
fn cache_entry_that_is_no_regular_file_is_recompiled() {
    if leaves_out(&[Group::B]) {
        return;
    }
    with_cache(|cache| {
        for entry in entries(cache) {
            fs::remove_file(&entry).unwrap();
            mknodat(CWD, &entry, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        }
    });
    with_cache(|cache| {
        for entry in entries(cache) {
            fs::remove_file(&entry).unwrap();
            symlink("/dev/zero", &entry).unwrap();
        }
    });
}
