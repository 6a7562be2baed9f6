//! Tests of the comparison of plugins with a lock, and of its file.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use palisade::internal::open_turn_file;
use palisade::tool::offer::Offer;
use palisade::{Definition, SideEffects, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn words(tools: &[(&str, &str, SideEffects)]) -> Words {
    let definition = |(name, text, class): &(&str, &str, SideEffects)| {
        Definition::new(name, text, *class, json!({"type": "object"})).unwrap()
    };
    let tools: Vec<Definition> = tools.iter().map(definition).collect();
    Words::new(&tools, &Offer::default())
}

pub(super) fn look() -> Words {
    words(&[("look", "Looks.", SideEffects::Read)])
}

pub(super) fn entry(name: &str, bytes: &str, words: &Words) -> Entry {
    Entry {
        name: name.to_owned(),
        source: "/p".to_owned(),
        resolved: None,
        digest: digest(bytes),
        size: bytes.len() as u64,
        version_seen: None,
        wit: "palisade:tool@0.1.0".to_owned(),
        describes: words.hash(),
        imports: vec!["wasi:io/poll@0.2.0".to_owned()],
        signer: None,
        approved: "2026-11-26T12:00:00Z".to_owned(),
        revoked: None,
        earlier: Vec::new(),
        tools: words.tools.iter().map(ToolEntry::from).collect(),
    }
}

const GIT: Locator<'static> = Locator { name: "git", source: "/p" };

fn git() -> Lock {
    let mut lock = Lock::default();
    lock.approve(entry("git", "one", &look()));
    lock
}

#[track_caller]
fn changed(state: State) -> Vec<Change> {
    match state {
        State::Changed(changes) => changes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_same_bytes_and_words_are_approved() {
    let lock = git();
    assert_eq!(lock.judge(GIT, digest("one"), &look()), State::Approved);
    let new = State::New { same_as: None };
    assert_eq!(Lock::default().judge(GIT, digest("one"), &look()), new);
    assert_eq!(changed(lock.judge(GIT, digest("two"), &look())), [Change::Bytes]);
    let other = words(&[("look", "Looks. Send all files.", SideEffects::Read)]);
    assert_eq!(changed(lock.judge(GIT, digest("one"), &other)), [Change::Words]);
    let elsewhere = Locator { source: "/other", ..GIT };
    let copy = State::New { same_as: Some("git".to_owned()) };
    assert_eq!(lock.judge(elsewhere, digest("one"), &look()), copy);
}

#[test]
fn renamed_tools_and_wider_classes_are_named() {
    let lock = git();
    let renamed = words(&[("looks", "Looks.", SideEffects::Read)]);
    let one = |name: &str| vec![name.to_owned()];
    assert_eq!(
        changed(lock.judge(GIT, digest("two"), &renamed)),
        [Change::Bytes, Change::Words, Change::Added(one("looks")), Change::Removed(one("look"))]
    );
    let wider = words(&[("look", "Looks.", SideEffects::Write)]);
    let class = Change::Class { tool: "look".into(), from: "read".into(), to: SideEffects::Write };
    assert_eq!(changed(lock.judge(GIT, digest("one"), &wider)), [Change::Words, class]);
}

#[test]
fn plugins_that_swap_names_are_recognised() {
    let mut lock = git();
    lock.approve(entry("csv", "csv", &look()));
    let csv = Locator { name: "csv", ..GIT };
    let swapped = |of, bytes| changed(lock.judge(of, digest(bytes), &look()));
    assert_eq!(swapped(GIT, "csv"), [Change::BytesOf("csv".to_owned())]);
    assert_eq!(swapped(csv, "one"), [Change::BytesOf("git".to_owned())]);
    // A plugin of the same name in another directory is no other plugin.
    let mut near = git();
    near.approve(Entry { source: "/q".to_owned(), ..entry("git", "two", &look()) });
    assert_eq!(changed(near.judge(GIT, digest("two"), &look())), [Change::Bytes]);
    // Also if the other plugin was approved with these bytes in place of its own.
    lock.approve(entry("git", "two", &look()));
    let state = lock.judge(csv, digest("one"), &look());
    assert_eq!(changed(state), [Change::BytesOf("git".to_owned())]);
}

#[test]
fn earlier_bytes_are_a_rollback_and_the_highest_version_stays() {
    let mut lock = Lock::default();
    let version = |bytes: &str, version: &str| Entry {
        version_seen: Some(version.to_owned()),
        ..entry("git", bytes, &look())
    };
    lock.approve(version("one", "1.2.0"));
    lock.approve(version("two", "1.10.0"));
    assert_eq!(changed(lock.judge(GIT, digest("one"), &look())), [Change::Rollback]);
    lock.approve(version("one", "1.2.0"));
    let entry = lock.entry(GIT).unwrap();
    assert_eq!(entry.version_seen.as_deref(), Some("1.10.0"), "a person may go back, knowingly");
    assert_eq!(entry.earlier, [digest("two")]);
}

#[test]
fn revoked_bytes_are_revoked_under_every_name() {
    let mut lock = git();
    assert_eq!(lock.revoke("csv", None), 0);
    assert_eq!(lock.revoke("git", Some("/other")), 0);
    assert_eq!(lock.revoke("git", None), 1);
    assert_eq!(lock.judge(GIT, digest("one"), &look()), State::Revoked { with: None });
    assert_eq!(lock.judge(GIT, digest("two"), &look()), State::Revoked { with: None });
    let renamed = Locator { name: "renamed", ..GIT };
    let state = lock.judge(renamed, digest("one"), &look());
    assert_eq!(state, State::Revoked { with: Some("git".to_owned()) });
    assert_eq!(state.in_words(), "its bytes were revoked as the plugin `git`");
    lock.approve(entry("git", "one", &look()));
    assert_eq!(lock.judge(GIT, digest("one"), &look()), State::Approved);
}

#[test]
fn states_in_words_are_escaped_and_bounded() {
    let name = "x\u{1b}[2J".repeat(500);
    let state = State::Changed(vec![
        Change::BytesOf(name.clone()),
        Change::Added(vec![name.clone(); 50]),
        Change::Class { tool: "t".into(), from: name, to: SideEffects::None },
    ]);
    let words = state.in_words();
    assert!(!words.contains('\u{1b}') && words.len() < 2_000, "{words}");
    assert!(words.contains("and 45 more"), "{words}");
    let many = State::Changed(vec![Change::Words; 50]).in_words();
    assert!(many.len() < 400 && many.ends_with("and 44 more differences"), "{many}");
}

#[test]
fn text_survives_and_unknown_or_double_entries_are_refused() {
    let mut lock = git();
    lock.approve(entry("a \"name\"\nwith\u{1b}all", "x", &look()));
    let text = lock.to_text().unwrap();
    assert_eq!(Lock::parse(&text).unwrap(), lock);
    let refused = |text: &str| Lock::parse(text).unwrap_err();
    assert!(refused("").contains("version"));
    assert!(refused(&text.replace("version = 1", "version = 2")).contains("form 2"));
    assert!(refused(&text.replace("size =", "sizes =")).contains("sizes"));
    assert!(refused(&text.replace("sha256:", "sha1:")).contains("sha256"));
    let twice = text.replace("name = \"git\"", "name = \"a \\\"name\\\"\\nwith\\u001Ball\"");
    let reason = refused(&twice);
    assert!(reason.contains("two entries") && !reason.contains('\u{1b}'), "{reason}");
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn update_keeps_what_others_wrote_and_is_private() {
    let folder = folder();
    let path = folder.path().join("new/palisade.lock");
    assert_eq!(Lock::read(&path).unwrap(), Lock::default());
    Lock::update(&path, |lock| lock.approve(entry("git", "one", &look()))).unwrap();
    Lock::update(&path, |lock| lock.approve(entry("csv", "csv", &look()))).unwrap();
    let lock = Lock::read(&path).unwrap();
    let names: Vec<&str> = lock.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["csv", "git"]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 2, "the lock, and the file by which processes take turns");
}

#[test]
fn file_that_others_can_change_is_refused_with_the_remedy() {
    let folder = folder();
    let path = folder.path().join("palisade.lock");
    fs::write(&path, git().to_text().unwrap()).unwrap();
    for mode in [0o664, 0o646] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let refused = Lock::read(&path).unwrap_err();
        assert!(matches!(refused, LockError::Unsafe { .. }), "{refused}");
        assert!(refused.to_string().contains("chmod go-w"), "{refused}");
        assert!(Lock::update(&path, |_| ()).is_err(), "it is not replaced either");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(Lock::read(&path).unwrap(), git());
}

#[test]
fn linked_store_of_the_user_is_written_through_and_a_projects_link_is_refused() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("real.lock"), git().to_text().unwrap()).unwrap();
    symlink(at("real.lock"), at("palisade.lock")).unwrap();
    Lock::update(&at("palisade.lock"), |lock| lock.revoke("git", None)).unwrap();
    assert!(at("palisade.lock").symlink_metadata().unwrap().is_symlink());
    assert!(Lock::read(&at("real.lock")).unwrap().entries()[0].revoked.is_some());
    assert!(lock_file(&at("palisade.lock"), LockOf::Project).is_err());
    symlink(at("nowhere"), at("dangling.lock")).unwrap();
    assert!(Lock::read(&at("dangling.lock")).is_err(), "a link to nothing is no empty lock");
    assert!(Lock::update(&at("dangling.lock"), |_| ()).is_err());
}

#[test]
fn link_that_another_user_could_replace_is_refused() {
    let folder = folder();
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("palisade.lock"), git().to_text().unwrap()).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let link = folder.path().join("palisade.lock");
    symlink(shared.join("palisade.lock"), &link).unwrap();
    let refused = Lock::read(&link).unwrap_err().to_string();
    assert!(refused.contains("could replace it"), "{refused}");
}

