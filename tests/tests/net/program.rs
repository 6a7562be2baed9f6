//! `palisade grant` and what the other subcommands show of grants.

use super::server::Server;
use palisade_tests::guest::NET_FETCH;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use serde_json::json;

/// Returns the program with the guest as its plugin.
fn program<'w>(world: &'w World, args: &[&str]) -> Program<'w> {
    Program::new(world)
        .args(["--no-builtin".into(), "--plugins".into(), NET_FETCH.directory().into_os_string()])
        .args(args.iter().copied())
}

#[test]
fn granted_fetch_works_until_it_is_revoked() {
    let (world, server) = (World::new(), Server::echo());
    let rule = format!("GET http://{} private", server.authority());
    let input = json!({"authority": server.authority()}).to_string();
    program(&world, &["call", "send_read", &input])
        .run()
        .exits_with(3)
        .stderr_contains(&["palisade grant"]);
    let _ = program(&world, &["grant", "net_fetch", "net", &rule]).run().exits_with(0);
    let _ = program(&world, &["call", "send_read", &input]).run().exits_with(0);
    let shown = program(&world, &["inspect", "send_read"]).run().exits_with(0);
    assert!(shown.stdout.contains(&rule), "{}", shown.stdout);
    let listed = program(&world, &["grant", "list"]).run().exits_with(0);
    assert!(listed.stdout.contains(&format!("net {rule}")), "{}", listed.stdout);
    let _ = program(&world, &["grant", "net_fetch", "revoke"]).run().exits_with(0);
    let _ = program(&world, &["call", "send_read", &input]).run().exits_with(3);
    let _ = program(&world, &["grant", "net_fetch", "revoke"]).run().exits_with(3);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn name_of_several_files_gets_no_grant() {
    let world = World::new();
    let folders = ["one", "other"].map(|name| world.outer().join(name));
    for (folder, tool) in folders.iter().zip(["a", "b"]) {
        std::fs::create_dir(folder).unwrap();
        let file = folder.join("words.wasm");
        std::fs::write(file, Wat::new(Told::new(tool)).build()).unwrap();
    }
    let run = |words: &[&str]| {
        let folders = folders.iter().flat_map(|it| ["--plugins", it.to_str().unwrap()]);
        Program::new(&world).args(["--no-builtin"]).args(folders).args(words.to_vec()).run()
    };
    let ran = run(&["grant", "words", "env", "GREETING"]).exits_with(2);
    ran.stderr_contains(&["several files are a plugin `words`", "give the path of one"]);
    let one = folders[0].join("words.wasm");
    let _ = run(&["grant", one.to_str().unwrap(), "env", "GREETING"]).exits_with(0);
}

#[test]
fn requests_that_are_not_sent_hold_little_memory() {
    use palisade_tests::mcp::Client;
    let world = World::new();
    let grant = ["grant", "net_fetch", "net", "GET https://example.org"];
    let _ = program(&world, &grant).run().exits_with(0);
    let mut client = Client::start(program(&world, &[])).shake_hands(&json!({}));
    let mut keep = |requests: u32, length: u32| {
        let input = json!({"requests": requests, "length": length, "header": 16_000});
        let answer = client.request("tools/call", &json!({"name": "keep", "arguments": input}));
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        client.memory_kib("VmHWM:")
    };
    let before = keep(1, 16_000);
    let grown = [4_000_000, 60_000, 16_000].map(|length| keep(100, length) - before);
    // The guest's own copies of a part of 4 MB take most of it.
    assert!(grown.iter().all(|kib| *kib < 48 << 10), "{grown:?} KiB");
}

#[test]
fn secret_of_the_environment_is_shown_by_no_subcommand() {
    let (world, server) = (World::new(), Server::echo());
    let rule = format!("GET http://{} private", server.authority());
    let planted = super::secrets::PLANTED;
    let run = |args: &[&str]| program(&world, args).env("PLANTED", planted).run();
    let _ = run(&["grant", "net_fetch", "net", &rule]).exits_with(0);
    let secret =
        ["grant", "net_fetch", "secret", "PLANTED", "--for", "localhost", "--header", "x-key"];
    let _ = run(&secret).exits_with(0);
    let input = json!({"authority": server.authority()}).to_string();
    let events = world.outer().join("events.jsonl");
    let call = ["call", "--json", "--events", events.to_str().unwrap(), "send_read", &input];
    let runs = [
        run(&call).exits_with(0),
        run(&["inspect", "--json", "send_read"]).exits_with(0),
        run(&["grant", "list", "--json"]).exits_with(0),
        run(&["config", "show"]).exits_with(0),
        run(&["doctor"]),
    ];
    let file = std::fs::read_to_string(world.home().join(".config/palisade/grants.toml")).unwrap();
    let events = std::fs::read_to_string(events).unwrap();
    assert!(file.contains("PLANTED") && !file.contains(planted), "{file}");
    assert!(!events.contains(planted), "{events}");
    for ran in runs {
        assert!(!ran.stdout.contains(planted) && !ran.stderr.contains(planted), "{ran:?}");
    }
    assert!(server.requests()[0].contains(&format!("x-key: {planted}")));
}

#[test]
fn file_of_grants_is_private_and_outside_of_the_workspace() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let _ = program(&world, &["grant", "net_fetch", "env", "LANG"]).run().exits_with(0);
    let file = world.home().join(".config/palisade/grants.toml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let inside = world.root().join("palisade.toml");
    std::fs::write(&inside, "").unwrap();
    let config = ["--config", inside.to_str().unwrap(), "grant", "net_fetch", "env", "LANG"];
    program(&world, &config).run().exits_with(2).stderr_contains(&["workspace"]);
    assert!(!world.root().join("grants.toml").exists());
}

#[test]
fn invalid_grants_are_refused_with_what_is_accepted() {
    let world = World::new();
    for (args, says) in [
        (vec!["net_fetch", "net", "GET https://*"], "`*.example.org`"),
        (vec!["net_fetch", "net", "https://a.org"], "METHODS URL"),
        (vec!["net_fetch", "env", "A B"], "environment variable"),
        (vec!["net_fetch", "secret", "KEY", "--for", "a.org", "--header", "host"], "authorization"),
        (vec!["net", "GET https://a.org"], "name the plugin first"),
    ] {
        let args: Vec<&str> = ["grant"].into_iter().chain(args).collect();
        program(&world, &args).run().exits_with(2).stderr_contains(&[says]);
    }
    let _ = program(&world, &["grant", "unknown", "env", "LANG"]).run().exits_with(3);
    std::fs::create_dir_all(world.home().join(".config/palisade")).unwrap();
    std::fs::write(world.home().join(".config/palisade/grants.toml"), "[[grants]]").unwrap();
    program(&world, &["list"]).run().exits_with(2).stderr_contains(&["grants.toml"]);
}

#[test]
fn grants_that_others_or_tools_can_change_are_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let (world, server) = (World::new(), Server::echo());
    let rule = format!("GET http://{} private", server.authority());
    let input = json!({"authority": server.authority()}).to_string();
    let _ = program(&world, &["grant", "net_fetch", "net", &rule]).run().exits_with(0);
    let file = world.home().join(".config/palisade/grants.toml");
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o666);
    let refused = program(&world, &["call", "send_read", &input]).run().exits_with(2);
    let _ = refused.stderr_contains(&["others can change it"]);
    mode(0o600);
    let _ = program(&world, &["call", "send_read", &input]).run().exits_with(0);
    // A workspace that contains the file gives tools of class execute a way to it.
    let inside = world.root().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::copy(&file, inside.join("grants.toml")).unwrap();
    std::fs::write(inside.join("palisade.toml"), "").unwrap();
    let settings = inside.join("palisade.toml").display().to_string();
    let args = ["--config", &settings, "call", "send_read", &input];
    let refused = program(&world, &args).run().exits_with(3);
    let _ = refused.stderr_contains(&["are not used: they are in the workspace"]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn model_reads_no_advice_about_grants() {
    use palisade_tests::mcp::Client;
    let (world, server) = (World::new(), Server::echo());
    let rule = "GET https://api.example.org";
    let _ = program(&world, &["grant", "net_fetch", "net", rule]).run().exits_with(0);
    let arguments = json!({"authority": server.authority()});
    let refused = format!("no grant allows GET http://{}", server.authority());
    let advice = format!("palisade grant PLUGIN net \"GET http://{}\"", server.authority());
    let call = program(&world, &["call", "send_read", &arguments.to_string()]).run().exits_with(5);
    let _ = call.stderr_contains(&[&refused, &advice]);
    let function = json!({"name": "send_read", "arguments": arguments.to_string()});
    let one = json!({"id": "one", "type": "function", "function": function});
    let reply = json!({"choices": [{"message": {"tool_calls": [one]}}]}).to_string();
    let answered = program(&world, &["dispatch", "--from", "openai"]).stdin(reply).run();
    let answered = answered.exits_with(0);
    let _ = answered.stderr_contains(&[&advice]);
    assert!(answered.stdout.contains("no grant allows GET"), "{answered:?}");
    assert!(!answered.stdout.contains("palisade grant"), "{answered:?}");
    let mut client = Client::start(program(&world, &[])).shake_hands(&json!({}));
    let call = json!({"name": "send_read", "arguments": arguments});
    let answer = client.request("tools/call", &call).to_string();
    assert!(answer.contains(&refused) && !answer.contains("palisade grant"), "{answer}");
    let (ran, _) = client.end();
    let _ = ran.stderr_contains(&[&advice]);
    assert!(server.requests().is_empty());
}

#[test]
fn list_shows_the_grants_of_the_named_plugin() {
    let world = World::new();
    let run = |args: &[&str]| Program::new(&world).args(args.to_vec()).run().exits_with(0);
    let useful = run(&["grant", "web", "net", "GET https://docs.rs"]);
    assert!(!useful.stderr.contains("changes nothing"), "{useful:?}");
    let _ = run(&["grant", "calculate", "env", "LANG"]);
    for words in [&["grant", "list", "web"][..], &["grant", "web", "list"]] {
        let listed = run(words).stdout;
        assert!(listed.contains("docs.rs") && !listed.contains("LANG"), "{listed}");
    }
    let _ = run(&["grant", "list", "files"]).stderr_contains(&["`files` has no grant"]);
}

#[test]
fn grants_are_those_of_the_bytes_under_each_name() {
    let (world, server) = (World::new(), Server::echo());
    let rule = format!("GET http://{} private", server.authority());
    let copy = |name: &str| {
        let file = world.plugins().join(format!("{name}.wasm"));
        std::fs::copy(NET_FETCH.file(), &file).unwrap();
        file
    };
    let first = copy("first");
    let run = |args: &[&str]| {
        let program = Program::new(&world).args(args.to_vec());
        program.args(["--plugins"]).args([world.plugins()]).run()
    };
    let _ = run(&["grant", "first", "net", &rule]).exits_with(0);
    std::fs::remove_file(first).unwrap();
    let _ = copy("second");
    let input = json!({"authority": server.authority()}).to_string();
    let _ = run(&["call", "send_read", &input]).exits_with(0);
    let listed = run(&["grant", "second", "list"]).exits_with(0).stdout;
    assert!(listed.contains(&rule) && listed.contains("no approved plugin has them"), "{listed}");
    let _ = run(&["grant", "second", "revoke"]).exits_with(0);
    let _ = run(&["call", "send_read", &input]).exits_with(3);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn header_of_a_host_carries_one_secret() {
    let world = World::new();
    let secret = |name: &str, header: &str| {
        let words = ["grant", "net_fetch", "secret", name, "--for", "a.org", "--header", header];
        program(&world, &words).run()
    };
    let _ = secret("ONE", "x-key").exits_with(0);
    secret("TWO", "x-key").exits_with(2).stderr_contains(&["carries one secret", "secret ONE"]);
    let _ = secret("TWO", "x-other").exits_with(0);
}

#[test]
fn secret_is_no_variable_as_well() {
    let world = World::new();
    let secret = ["grant", "net_fetch", "secret", "KEY", "--for", "a.org", "--header", "x-key"];
    let variable = ["grant", "net_fetch", "env", "KEY"];
    for (first, second) in [(&secret[..], &variable[..]), (&variable, &secret)] {
        let _ = program(&world, first).run().exits_with(0);
        let refused = program(&world, second).run().exits_with(2);
        let other = if first[2] == "env" { "env KEY" } else { "secret KEY for a.org as x-key" };
        let advice = format!("`palisade grant net_fetch revoke \"{other}\"` takes the other grant");
        let _ = refused.stderr_contains(&[&advice]);
        let _ = program(&world, &["grant", "net_fetch", "revoke", other]).run().exits_with(0);
    }
}

#[test]
fn grant_without_an_effect_is_told() {
    let world = World::new();
    for (args, missing) in [
        (["calculate", "net", "GET https://docs.rs"], "wasi:http/outgoing-handler"),
        (["files", "tools", "read_file"], "palisade:tool/tools"),
        (["code", "tools", "raed_*"], "no tool here matches `raed_*`"),
    ] {
        let args = ["grant"].into_iter().chain(args);
        let granted = Program::new(&world).args(args).run().exits_with(0);
        let _ = granted.stderr_contains(&["changes nothing as yet", missing]);
    }
    let secret = ["grant", "web", "secret", "KEY", "--for", "docs.rs", "--header", "x-key"];
    let granted = Program::new(&world).args(secret).run().exits_with(0);
    let _ = granted.stderr_contains(&["no network rule of the plugin leads to docs.rs"]);
    let rule = ["grant", "web", "net", "GET https://docs.rs"];
    let _ = Program::new(&world).args(rule).run().exits_with(0);
    for useful in [&secret[..], &["grant", "code", "tools", "read_*"]] {
        let granted = Program::new(&world).args(useful.to_vec()).run().exits_with(0);
        assert!(!granted.stderr.contains("changes nothing as yet"), "{granted:?}");
    }
}

#[test]
fn rejected_plugin_is_inspected_by_its_name() {
    let world = World::new();
    let shown = program(&world, &["inspect", "net_fetch"]).run().exits_with(0);
    let _ = shown.stderr_contains(&["`net_fetch` is rejected", "wasi:http"]);
    assert!(shown.stdout.contains("send_read") && shown.stdout.contains("send_network"));
}

#[test]
fn plugin_without_a_grant_is_looked_at_and_approved() {
    let world = World::new();
    let file = NET_FETCH.file();
    let shown = program(&world, &["inspect", file.to_str().unwrap()]).run().exits_with(0);
    assert!(shown.stdout.contains("here every one is refused"), "{}", shown.stdout);
    let shown = program(&world, &["approve", "net_fetch", "--yes"]).run().exits_with(0);
    assert!(shown.stdout.contains("wasi:http/outgoing-handler"), "{}", shown.stdout);
    let input = json!({"authority": "localhost:1"}).to_string();
    program(&world, &["call", "send_read", &input])
        .run()
        .exits_with(3)
        .stderr_contains(&["palisade grant"]);
}
