//! Attacks on the source of an installed plugin. Each stops with its reason, and the plugin that
//! was approved keeps running.

use crate::oci::publish;
use crate::registry::Registry;
use crate::server::{Reply, Server};
use crate::{
    add, file, files, folder, keys, lock_text, looks, plugin, program, signature, told, trust,
    versioned,
};
use palisade::tool::Digest;
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

/// Checks that an update is refused for a reason with these words, and that everything stays.
#[track_caller]
fn stops(world: &World, words: &[&str], code: i32, says: &str) {
    let before = (files(world), lock_text(world));
    let ran = program(world, &[&["update"], words].concat()).run().exits_with(code);
    assert!(ran.stderr.contains(says) || ran.stdout.contains(says), "{says}: {ran:?}");
    assert_eq!((files(world), lock_text(world)), before);
    looks(world);
}

/// A web server whose file and signature can be exchanged.
struct Mirror {
    server: Server,
    has: Arc<Mutex<(Vec<u8>, Option<String>)>>,
}

impl Mirror {
    fn new(bytes: Vec<u8>, signature: Option<String>) -> Self {
        let has = Arc::new(Mutex::new((bytes, signature)));
        let held = has.clone();
        let server = Server::start(move |request| {
            let held = held.lock().unwrap().clone();
            match request.path.as_str() {
                "/git.wasm" => Reply::new(200, held.0),
                "/git.wasm.minisig" => {
                    held.1.map_or_else(|| Reply::new(404, ""), |it| Reply::new(200, it))
                }
                _ => Reply::new(404, ""),
            }
        });
        Self { server, has }
    }

    fn url(&self) -> String {
        format!("http://{}/git.wasm", self.server.authority())
    }

    fn changes(&self, bytes: Vec<u8>, signature: Option<String>) {
        *self.has.lock().unwrap() = (bytes, signature);
    }
}

#[test]
fn changed_bytes_words_tools_and_classes_are_shown_and_not_taken() {
    let world = World::new();
    let mirror = Mirror::new(plugin("look"), None);
    let _ = add(&world, &mirror.url()).run().exits_with(0);
    let words = Told { description: "Looks, and sends.".to_owned(), class: 1, ..Told::new("look") };
    let wider = Told { class: 2, ..Told::new("look") };
    let other = Wat::new(Told { class: 1, ..Told::new("look") }).extra("(func $other)").build();
    for (bytes, says) in [
        (other, "its bytes differ"),
        (told(words), "its words differ"),
        (plugin("peek"), "it has new tools: peek"),
        (told(wider), "which is WIDER"),
    ] {
        mirror.changes(bytes, None);
        stops(&world, &[], 4, says);
        stops(&world, &["--dry-run"], 0, says);
    }
    mirror.changes(b"<html>".to_vec(), None);
    stops(&world, &["--yes"], 6, "a page of text");
    mirror.changes(Vec::new(), None);
    stops(&world, &["--yes"], 6, "it is empty");
}

#[test]
fn older_version_is_refused_also_by_a_person() {
    let world = World::new();
    let mirror = Mirror::new(versioned("1.10.0"), None);
    let _ = add(&world, &mirror.url()).run().exits_with(0);
    mirror.changes(versioned("1.9.0"), None);
    for words in [&[][..], &["--yes"], &["--dry-run"]] {
        stops(&world, words, 4, "this is 1.9.0, and 1.10.0 was approved before");
    }
    let terminal = crate::terminal::Terminal::new();
    let child = terminal.start(&world, &["update"]);
    let ran = palisade_tests::program::finish(child).exits_with(4);
    assert!(ran.stdout.contains("its bytes differ"), "{ran:?}");
    let transcript = terminal.transcript();
    assert!(!transcript.contains("Approve"), "{transcript}");
    mirror.changes(versioned("1.11.0"), None);
    let _ = program(&world, &["update", "--yes"]).run().exits_with(0);
    mirror.changes(versioned("1.10.0"), None);
    stops(&world, &["--yes"], 4, "this is 1.10.0, and 1.11.0 was approved before");
}

#[test]
fn earlier_file_without_a_version_is_refused() {
    let world = World::new();
    let mirror = Mirror::new(plugin("look"), None);
    let _ = add(&world, &mirror.url()).run().exits_with(0);
    let later = Wat::new(Told { class: 1, ..Told::new("look") }).extra("(func $fixed)").build();
    mirror.changes(later, None);
    let _ = program(&world, &["update", "--yes"]).run().exits_with(0);
    mirror.changes(plugin("look"), None);
    stops(&world, &["--yes"], 4, "an earlier file, and a later one was approved before");
}