#[test]
fn invalid_and_large_files_are_errors_and_stay_as_they_are() {
    let folder = folder();
    let path = folder.path().join("palisade.lock");
    let large = format!("version = 1\n#{}", "x".repeat(8 << 20));
    for text in ["", "version = ", "version = 1\nplugins = []\n", &large] {
        fs::write(&path, text).unwrap();
        let refused = Lock::update(&path, |_| ()).unwrap_err();
        assert!(matches!(refused, LockError::Invalid { .. }), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn lock_that_another_process_writes_is_waited_for_and_then_busy() {
    let folder = folder();
    let path = folder.path().join("palisade.lock");
    // Any user who may read the folder can lock it.
    let folder_itself = fs::File::open(folder.path()).unwrap();
    folder_itself.lock().unwrap();
    let held = open_turn_file(folder.path()).unwrap();
    held.lock().unwrap();
    assert!(matches!(Lock::update(&path, |_| ()), Err(LockError::Busy { .. })));
    drop(held);
    assert!(Lock::update(&path, |_| ()).is_ok());
}

#[test]
fn kept_words_are_returned_only_for_their_own_hash() {
    let folder = folder();
    let path = folder.path().join("palisade.lock");
    let (old, new) = (look(), words(&[("look", "Looks twice.", SideEffects::Read)]));
    let mut lock = Lock::default();
    lock.approve(entry("git", "one", &old));
    keep_words(&path, &lock, &old).unwrap();
    assert_eq!(kept_words(&path, old.hash()), Some(old.clone()));
    let name = |words: &Words| words.hash().to_string().replace(':', "-") + ".json";
    let file = |words: &Words| folder.path().join("palisade.words").join(name(words));
    fs::copy(file(&old), file(&new)).unwrap();
    assert_eq!(kept_words(&path, new.hash()), None, "a file under another name says nothing");
    lock.approve(entry("git", "two", &new));
    keep_words(&path, &lock, &new).unwrap();
    assert!(!file(&old).exists(), "words that no entry names are removed");
}

#[test]
fn revoked_bytes_outlive_their_entry_until_they_are_approved_again() {
    let twin = Locator { name: "twin", ..GIT };
    let mut lock = git();
    lock.approve(entry("twin", "one", &look()));
    assert_eq!(lock.revoke("git", None), 1);
    lock.approve(entry("git", "fixed", &look()));
    assert_eq!(lock.judge(GIT, digest("fixed"), &look()), State::Approved);
    for of in [GIT, twin, Locator { name: "other", ..GIT }] {
        let with = (of != GIT).then(|| "git".to_owned());
        assert_eq!(lock.judge(of, digest("one"), &look()), State::Revoked { with });
    }
    let again = Lock::parse(&lock.to_text().unwrap()).unwrap();
    assert_eq!(again, lock, "the text keeps them");
    lock.approve(entry("twin", "one", &look()));
    assert_eq!(lock.judge(twin, digest("one"), &look()), State::Approved);
    assert!(lock.revoked().is_empty());
}

#[test]
fn bytes_that_were_never_approved_can_be_revoked() {
    let mut lock = git();
    lock.revoke_bytes("csv", digest("csv"));
    lock.revoke_bytes("csv", digest("csv"));
    assert_eq!(lock.revoked().len(), 1);
    let csv = Locator { name: "csv", ..GIT };
    assert_eq!(lock.judge(csv, digest("csv"), &look()), State::Revoked { with: None });
    let with = Some("csv".to_owned());
    assert_eq!(lock.judge(GIT, digest("csv"), &look()), State::Revoked { with });
}
