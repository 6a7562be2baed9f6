//! The cache of compiled code: intact entries of its own are used, all others are compiled again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use palisade::sandbox::Freshness;
use palisade::{BuildError, CacheMode, Host, plugins::Shipped};
use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::{Program, World};
use serde_json::json;

fn build(cache: &Path) -> Result<Host, BuildError> {
    let builder = Host::builder().shipped(Shipped::LeftOut).plugins(LOADER_GOOD.directory());
    builder.cache(CacheMode::Directory(cache.to_owned())).build()
}

fn freshness(cache: &Path) -> Freshness {
    build(cache).unwrap().plugins()[0].freshness()
}

fn entry(cache: &Path, kind: &str) -> PathBuf {
    let entries = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == kind))
        .unwrap()
}

/// Calls the plugin's tool, which loads its code, and returns the output.
fn says(host: &Host) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(host.call("good", json!({}), json!({})));
    result.output().map(std::borrow::Cow::into_owned)
}

/// Returns an entry with a flipped bit, a truncated one, and an empty one.
fn spoilt(whole: &[u8]) -> [Vec<u8>; 3] {
    let mut turned = whole.to_vec();
    turned[whole.len() / 2] ^= 1;
    [turned, whole[..whole.len() / 2].to_vec(), Vec::new()]
}

#[test]
fn cached_plugin_is_not_compiled_again() {
    let world = World::new();
    let cache = world.outer().join("cache");
    assert_eq!(freshness(&cache), Freshness::Compiled);
    assert_eq!(freshness(&cache), Freshness::Cached);
}

#[test]
fn damaged_code_is_recompiled_when_called() {
    let world = World::new();
    let cache = world.outer().join("cache");
    let said = says(&build(&cache).unwrap());
    assert!(said.is_some());
    let whole = fs::read(entry(&cache, "code")).unwrap();
    for bad in spoilt(&whole) {
        fs::write(entry(&cache, "code"), &bad).unwrap();
        assert_eq!(says(&build(&cache).unwrap()), said, "{} bytes", bad.len());
        assert_eq!(
            fs::read(entry(&cache, "code")).unwrap().len(),
            whole.len(),
            "it was recompiled"
        );
    }
}

#[test]
fn damaged_description_is_requested_again() {
    let world = World::new();
    let cache = world.outer().join("cache");
    let tools = |host: &Host| {
        host.plugins()[0]
            .definitions()
            .iter()
            .map(palisade::Definition::to_json)
            .collect::<Vec<_>>()
    };
    let told = tools(&build(&cache).unwrap());
    let whole = fs::read(entry(&cache, "about")).unwrap();
    for bad in spoilt(&whole) {
        fs::write(entry(&cache, "about"), &bad).unwrap();
        assert_eq!(tools(&build(&cache).unwrap()), told, "{} bytes", bad.len());
        assert_eq!(fs::read(entry(&cache, "about")).unwrap(), whole, "it was written again");
    }
}

#[test]
fn lost_code_of_a_changed_file_is_an_error_with_advice() {
    let world = World::new();
    let (cache, plugins) = (world.outer().join("cache"), world.plugins());
    let file = plugins.join("good.wasm");
    fs::copy(LOADER_GOOD.file(), &file).unwrap();
    let build = || {
        let builder = Host::builder().shipped(Shipped::LeftOut).plugins(&plugins);
        builder.cache(CacheMode::Directory(cache.clone())).build().unwrap()
    };
    drop(build());
    let host = build();
    assert_eq!(host.plugins()[0].freshness(), Freshness::Cached);
    fs::remove_file(entry(&cache, "code")).unwrap();
    fs::write(&file, "another").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(host.call("good", json!({}), json!({})));
    let message = result.error().unwrap().message();
    assert!(
        message.contains("now contains another plugin") && message.contains("restart palisade"),
        "{message}"
    );
}

#[test]
fn file_changed_in_place_has_a_new_digest() {
    let world = World::new();
    let (cache, file) = (world.outer().join("cache"), world.plugins().join("good.wasm"));
    fs::copy(LOADER_GOOD.file(), &file).unwrap();
    // Older than the resolution of file timestamps, so that the digest is remembered.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
    let digest = || {
        let builder = Host::builder().shipped(Shipped::LeftOut).plugins(world.plugins());
        let host = builder.cache(CacheMode::Directory(cache.clone())).build().unwrap();
        host.plugins().first().map(palisade::plugins::Plugin::digest)
    };
    let before = digest();
    assert_eq!(digest(), before);
    // The same length and modification time: only the change time, which programs cannot set,
    // differs.
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
    assert_ne!(digest(), before);
}

#[test]
fn entry_of_another_cache_counts_as_absent() {
    let world = World::new();
    let (one, other) = (world.outer().join("one"), world.outer().join("other"));
    assert_eq!((freshness(&one), freshness(&other)), (Freshness::Compiled, Freshness::Compiled));
    for kind in ["about", "code"] {
        fs::copy(entry(&one, kind), entry(&other, kind)).unwrap();
    }
    assert_eq!(freshness(&other), Freshness::Compiled);
}

#[test]
fn cache_accessible_to_others_is_refused_with_advice() {
    let world = World::new();
    let cache = world.outer().join("cache");
    fs::create_dir(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
    let error = build(&cache).err();
    assert!(matches!(error, Some(BuildError::Cache(_))), "{error:?}");
    let ran = Program::new(&world)
        .env("PALISADE_CACHE", &cache)
        .args(["call", "calculate", r#"{"expression":"1"}"#])
        .run();
    ran.exits_with(2).stderr_contains(&["mode 755", "chmod 700"]);
    // Others write to a shared directory and rely on its mode, so the advice is another directory.
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o1777)).unwrap();
    let ran = Program::new(&world)
        .env("PALISADE_CACHE", &cache)
        .args(["call", "calculate", r#"{"expression":"1"}"#])
        .run();
    ran.exits_with(2).stderr_contains(&["mode 1777", "name a directory of its own"]);
}

#[test]
fn files_of_a_killed_program_are_removed_after_a_day() {
    let world = World::new();
    let cache = world.outer().join("cache");
    assert_eq!(freshness(&cache), Freshness::Compiled);
    let (old, young) = (cache.join(".tmpOld"), cache.join(".tmpYoung"));
    for file in [&old, &young] {
        fs::write(file, "half of it").unwrap();
        fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let aged = fs::File::options().write(true).open(&old).unwrap();
    aged.set_modified(
        std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 60 * 60),
    )
    .unwrap();
    fs::remove_file(entry(&cache, "code")).unwrap();
    assert_eq!(freshness(&cache), Freshness::Compiled, "a write to the cache removes old drafts");
    assert!(!old.exists() && young.exists());
}