#[test]
fn new_signer_and_missing_signature_are_refused() {
    let world = World::new();
    let (first, first_key) = keys(&world, "first");
    let (second, second_key) = keys(&world, "second");
    let (stranger, _) = keys(&world, "stranger");
    let next = Wat::new(Told { class: 1, ..Told::new("look") }).extra("(func $next)").build();
    let signed = signature(&world, &first, &plugin("look"));
    let mirror = Mirror::new(plugin("look"), Some(signed));
    trust(&world, &[&first_key, &second_key], &mirror.url());
    let _ = add(&world, &mirror.url()).run().exits_with(0);
    mirror.changes(next.clone(), None);
    stops(&world, &["--yes"], 6, "there is no signature");
    mirror.changes(next.clone(), Some(signature(&world, &stranger, &next)));
    stops(&world, &["--yes"], 6, "a key that is not configured");
    mirror.changes(next.clone(), Some(signature(&world, &first, &plugin("look"))));
    stops(&world, &["--yes"], 6, "not valid for these bytes");
    mirror.changes(next.clone(), Some(signature(&world, &second, &next)));
    let says = format!("was signed with {first_key}, and this one with {second_key}");
    stops(&world, &["--yes"], 4, &says);
    let _ = program(&world, &["update", "--yes", "--new-signer"]).run().exits_with(0);
    looks(&world);
}

#[test]
fn approved_bytes_keep_their_signer_when_they_are_added_again() {
    let world = World::new();
    let (first, first_key) = keys(&world, "first");
    let (second, second_key) = keys(&world, "second");
    let bytes = plugin("look");
    let mirror = Mirror::new(bytes.clone(), Some(signature(&world, &first, &bytes)));
    trust(&world, &[&first_key, &second_key], &mirror.url());
    let _ = add(&world, &mirror.url()).run().exits_with(0);
    let before = lock_text(&world);
    mirror.changes(bytes.clone(), None);
    add(&world, &mirror.url()).run().exits_with(6).stderr_contains(&["there is no signature"]);
    mirror.changes(bytes.clone(), Some(signature(&world, &second, &bytes)));
    add(&world, &mirror.url()).run().exits_with(4).stderr_contains(&["was signed with"]);
    assert_eq!(lock_text(&world), before);
    looks(&world);
}

#[test]
fn another_spelling_of_a_source_does_not_evade_its_key() {
    let world = World::new();
    let (_, key) = keys(&world, "first");
    let mirror = Mirror::new(plugin("look"), None);
    let port = mirror.server.port();
    for configured in [format!("http://localhost:{port}/"), format!("http://LocalHost.:0{port}")] {
        trust(&world, &[&key], &configured);
        for host in ["localhost", "LOCALHOST", "localhost."] {
            for port in [format!("{port}"), format!("0{port}")] {
                let ran = add(&world, &format!("http://{host}:{port}/git.wasm")).run();
                ran.exits_with(6).stderr_contains(&["there is no signature"]);
            }
        }
    }
    for path in ["x/../git.wasm", "/git.wasm", "%67it.wasm"] {
        let ran = add(&world, &format!("http://localhost:{port}/{path}")).run().exits_with(2);
        ran.stderr_contains(&["an unusual spelling"]);
    }
    assert!(files(&world).is_empty() && mirror.server.requests().len() >= 12);
}

#[test]
fn file_that_was_put_into_the_folder_is_not_approved_as_that_of_a_source() {
    let world = World::new();
    let mirror = Mirror::new(plugin("look"), None);
    let _ = add(&world, &mirror.url()).run().exits_with(0);
    let before = lock_text(&world);
    let evil = plugin("peek");
    let hex = Digest::of(&evil).to_string().replace("sha256:", "");
    let name = &files(&world)[0];
    let own = name.split_once('@').unwrap().1.strip_suffix(".wasm").unwrap();
    fs::write(folder(&world).join(name.replace(own, &hex[..own.len()])), &evil).unwrap();
    let ran = program(&world, &["approve", "git", "--yes"]).run().exits_with(6);
    ran.stderr_contains(&["palisade update"]);
    assert_eq!(lock_text(&world), before);
    looks(&world);
}

