//! Signatures: verified when a plugin is approved, and pinned from then on.

use crate::{approve, configuration, lock, plugin, program};
use palisade_tests::program::Ran;
use palisade_tests::{Program, World};
use std::fs;
use std::path::PathBuf;

/// Makes a pair of keys, and returns the files of the secret and the public one.
#[track_caller]
fn keys(world: &World, name: &str) -> (PathBuf, String) {
    let secret = world.outer().join(format!("{name}.key"));
    let words = ["sign", "--generate", "--no-password", "--key"];
    let _ = Program::new(world).args(words).args([&secret]).run().exits_with(0);
    let public = fs::read_to_string(world.outer().join(format!("{name}.pub"))).unwrap();
    (secret, public.lines().nth(1).unwrap().to_owned())
}

#[track_caller]
fn sign(world: &World, secret: &PathBuf) {
    let file = world.plugins().join("git.wasm");
    let command = Program::new(world).args(["sign"]).args([&file]).args(["--key"]);
    let _ = command.args([secret]).run().exits_with(0);
}

/// Writes a configuration that trusts these keys for the plugin directory.
fn trust(world: &World, keys: &[&str]) {
    let mut text = configuration(world);
    for key in keys {
        let source = world.plugins().display().to_string();
        text.push_str(&format!("[[plugins.keys]]\nkey = \"{key}\"\nsource = \"{source}\"\n"));
    }
    fs::create_dir_all(lock(world).parent().unwrap()).unwrap();
    fs::write(lock(world).with_file_name("palisade.toml"), text).unwrap();
}

fn approved(world: &World, words: &[&str]) -> Ran {
    program(world, &[&["approve", "--all", "--yes"], words].concat()).run()
}

#[test]
fn plugin_is_approved_only_with_the_signature_of_a_trusted_key() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let (secret, public) = keys(&world, "author");
    trust(&world, &[&public]);
    approved(&world, &[])
        .exits_with(6)
        .stderr_contains(&["there is no signature", "git.wasm.minisig"]);
    let (stranger, _) = keys(&world, "stranger");
    sign(&world, &stranger);
    approved(&world, &[]).exits_with(6).stderr_contains(&["a key that is not configured"]);
    sign(&world, &secret);
    world.install("git", &plugin("look").extra("(func $evil)").build());
    approved(&world, &[]).exits_with(6).stderr_contains(&["not valid for these bytes"]);
    assert!(!lock(&world).exists());
    sign(&world, &secret);
    let ran = approved(&world, &[]).exits_with(0);
    assert!(ran.stdout.contains(&format!("signature  valid, by {public}")), "{ran:?}");
    assert!(fs::read_to_string(lock(&world)).unwrap().contains(&public));
    let _ = program(&world, &["call", "look"]).run().exits_with(0);
}

#[test]
fn approval_shows_the_grants_that_come_with_it() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let (secret, public) = keys(&world, "author");
    trust(&world, &[&public]);
    sign(&world, &secret);
    let granted = |words: &[&str]| approved(&world, words).exits_with(0).stdout;
    assert!(!granted(&[]).contains("granted"));
    for words in [["git", "--signer", "net"], ["git", "--signer", "env"]] {
        let what = if words[2] == "net" { "GET https://api.example.org" } else { "HOME" };
        let words = [&["grant"], &words[..], &[what]].concat();
        let _ = program(&world, &words).run().exits_with(0);
    }
    world.install("git", &plugin("look").extra("(func $more)").build());
    sign(&world, &secret);
    let shown = program(&world, &["approve", "--json"]).run().exits_with(0).json();
    assert_eq!(shown[0]["grants"].as_array().unwrap().len(), 2, "{shown}");
    let shown = granted(&[]);
    for grant in ["net GET https://api.example.org", "env HOME"] {
        assert!(shown.contains(&format!("with the approval it has `{grant}`")), "{shown}");
    }
}

#[test]
fn new_signer_stops() {
    let world = World::new();
    let (first, first_public) = keys(&world, "first");
    let (second, second_public) = keys(&world, "second");
    trust(&world, &[&first_public, &second_public]);
    world.install("git", &plugin("look").build());
    sign(&world, &first);
    let _ = approved(&world, &[]).exits_with(0);
    world.install("git", &plugin("look").extra("(func $next)").build());
    sign(&world, &second);
    let ran = approved(&world, &[]).exits_with(4);
    let said = format!("was signed with {first_public}, and this one with {second_public}");
    ran.stderr_contains(&[&said, "--new-signer"]);
    // The signature that is no longer verified is a new signer, too.
    trust(&world, &[]);
    approved(&world, &[])
        .exits_with(4)
        .stderr_contains(&["and this one has no verified signature"]);
    trust(&world, &[&second_public]);
    let _ = approved(&world, &["--new-signer"]).exits_with(0);
    let _ = program(&world, &["call", "look"]).run().exits_with(0);
}

#[test]
fn without_a_key_nothing_is_called_valid() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let (secret, _) = keys(&world, "author");
    sign(&world, &secret);
    let ran = approved(&world, &[]).exits_with(0);
    assert!(ran.stdout.contains("not verified: no key is configured"), "{ran:?}");
    assert!(!ran.stdout.contains("valid, by"), "{ran:?}");
    assert!(!fs::read_to_string(lock(&world)).unwrap().contains("signer"));
}

