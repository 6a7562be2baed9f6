//! Plugins that are published to a registry and added from it, in the layout of the WebAssembly
//! ecosystem.

use crate::registry::{PASSWORD, Registry};
use crate::server::{Reply, Server};
use crate::{
    add, file, files, keys, lock_text, looks, plugin, program, signature, trust, versioned,
};
use palisade_tests::program::Ran;
use palisade_tests::{Program, World};
use serde_json::Value;
use std::fs;
use std::sync::{Arc, Mutex};

/// Returns the program that publishes bytes.
pub(crate) fn publish<'w>(world: &'w World, bytes: &[u8], to: &str) -> Program<'w> {
    let path = file(world, "to-publish.wasm", bytes);
    program(world, &["publish"]).args([path]).args([to])
}

/// Returns the digest of the manifest that was published.
fn manifest_of(ran: &Ran) -> String {
    let line = ran.stdout.lines().find_map(|line| line.strip_prefix("The manifest: "));
    line.unwrap().to_owned()
}

#[test]
fn published_plugin_is_added_by_tag_and_by_digest() {
    let world = World::new();
    let registry = Registry::start();
    let to = registry.at("me/git:1.0.0");
    let ran = publish(&world, &plugin("look"), &to).run().exits_with(0);
    let manifest = manifest_of(&ran);
    let _ = add(&world, &to).run().exits_with(0);
    looks(&world);
    let text = lock_text(&world);
    assert!(text.contains(&format!("source = \"{to}\"")), "{text}");
    assert!(text.contains(&format!("resolved = \"{manifest}\"")), "{text}");
    let pinned = registry.at(&format!("me/git@{manifest}"));
    let _ = add(&world, &pinned).args(["--name", "pinned"]).run().exits_with(0);
    assert_eq!(files(&world).len(), 2);
}

#[test]
fn later_tag_of_the_repository_updates_the_plugin() {
    let world = World::new();
    let registry = Registry::start();
    let tag = |tag: &str| registry.at(&format!("me/git:{tag}"));
    for version in ["1.9.0", "1.10.0"] {
        let _ = publish(&world, &versioned(version), &tag(version)).run().exits_with(0);
    }
    let _ = add(&world, &tag("1.9.0")).run().exits_with(0);
    let ran = add(&world, &tag("1.10.0")).run().exits_with(0);
    assert!(ran.stdout.contains("it has changed since it was approved"), "{ran:?}");
    assert!(ran.stdout.contains("`git` is approved and updated"), "{ran:?}");
    let text = lock_text(&world);
    assert_eq!(text.matches("[[plugin]]").count(), 1, "{text}");
    assert!(text.contains(&format!("source = \"{}\"", tag("1.10.0"))), "{text}");
    looks(&world);
    let ran = add(&world, &tag("1.9.0")).run().exits_with(4);
    ran.stderr_contains(&["this is 1.9.0, and 1.10.0 was approved before"]);
    assert_eq!((lock_text(&world), files(&world).len()), (text, 1));
    let other = registry.at("you/git:2.0.0");
    let _ = publish(&world, &versioned("2.0.0"), &other).run().exits_with(0);
    add(&world, &other).run().exits_with(2).stderr_contains(&["`git` is installed from"]);
    // A revocation stops the next tag as well.
    let _ = publish(&world, &versioned("1.11.0"), &tag("1.11.0")).run().exits_with(0);
    let _ = program(&world, &["revoke", "git"]).run().exits_with(0);
    add(&world, &tag("1.11.0")).run().exits_with(4).stderr_contains(&["with `palisade add`"]);
}

