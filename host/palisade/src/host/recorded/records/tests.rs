//! The records of paths.
#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
use super::*;

fn paths(records: &PathRecords) -> Vec<PathBuf> {
    records.all().into_iter().map(|(_, path)| path).collect()
}

#[test]
fn record_keeps_its_kind() {
    use Recorded::{Cache, Decisions, Journal, Plugins, Settings, Tokens};
    let outer = tempfile::tempdir().unwrap();
    let records = PathRecords { dir: outer.path().join("paths") };
    let path = Path::new("/a/path");
    let kinds = [Cache, Settings, Decisions, Plugins, Journal, Tokens];
    for (count, kind) in (1..).zip(kinds) {
        records.add(kind, path).unwrap();
        let all = records.all();
        assert!(all.len() == count && all.contains(&(kind, path.to_owned())), "{all:?}");
    }
    fs::write(records.dir.join("unknown"), "/b").unwrap();
    assert!(records.all().contains(&(Cache, "/b".into())));
}

#[test]
fn records_are_unique_and_bounded() {
    let outer = tempfile::tempdir().unwrap();
    let records = PathRecords { dir: outer.path().join("state/paths") };
    assert!(records.all().is_empty());
    let there = outer.path().join("there");
    fs::create_dir(&there).unwrap();
    for _ in 0..2 {
        records.add(Recorded::Cache, &there).unwrap();
    }
    assert_eq!(paths(&records), std::slice::from_ref(&there));
    let missing = outer.path().join("missing");
    records.add(Recorded::Cache, &missing).unwrap();
    for number in 0..MANY {
        records.add(Recorded::Cache, &outer.path().join("gone").join(number.to_string())).unwrap();
    }
    assert!(records.all().len() < MANY);
    assert!(paths(&records).contains(&there) && paths(&records).contains(&missing));
    for number in 0..TOO_MANY {
        records.add(Recorded::Cache, &outer.path().join(number.to_string())).unwrap();
    }
    assert!(records.all().len() < TOO_MANY);
    assert!(paths(&records).contains(&there) && !paths(&records).contains(&missing));
}

#[test]
fn record_without_absolute_path_is_ignored() {
    let outer = tempfile::tempdir().unwrap();
    for (name, content) in [("a", "relative"), ("b", ""), ("c", "/with\0zero")] {
        fs::write(outer.path().join(name), content).unwrap();
    }
    assert!(PathRecords { dir: outer.path().to_owned() }.all().is_empty());
}

#[test]
fn truncated_record_is_rewritten() {
    let outer = tempfile::tempdir().unwrap();
    let records = PathRecords { dir: outer.path().join("paths") };
    let cache = Path::new("/a/cache");
    records.add(Recorded::Cache, cache).unwrap();
    for broken in ["", "/a", "/another/cache"] {
        let record = fs::read_dir(&records.dir).unwrap().next().unwrap().unwrap().path();
        fs::write(&record, broken).unwrap();
        records.add(Recorded::Cache, cache).unwrap();
        assert_eq!(paths(&records), [cache], "{broken:?}");
    }
}

#[test]
fn records_of_existing_caches_are_bounded() {
    let outer = tempfile::tempdir().unwrap();
    let records = PathRecords { dir: outer.path().join("records") };
    drop(records.private().unwrap());
    let there = |number: usize| outer.path().join(format!("{number}"));
    for number in 0..MOST {
        fs::create_dir(there(number)).unwrap();
        fs::write(records.dir.join(number.to_string()), there(number).as_os_str().as_bytes())
            .unwrap();
    }
    assert_eq!(
        records.add(Recorded::Cache, outer.path()).unwrap_err().kind(),
        ErrorKind::QuotaExceeded
    );
    fs::remove_dir(there(7)).unwrap();
    records.add(Recorded::Cache, outer.path()).unwrap();
}

#[test]
fn record_directory_replaceable_by_others_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let outer = tempfile::tempdir().unwrap();
    let open = outer.path().join("open");
    fs::create_dir(&open).unwrap();
    let records = PathRecords { dir: open.join("state/paths") };
    let cache = outer.path().join("cache");
    let made = |mode| {
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        records.add(Recorded::Cache, &cache).map_err(|error| error.to_string())
    };
    for mode in [0o777, 0o775, 0o757] {
        let why = made(mode).unwrap_err();
        assert!(
            why.contains("other users can write to") && why.contains("chmod go-w"),
            "{mode:o}: {why}"
        );
        assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    }
    for mode in [0o755, 0o1777] {
        assert_eq!(made(mode), Ok(()), "{mode:o}");
    }
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(paths(&records), [cache], "the user's own record still applies");
}

#[test]
fn record_writable_by_others_is_ignored() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let outer = tempfile::tempdir().unwrap();
    let records = PathRecords { dir: outer.path().join("paths") };
    records.add(Recorded::Cache, Path::new("/a/cache")).unwrap();
    let record = fs::read_dir(&records.dir).unwrap().next().unwrap().unwrap().path();
    for (mode, count) in [(0o600, 1), (0o644, 1), (0o620, 0), (0o602, 0), (0o666, 0)] {
        fs::set_permissions(&record, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(records.all().len(), count, "{mode:o}");
    }
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    // Only root can change the owner of a file.
    if chown(&record, Some(65_534), None).is_ok() {
        assert!(records.all().is_empty());
    }
}