#[test]
fn keys_are_checked_private_and_never_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let (secret, _) = keys(&world, "author");
    assert_eq!(secret.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = Program::new(&world).args(["sign", "--generate", "--no-password", "--key"]);
    again.args([&secret]).run().exits_with(2).stderr_contains(&["exists"]);
    trust(&world, &["nonsense"]);
    program(&world, &["list"]).run().exits_with(2).stderr_contains(&["`plugins.keys.key`"]);
    trust(&world, &[]);
    world.file("palisade.toml", "[[plugins.keys]]\nkey = \"x\"\n");
    let _ = program(&world, &["list"]).run().exits_with(2);
    world.file("palisade.toml", "");
    world.install("git", &plugin("look").build());
    approve(&world);
}

/// Writes a configuration that trusts a key for this source.
fn trust_source(world: &World, key: &str, source: &str) {
    let text = format!(
        "{}[[plugins.keys]]\nkey = \"{key}\"\nsource = \"{source}\"\n",
        configuration(world)
    );
    fs::create_dir_all(lock(world).parent().unwrap()).unwrap();
    fs::write(lock(world).with_file_name("palisade.toml"), text).unwrap();
}

#[test]
fn key_holds_for_every_spelling_of_its_source() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let (_, public) = keys(&world, "author");
    let plugins = world.plugins().display().to_string();
    let (parent, folder) = plugins.rsplit_once('/').unwrap();
    std::os::unix::fs::symlink(&plugins, world.outer().join("link")).unwrap();
    let link = world.outer().join("link").display().to_string();
    for source in [
        format!("{parent}/./{folder}"),
        format!("{plugins}/."),
        format!("{plugins}//"),
        format!("{plugins}/../{folder}"),
        link,
    ] {
        trust_source(&world, &public, &source);
        let ran = approved(&world, &[]).exits_with(6);
        ran.stderr_contains(&["there is no signature"]);
        assert!(!lock(&world).exists(), "{source}");
    }
}

#[test]
fn key_of_a_source_that_does_not_exist_approves_nothing() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let (_, public) = keys(&world, "author");
    let wrong = format!("{}x", world.plugins().display());
    trust_source(&world, &public, &wrong);
    let ran = approved(&world, &[]).exits_with(6);
    ran.stderr_contains(&[&wrong, "no directory", "plugins.keys.source"]);
    // A directory that exists, and is not one that this run loads, is told.
    fs::create_dir(&wrong).unwrap();
    let ran = approved(&world, &[]).exits_with(0);
    ran.stderr_contains(&[&wrong, "no plugin of this run is in it"]);
}

#[test]
fn bad_signature_file_stops_its_own_plugin_alone() {
    for is_pipe in [true, false] {
        let world = World::new();
        world.install("bad", &plugin("look").build());
        world.install("git", &plugin("sum").build());
        let (secret, public) = keys(&world, "author");
        sign(&world, &secret);
        let beside = world.plugins().join("bad.wasm.minisig");
        if is_pipe {
            let made = std::process::Command::new("mkfifo").arg(&beside).status().unwrap();
            assert!(made.success());
        } else {
            fs::create_dir(&beside).unwrap();
        }
        trust(&world, &[&public]);
        let ran = approved(&world, &[]).exits_with(6);
        ran.stderr_contains(&["`bad`: the signature"]);
        assert!(ran.stdout.contains("`git` is approved."), "{ran:?}");
        // Without a key nothing reads it.
        trust(&world, &[]);
        let ran = program(&world, &["approve", "bad", "--yes"]).run().exits_with(0);
        assert!(ran.stdout.contains("`bad` is approved."), "{ran:?}");
    }
}

#[test]
fn too_long_signature_file_is_a_problem_of_its_plugin() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    let (secret, public) = keys(&world, "author");
    sign(&world, &secret);
    trust(&world, &[&public]);
    let beside = world.plugins().join("git.wasm.minisig");
    let text = fs::read_to_string(&beside).unwrap();
    fs::write(&beside, "x".repeat(5_000)).unwrap();
    approved(&world, &[]).exits_with(6).stderr_contains(&["`git`: the signature"]);
    fs::write(&beside, text + "and more\n").unwrap();
    approved(&world, &[]).exits_with(6).stderr_contains(&["text after the signature"]);
}

#[test]
fn key_that_is_configured_later_is_told_and_pinned_by_name() {
    let world = World::new();
    world.install("git", &plugin("look").build());
    approve(&world);
    let (secret, public) = keys(&world, "author");
    trust(&world, &[&public]);
    let doctor = program(&world, &["doctor"]).run();
    let said = "1 approved plugin has no signature of a configured key: git";
    assert!(doctor.stdout.contains(said), "{doctor:?}");
    program(&world, &["approve", "git", "--yes"])
        .run()
        .exits_with(6)
        .stderr_contains(&["there is no signature"]);
    sign(&world, &secret);
    let ran = program(&world, &["approve", "git", "--yes"]).run().exits_with(0);
    assert!(ran.stdout.contains(&format!("signature  valid, by {public}")), "{ran:?}");
    assert!(fs::read_to_string(lock(&world)).unwrap().contains(&public));
    let doctor = program(&world, &["doctor"]).run();
    assert!(!doctor.stdout.contains("no signature of a configured key"), "{doctor:?}");
    let _ = program(&world, &["call", "look"]).run().exits_with(0);
}
