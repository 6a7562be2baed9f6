//! Compiled code on disk: used when it is whole and one's own, and otherwise made again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use palisade::sandbox::Freshness;
use palisade::{BuildError, CacheMode, Host, Shipped};
use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::{Program, World};

fn build(cache: &Path) -> Result<Host, BuildError> {
    let builder = Host::builder().shipped(Shipped::LeftOut).plugins(LOADER_GOOD.directory());
    builder.cache(CacheMode::Directory(cache.to_owned())).build()
}

fn freshness(cache: &Path) -> Freshness {
    build(cache).unwrap().plugins()[0].freshness()
}

fn entry(cache: &Path) -> PathBuf {
    let entries = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "code")).unwrap()
}

#[test]
fn what_was_compiled_once_is_not_compiled_again() {
    let world = World::new();
    let cache = world.outer().join("cache");
    assert_eq!(freshness(&cache), Freshness::Compiled);
    assert_eq!(freshness(&cache), Freshness::Cached);
}

#[test]
fn an_entry_that_was_changed_or_cut_counts_as_absent() {
    let world = World::new();
    let cache = world.outer().join("cache");
    assert_eq!(freshness(&cache), Freshness::Compiled);
    let whole = fs::read(entry(&cache)).unwrap();
    let mut turned = whole.clone();
    turned[whole.len() / 2] ^= 1;
    for bad in [&turned[..], &whole[..whole.len() / 2], b""] {
        fs::write(entry(&cache), bad).unwrap();
        assert_eq!(freshness(&cache), Freshness::Compiled, "{} bytes", bad.len());
        assert_eq!(freshness(&cache), Freshness::Cached, "it was made again");
    }
}

#[test]
fn an_entry_of_another_cache_counts_as_absent() {
    let world = World::new();
    let (one, other) = (world.outer().join("one"), world.outer().join("other"));
    assert_eq!((freshness(&one), freshness(&other)), (Freshness::Compiled, Freshness::Compiled));
    fs::copy(entry(&one), entry(&other)).unwrap();
    assert_eq!(freshness(&other), Freshness::Compiled);
}

#[test]
fn a_cache_that_others_can_reach_is_refused_with_what_to_do() {
    let world = World::new();
    let cache = world.outer().join("cache");
    fs::create_dir(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
    let error = build(&cache).err();
    assert!(matches!(error, Some(BuildError::Cache(_))), "{error:?}");
    let ran =
        Program::new(&world).env("PALISADE_CACHE", &cache).args(["call", "calculate", r#"{"expression":"1"}"#]).run();
    ran.left_with(2).complains(&["chmod 700"]);
}

#[test]
fn what_a_killed_program_began_to_write_is_cleared_once_nobody_can_be_at_work_on_it() {
    let world = World::new();
    let cache = world.outer().join("cache");
    assert_eq!(freshness(&cache), Freshness::Compiled);
    let (old, young) = (cache.join(".tmpOld"), cache.join(".tmpYoung"));
    for file in [&old, &young] {
        fs::write(file, "half of it").unwrap();
    }
    let aged = fs::File::options().write(true).open(&old).unwrap();
    aged.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 60 * 60)).unwrap();
    assert_eq!(freshness(&cache), Freshness::Cached);
    assert!(!old.exists() && young.exists());
}
