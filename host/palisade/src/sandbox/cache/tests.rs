//! The cache returns what was stored in it, only under the name that it was stored under, and from
//! the directory that was opened.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]

use super::*;
use crate::sandbox::run::Runtime;
use std::fs::{self, File};

fn opened(cache: &Cache) -> &Opened {
    cache.0.as_ref().unwrap()
}

#[test]
fn renamed_entry_counts_as_absent() {
    let outer = tempfile::tempdir().unwrap();
    let cache = Cache::open(&outer.path().join("cache")).unwrap();
    let entry = |name: &str| opened(&cache).entry(name.to_owned());
    entry("one").write(b"content").unwrap();
    assert_eq!(entry("one").read().unwrap(), b"content");
    fs::copy(outer.path().join("cache/one"), outer.path().join("cache/two")).unwrap();
    assert!(entry("two").exists());
    assert!(entry("two").read().is_err() && entry("two").checked_file().is_err());
    assert!(entry("one").checked_file().is_ok());
}

#[test]
fn each_cache_keeps_its_own_key() {
    let outer = tempfile::tempdir().unwrap();
    let open = |name: &str| Cache::open(&outer.path().join(name)).unwrap();
    let one = open("one");
    let again = open("one");
    let other = open("other");
    assert_eq!(opened(&one).key, opened(&again).key);
    assert_ne!(opened(&one).key, opened(&other).key);
    assert_eq!((one.dir(), Cache::off().dir()), (Some(&*outer.path().join("one")), None));
    assert!(!opened(&one).entry("none".to_owned()).exists());
}

#[test]
fn debug_output_omits_the_cache_key() {
    let outer = tempfile::tempdir().unwrap();
    let cache = Cache::open(&outer.path().join("cache")).unwrap();
    let key = opened(&cache).key.map(|byte| byte.to_string()).join(", ");
    let shown = format!("{cache:?}");
    assert!(shown.contains("cache") && !shown.contains(&key), "{shown}");
    assert!(!shown.contains("key:"), "{shown}");
}

#[test]
fn engines_of_different_kinds_have_different_entries() {
    let engine = |epochs| Engine::new(wasmtime::Config::new().epoch_interruption(epochs)).unwrap();
    assert_eq!(number(&engine(true)), number(&engine(true)));
    assert_ne!(number(&engine(true)), number(&engine(false)));
}

#[test]
fn code_of_another_rewriting_is_not_used() {
    let engine = Engine::default();
    assert_eq!(number(&engine), number_with(&engine, bulk_memory::VERSION));
    for version in (0..10).filter(|version| *version != bulk_memory::VERSION) {
        assert_ne!(number(&engine), number_with(&engine, version));
    }
}