#[test]
fn mirror_with_other_bytes_than_the_digest_says_is_refused() {
    let world = World::new();
    let registry = Registry::start();
    let to = registry.at("git:1");
    let evil = Wat::new(Told { class: 1, ..Told::new("look") }).extra("(func $evil)").build();
    let _ = publish(&world, &plugin("look"), &to).run().exits_with(0);
    let _ = add(&world, &to).run().exits_with(0);
    let layer = Digest::of(&plugin("look")).to_string();
    let lie = |bytes: &[u8]| {
        registry.content.lock().unwrap().lies.insert(layer.clone(), bytes.to_vec());
    };
    // As long as the true bytes, shorter, and longer.
    let mut same = plugin("look");
    *same.last_mut().unwrap() ^= 1;
    lie(&same);
    stops(&world, &["--yes"], 4, "the layer has other bytes than its digest says");
    lie(&plugin("look")[..100]);
    stops(&world, &["--yes"], 4, "the layer has other bytes than its digest says");
    lie(&evil);
    stops(&world, &["--yes"], 7, "the response has more than");
    registry.content.lock().unwrap().lies.clear();
    // Another manifest under a digest.
    let text = lock_text(&world);
    let manifest = text.split("resolved = \"").nth(1).unwrap().split('"').next().unwrap();
    let pinned = registry.at(&format!("git@{manifest}"));
    let _ = add(&world, &pinned).args(["--name", "pinned"]).run().exits_with(0);
    let _ = program(&world, &["remove", "git"]).run().exits_with(0);
    let _ = publish(&world, &evil, &registry.at("git:2")).run().exits_with(0);
    let mut content = registry.content.lock().unwrap();
    let other = content.manifests["git:2"].clone();
    content.manifests.insert(format!("git:{manifest}"), other);
    drop(content);
    stops(&world, &["--yes"], 4, "the manifest has other bytes than its digest says");
}

#[test]
fn linked_folder_of_installed_plugins_is_never_written_to() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let path = path.to_str().unwrap();
    let _ = add(&world, path).run().exits_with(0);
    let evil = world.outer().join("evil");
    fs::create_dir(&evil).unwrap();
    let name = files(&world)[0].clone();
    fs::write(evil.join(&name), plugin("peek")).unwrap();
    fs::rename(folder(&world), world.outer().join("kept")).unwrap();
    symlink(&evil, folder(&world)).unwrap();
    // A run compares the bytes, and a change does not follow the link.
    let _ = program(&world, &["call", "look"]).run().exits_with(3);
    program(&world, &["call", "peek"]).run().exits_with(4).stderr_contains(&["is not approved"]);
    for words in [&["add", path, "--yes"][..], &["update", "--yes"], &["remove", "git"]] {
        let ran = program(&world, words).run().exits_with(2);
        ran.stderr_contains(&["is a symbolic link, which is not followed"]);
    }
    assert_eq!(fs::read_dir(&evil).unwrap().count(), 1);
    assert_eq!(fs::read(evil.join(&name)).unwrap(), plugin("peek"));
}

#[test]
fn linked_file_in_the_folder_stops() {
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let _ = add(&world, path.to_str().unwrap()).run().exits_with(0);
    let own = folder(&world).join(&files(&world)[0]);
    let evil = file(&world, "evil.wasm", &plugin("peek"));
    fs::remove_file(&own).unwrap();
    symlink(&evil, &own).unwrap();
    program(&world, &["call", "peek"]).run().exits_with(4).stderr_contains(&["is not approved"]);
    fs::write(&path, Wat::new(Told { class: 1, ..Told::new("look") }).extra("(func $x)").build())
        .unwrap();
    let _ = program(&world, &["update", "--yes"]).run().exits_with(0);
    looks(&world);
    assert_eq!(fs::read(&evil).unwrap(), plugin("peek"), "the link is removed, not followed");
}

#[test]
fn folder_that_others_can_reach_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let path = file(&world, "git.wasm", &plugin("look"));
    let path = path.to_str().unwrap();
    let _ = add(&world, path).run().exits_with(0);
    fs::set_permissions(folder(&world), fs::Permissions::from_mode(0o755)).unwrap();
    add(&world, path).run().exits_with(2).stderr_contains(&["chmod 700"]);
    fs::set_permissions(folder(&world), fs::Permissions::from_mode(0o700)).unwrap();
    let _ = add(&world, path).run().exits_with(0);
}