#[test]
fn manifest_has_the_layout_that_others_read() {
    let world = World::new();
    let registry = Registry::start();
    let _ = publish(&world, &plugin("look"), &registry.at("me/git:1")).run().exits_with(0);
    let content = registry.content.lock().unwrap();
    let manifest: Value = serde_json::from_slice(&content.manifests["me/git:1"]).unwrap();
    assert_eq!(manifest["schemaVersion"], 2);
    assert_eq!(manifest["mediaType"], "application/vnd.oci.image.manifest.v1+json");
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    let title = &manifest["layers"][0]["annotations"]["org.opencontainers.image.title"];
    assert_eq!(title, "to-publish.wasm");
    let config: Value =
        serde_json::from_slice(content.blob(manifest["config"]["digest"].as_str().unwrap()))
            .unwrap();
    assert_eq!((&config["architecture"], &config["os"]), (&"wasm".into(), &"wasip2".into()));
    assert_eq!(config["layerDigests"][0], manifest["layers"][0]["digest"]);
    let exports = config["component"]["exports"].as_array().unwrap();
    assert!(exports.iter().any(|it| it.as_str().unwrap().starts_with("palisade:tool/")));
    assert!(config["created"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn tag_with_other_bytes_is_moved_only_on_purpose() {
    let world = World::new();
    let registry = Registry::start();
    let to = registry.at("git:1");
    let _ = publish(&world, &plugin("look"), &to).run().exits_with(0);
    let _ = publish(&world, &plugin("look"), &to).run().exits_with(0);
    let ran = publish(&world, &plugin("peek"), &to).run().exits_with(2);
    ran.stderr_contains(&["exists with other bytes", "--replace"]);
    let _ = publish(&world, &plugin("peek"), &to).args(["--replace"]).run().exits_with(0);
    let ran = publish(&world, b"\0asm\x01\0\0\0", &to).run().exits_with(6);
    ran.stderr_contains(&["it is a core module"]);
    let pinned = registry.at(&format!("git@sha256:{}", "a".repeat(64)));
    let _ = publish(&world, &plugin("look"), &pinned).run().exits_with(2);
    let _ = publish(&world, &plugin("look"), "git.wasm").run().exits_with(2);
}

#[test]
fn signature_travels_with_the_artifact() {
    let world = World::new();
    let registry = Registry::start();
    let (secret, public) = keys(&world, "author");
    let bytes = plugin("look");
    trust(&world, &[&public], &registry.at("me"));
    let _ = publish(&world, &bytes, &registry.at("me/git:1")).run().exits_with(0);
    let ran = add(&world, &registry.at("me/git:1")).run().exits_with(6);
    ran.stderr_contains(&["there is no signature"]);
    let signed = signature(&world, &secret, &bytes);
    file(&world, "to-publish.wasm.minisig", signed.as_bytes());
    let ran = publish(&world, &bytes, &registry.at("me/git:2")).run().exits_with(0);
    assert!(ran.stdout.contains("with its signature"), "{ran:?}");
    let _ = add(&world, &registry.at("me/git:2")).run().exits_with(0);
    looks(&world);
    assert!(lock_text(&world).contains(&format!("signer = \"{public}\"")));
}

#[test]
fn file_that_is_no_signature_is_not_published() {
    let world = World::new();
    let registry = Registry::start();
    let beside = world.outer().join("to-publish.wasm.minisig");
    let secret = world.home().join("id_ed25519");
    fs::write(&secret, "-----BEGIN OPENSSH PRIVATE KEY-----\nplanted\n").unwrap();
    let to = registry.at("git:1");
    let refused = |reason: &str| {
        let ran = publish(&world, &plugin("look"), &to).run();
        assert!(ran.code != 0 && ran.stderr.contains(reason), "{ran:?}");
        assert!(!ran.stderr.contains("planted"), "{ran:?}");
        assert!(registry.content.lock().unwrap().manifests.is_empty());
    };
    // As a cloned repository may hold it.
    std::os::unix::fs::symlink(&secret, &beside).unwrap();
    refused("cannot read");
    fs::remove_file(&beside).unwrap();
    fs::copy(&secret, &beside).unwrap();
    refused("the signature is none of minisign");
    fs::remove_file(&beside).unwrap();
    let _ = publish(&world, &plugin("look"), &to).run().exits_with(0);
}

#[test]
fn registry_with_tokens_gets_the_credentials_of_its_own_and_nobody_sees_them() {
    let world = World::new();
    let registry = Registry::with_tokens();
    let to = registry.at("git:1");
    let anonymous = publish(&world, &plugin("look"), &to).run().exits_with(4);
    anonymous.stderr_contains(&["gives none for these credentials", "docker login"]);
    let authority = registry.server.authority();
    let own = |program: Program<'_>, registry: &str| {
        let program = program.env("PALISADE_REGISTRY", registry).env("PALISADE_LOG", "trace");
        program
            .env("PALISADE_REGISTRY_USER", "me")
            .env("PALISADE_REGISTRY_PASSWORD", PASSWORD)
            .run()
    };
    let _ = own(publish(&world, &plugin("look"), &to), "ghcr.io").exits_with(4);
    let sent = registry.server.requests();
    assert!(sent.iter().all(|it| !it.head.contains("authorization: basic")));
    let runs =
        [own(publish(&world, &plugin("look"), &to), &authority), own(add(&world, &to), &authority)];
    // The file of docker has the same.
    let folder = world.outer().join("docker");
    fs::create_dir(&folder).unwrap();
    let auth = "bWU6cGxhbnRlZC13b3Jk";
    let text = format!("{{\"auths\": {{\"{authority}\": {{\"auth\": \"{auth}\"}}}}}}");
    fs::write(folder.join("config.json"), text).unwrap();
    let docker = program(&world, &["update"]).env("DOCKER_CONFIG", &folder);
    let docker = docker.env("PALISADE_LOG", "trace").run();
    for ran in runs.into_iter().chain([docker]) {
        let ran = ran.exits_with(0);
        for secret in [PASSWORD, auth, "a-token"] {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran:?}");
        }
    }
    looks(&world);
    for secret in [PASSWORD, auth, "a-token"] {
        assert!(!lock_text(&world).contains(secret));
    }
}

#[test]
fn registry_that_repeats_credentials_is_not_quoted() {
    let world = World::new();
    for status in [403, 500] {
        let server = Server::start(move |request| {
            let authorization = request.head.lines().find(|it| it.starts_with("authorization:"));
            match authorization {
                None => Reply::new(401, "").with("www-authenticate", "Basic realm=\"x\""),
                Some(line) => Reply::new(status, format!("denied: {line}")),
            }
        });
        let to = format!("oci://{}/git:1", server.authority());
        for program in [add(&world, &to), publish(&world, &plugin("look"), &to)] {
            let program = program.env("PALISADE_REGISTRY", server.authority());
            let program = program.env("PALISADE_REGISTRY_USER", "me");
            let ran = program.env("PALISADE_REGISTRY_PASSWORD", PASSWORD).run();
            assert!(ran.code != 0 && ran.stderr.contains(&status.to_string()), "{ran:?}");
            assert!(!ran.stderr.to_lowercase().contains("basic"), "{ran:?}");
        }
        assert!(server.requests().iter().any(|it| it.head.contains("authorization: basic")));
    }
}

#[test]
fn registry_that_leads_to_credentials_is_not_quoted() {
    let world = World::new();
    let answers: [fn(&str) -> Reply; 4] = [
        |_| Reply::new(307, "").with("location", &format!("https://localhost:1/{PASSWORD}")),
        |_| Reply::new(307, "").with("location", &format!("https://{PASSWORD}.invalid/")),
        |_| Reply::new(307, "").with("location", PASSWORD),
        |method| match method {
            "POST" => {
                Reply::new(202, "").with("location", &format!("http://localhost:1/{PASSWORD}"))
            }
            _ => Reply::new(
                200,
                format!(
                    "{{\"schemaVersion\": 2, \"layers\": [], \"config\": {{\"mediaType\": \
                     \"{PASSWORD}\", \"digest\": \"\", \"size\": 0}}}}"
                ),
            ),
        },
    ];
    for answer in answers {
        let server = Server::start(move |request| {
            match request.head.lines().any(|it| it.starts_with("authorization:")) {
                false => Reply::new(401, "").with("www-authenticate", "Basic realm=\"x\""),
                true if request.method == "HEAD" => Reply::new(404, ""),
                true => answer(&request.method),
            }
        });
        let to = format!("oci://{}/git:1", server.authority());
        let replace = publish(&world, &plugin("look"), &to).args(["--replace"]);
        for program in [add(&world, &to), publish(&world, &plugin("look"), &to), replace] {
            let program = program.env("PALISADE_REGISTRY", server.authority());
            let program = program.env("PALISADE_REGISTRY_USER", "me");
            let ran = program.env("PALISADE_REGISTRY_PASSWORD", PASSWORD).run();
            assert!(ran.code != 0 && !ran.stderr.is_empty(), "{ran:?}");
            assert!(!ran.stderr.contains(PASSWORD), "{ran:?}");
        }
        assert!(server.requests().iter().any(|it| it.head.contains("authorization: basic")));
    }
}

#[test]
fn server_behind_a_registry_gets_no_credentials_also_if_it_asks_for_them() {
    let world = World::new();
    for scheme in ["Basic realm=\"x\"", "Bearer realm=\"http://localhost:PORT/token\""] {
        let port = Arc::new(Mutex::new(String::new()));
        let own = port.clone();
        let storage = Server::start(move |_| {
            let challenge = scheme.replace("PORT", &own.lock().unwrap());
            Reply::new(401, "").with("www-authenticate", &challenge)
        });
        *port.lock().unwrap() = storage.port().to_string();
        let open = Registry::start();
        let _ = publish(&world, &plugin("look"), &open.at("git:1")).run().exits_with(0);
        let registry = Registry::leading_to(storage.authority());
        let content = std::mem::take(&mut *open.content.lock().unwrap());
        *registry.content.lock().unwrap() = content;
        for program in [
            add(&world, &registry.at("git:1")),
            publish(&world, &plugin("peek"), &registry.at("git:2")),
        ] {
            let program = program.env("PALISADE_REGISTRY", registry.server.authority());
            let program = program.env("PALISADE_REGISTRY_USER", "me");
            let ran = program.env("PALISADE_REGISTRY_PASSWORD", PASSWORD).run().exits_with(4);
            ran.stderr_contains(&["led to http://localhost:", "for the registry alone"]);
        }
        let seen = storage.requests();
        assert!(seen.len() >= 2, "{seen:?}");
        assert!(seen.iter().all(|it| !it.head.contains("authorization")), "{seen:?}");
        assert!(seen.iter().all(|it| !it.path.starts_with("/token")), "{seen:?}");
    }
}

#[test]
fn artifact_of_another_layout_is_refused_with_the_accepted_one() {
    let world = World::new();
    let registry = Registry::start();
    let to = registry.at("git:1");
    let _ = publish(&world, &plugin("look"), &to).run().exits_with(0);
    let text = {
        let content = registry.content.lock().unwrap();
        String::from_utf8(content.manifests["git:1"].clone()).unwrap()
    };
    for (from, into) in [
        ("vnd.wasm.config.v0+json", "vnd.oci.image.config.v1+json"),
        ("\"application/wasm\"", "\"application/vnd.oci.image.layer.v1.tar+gzip\""),
        ("\"schemaVersion\":2", "\"schemaVersion\":1"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let other = text.replace(from, into).into_bytes();
        registry.content.lock().unwrap().manifests.insert("git:1".to_owned(), other);
        add(&world, &to).run().exits_with(6).stderr_contains(&["another layout", "wkg oci push"]);
    }
    let large = vec![b' '; 300 << 10];
    registry.content.lock().unwrap().manifests.insert("git:1".to_owned(), large);
    add(&world, &to).run().exits_with(7).stderr_contains(&["more than"]);
    add(&world, &registry.at("git:2")).run().exits_with(3).stderr_contains(&["there is no"]);
    assert!(files(&world).is_empty());
}

#[test]
fn unwritable_words_about_installations_are_1() {
    let world = World::new();
    let registry = Registry::start();
    let to = registry.at("git:1");
    let path = file(&world, "git.wasm", &plugin("look"));
    let path = path.to_str().unwrap();
    for words in [
        &["publish", path, &to][..],
        &["add", &to, "--yes"],
        // The words about a plugin are written before it is asked about.
        &["remove", "git"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = program(&world, words).stdout(full).run_into();
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        ran.stderr_contains(&["error: cannot write the output"]);
        if words[0] == "add" {
            assert!(files(&world).is_empty(), "nobody has seen what would be approved");
            let _ = add(&world, &to).run().exits_with(0);
        }
    }
}