#[test]
fn oversized_entry_is_not_read() {
    let outer = tempfile::tempdir().unwrap();
    let cache = Cache::open(&outer.path().join("cache")).unwrap();
    let entry = opened(&cache).entry("large".to_owned());
    entry.write(b"content").unwrap();
    let file = File::options().write(true).open(outer.path().join("cache/large")).unwrap();
    file.set_len((512 << 20) + 1).unwrap();
    assert_eq!(entry.read().unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(entry.checked_file().unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn unusable_cache_has_safe_advice() {
    use io::ErrorKind::{
        NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    let outer = tempfile::tempdir().unwrap();
    let error = |obstacle| CacheError::new(outer.path(), obstacle);
    let system = |kind: io::ErrorKind| error(Obstacle::System(kind.into()));
    for kind in [PermissionDenied, ReadOnlyFilesystem, StorageFull, QuotaExceeded] {
        assert!(system(kind).is_unwritable() && !system(kind).is_inside(), "{kind}");
    }
    let reachable = || error(Obstacle::Unsafe("others".to_owned()));
    for other in [system(NotADirectory), reachable(), error(Obstacle::Inside)] {
        assert!(!other.is_unwritable(), "{other}");
    }
    assert!(error(Obstacle::Inside).is_inside() && !reachable().is_inside());
    for (length, is_cache) in [(31, false), (32, true), (33, false)] {
        fs::write(outer.path().join("key"), vec![1; length]).unwrap();
        assert_eq!(
            reachable().to_string().ends_with("of the program), or delete it"),
            is_cache,
            "{length}"
        );
        assert_eq!(reachable().to_string().ends_with("of the program)"), !is_cache, "{length}");
    }
}

#[test]
fn entry_name_and_content_are_delimited() {
    let outer = tempfile::tempdir().unwrap();
    let cache = Cache::open(&outer.path().join("cache")).unwrap();
    opened(&cache).entry("on".to_owned()).write(b"e content").unwrap();
    let whole = fs::read(outer.path().join("cache/on")).unwrap();
    fs::write(outer.path().join("cache/one"), whole.strip_prefix(b"e").unwrap()).unwrap();
    assert!(opened(&cache).entry("one".to_owned()).read().is_err());
}

#[test]
fn directory_in_place_of_the_cache_is_not_used() {
    let outer = tempfile::tempdir().unwrap();
    let at = |path: &str| outer.path().join(path);
    let cache = Cache::open(&at("cache")).unwrap();
    opened(&cache).entry("kept".to_owned()).write(b"own").unwrap();
    fs::rename(at("cache"), at("moved")).unwrap();
    fs::create_dir(at("cache")).unwrap();
    fs::copy(at("moved/key"), at("cache/key")).unwrap();
    opened(&cache).entry("new".to_owned()).write(b"own").unwrap();
    assert_eq!(opened(&cache).entry("kept".to_owned()).read().unwrap(), b"own");
    assert!(at("moved/new").exists() && !at("cache/new").exists());
}

#[test]
fn digest_is_remembered_for_an_unchanged_settled_file() {
    let Some((fresh, settled, other)) = identities() else { return };
    let outer = tempfile::tempdir().unwrap();
    let digest = Digest::of(b"plugin");
    let cache = Cache::open(&outer.path().join("cache")).unwrap();
    cache.remember(&fresh, &fresh, digest);
    assert_eq!(cache.digest_of(&fresh), None, "a change since may not show");
    cache.remember(&settled, &other, digest);
    assert_eq!(cache.digest_of(&settled), None, "the bytes may be of two files");
    cache.remember(&settled, &settled, digest);
    assert_eq!(cache.digest_of(&settled), Some(digest));
    cache.remember(&other, &other, Digest::of(b"other"));
    assert_eq!(cache.digest_of(&settled), Some(digest), "each path has an entry of its own");
}

#[test]
fn compile_outcome_is_remembered_per_content_and_limits() {
    let outer = tempfile::tempdir().unwrap();
    let runtime = Runtime::of(CodeTier::Optimized).unwrap();
    let engine = &runtime.engine;
    let digest = Digest::of(b"plugin");
    let other = Digest::of(b"other");
    let cache = Cache::open(&outer.path().join("cache")).unwrap();
    let limits = CompileLimits::default();
    let refusal = |digest| cache.refusal(engine, digest, CodeTier::Optimized, limits);
    let has_verdict = || cache.has_verdict(engine, digest, CodeTier::Optimized);
    assert!(!has_verdict());
    cache.begin_compilation(engine, digest, CodeTier::Optimized);
    assert_eq!((has_verdict(), refusal(digest)), (true, None));
    let refused = CompileError::Invalid("no".to_owned());
    cache.end_compilation(engine, digest, CodeTier::Optimized, Err(&refused));
    assert_eq!((refusal(digest), refusal(other)), (Some(refused), None));
    assert!(
        cache.has_verdict(engine, digest, CodeTier::Optimized)
            && !cache.has_verdict(engine, other, CodeTier::Optimized)
    );
    cache.end_compilation(engine, digest, CodeTier::Optimized, Ok(()));
    assert_eq!((has_verdict(), refusal(digest)), (false, None));
    // An error that says nothing about the plugin leaves no record. An unfinished attempt leaves
    // one.
    for (error, tried) in [
        (CompileError::Cancelled, false),
        (CompileError::Busy, false),
        (CompileError::Size { max: 1 }, false),
        (CompileError::Start("no".to_owned()), false),
        (CompileError::Crashed("no".to_owned()), true),
        (CompileError::Wall { max: limits.time }, true),
    ] {
        cache.begin_compilation(engine, digest, CodeTier::Optimized);
        cache.end_compilation(engine, digest, CodeTier::Optimized, Err(&error));
        assert_eq!((has_verdict(), refusal(digest)), (tried, None), "{error:?}");
    }
}

fn age(file: &Path, hours: u64) {
    let file = File::options().write(true).open(file).unwrap();
    let written = file.metadata().unwrap().modified().unwrap();
    file.set_modified(written - std::time::Duration::from_secs(hours * 3600)).unwrap();
}

#[test]
fn least_recently_used_entries_are_removed_beyond_the_bound() {
    let outer = tempfile::tempdir().unwrap();
    let cache = Cache::open(&outer.path().join("cache")).unwrap();
    let opened = opened(&cache);
    let at = |name: &str| outer.path().join("cache").join(name);
    for (name, hours) in [("old.code", 30), ("used.code", 40), ("new.code", 0)] {
        opened.entry(name.to_owned()).write(&[0; 1000]).unwrap();
        age(&at(name), hours);
    }
    // A read counts as use.
    assert!(opened.entry("used.code".to_owned()).read().is_ok());
    let full = cache.usage().unwrap();
    assert_eq!((full.plugins, full.bytes), (3, 3 * 1032));
    usage::trim(&opened.dir, full.bytes).unwrap();
    assert_eq!(cache.usage().unwrap(), full, "a cache within the bound keeps everything");
    usage::trim(&opened.dir, full.bytes - 1).unwrap();
    assert!(!at("old.code").exists() && at("used.code").exists() && at("new.code").exists());
    assert!(at("key").exists());
}

#[test]
fn cleared_cache_keeps_only_its_key() {
    let outer = tempfile::tempdir().unwrap();
    let cache = Cache::open(&outer.path().join("cache")).unwrap();
    for name in ["a.code", "a.about", "b.verdict", "c.file"] {
        opened(&cache).entry(name.to_owned()).write(b"x").unwrap();
    }
    assert_eq!(cache.clear().unwrap(), CacheUsage { plugins: 1, bytes: 4 * 33 });
    assert_eq!(cache.usage().unwrap(), CacheUsage::default());
    let left: Vec<_> = fs::read_dir(outer.path().join("cache")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(Cache::off().clear().unwrap(), CacheUsage::default());
}
