//! The bounds of a server: one that floods, is silent, or offers too much ends alone.

use super::{approved, call, configure, program, serve, starts, text};
use palisade_tests::World;
use palisade_tests::api::{Api, until};
use palisade_tests::mcp::Client;
use palisade_tests::oracle::Peak;
use serde_json::json;

#[test]
fn flood_of_a_server_ends_its_call_and_no_other() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    let mut call = |tool: &str| call(&mut client, tool, "x");
    let flooded = call("scripted_flood");
    assert!(text(&flooded).contains("a message of more than 4 MiB"), "{flooded}");
    let junk = call("scripted_junk");
    assert!(text(&junk).contains("lines that are no messages"), "{junk}");
    assert_eq!(text(&call("scripted_echo")), "x");
    let calculated = client
        .request("tools/call", &json!({"name": "calculate", "arguments": {"expression": "6*7"}}));
    assert!(text(&calculated).contains("42"), "{calculated}");
    assert_eq!(starts(&world), 3);
}

#[test]
fn flood_of_notifications_ends_the_server_and_holds_no_memory() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    let call = |client: &mut Client, tool: &str| call(client, tool, "x");
    // The first call loads code that stays in memory.
    assert_eq!(text(&call(&mut client, "scripted_echo")), "x");
    let peak = Peak::of_process(client.process());
    assert_eq!(text(&call(&mut client, "scripted_note")), "noted");
    // The flood goes on without a call, until the server is stopped and started again.
    until("the flood is stopped", || {
        text(&call(&mut client, "scripted_echo")) == "x" && starts(&world) == 2
    });
    // The allocator keeps the pages of what was parsed for some seconds.
    assert!(peak.growth() < 128 << 20, "{} MiB", peak.growth() >> 20);
}

#[test]
fn waiting_calls_of_one_caller_leave_places_to_others() {
    let world = approved("plain", "");
    let api = Api::of(program(&world, &[]), &world.home(), &["--allow", "network"]);
    let wait = json!({"tool": "scripted_wait", "input": {}});
    // More calls than the server has places.
    for session in 0..10 {
        let session = format!("s{session}");
        api.session(&session);
        for _ in 0..4 {
            drop(api.client.begin_call(&session, &wait));
        }
    }
    let waiting = || world.read("waiting").unwrap_or_default().lines().count();
    until("most places are taken", || waiting() >= 16);
    let opened = api.operator.post("/sessions", &json!({"id": "other"}));
    assert_eq!(opened.status, 201, "{opened:?}");
    let echo = json!({"tool": "scripted_echo", "input": {"text": "x"}});
    let result = api.operator.call("other", &echo);
    assert_eq!(result["content"][0]["text"], "x", "{result}");
}

#[test]
fn progress_of_a_call_is_bounded_as_that_of_a_plugin() {
    let world = approved("plain", "");
    let events = world.outer().join("events.jsonl").display().to_string();
    let words = ["call", "scripted_steps", "{}", "--allow", "network", "--events", &events];
    assert_eq!(program(&world, &words).run().exits_with(0).stdout, "done");
    let told = std::fs::read_to_string(&events).unwrap();
    assert_eq!(told.matches("\"tool.progress\"").count(), 10_000, "of 12,000");
}

#[test]
fn requests_with_one_id_leave_the_connection_as_it_is() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    for _ in 0..20 {
        assert_eq!(text(&call(&mut client, "scripted_ask", "x")), "asked");
    }
    assert_eq!(starts(&world), 1);
}

#[test]
fn server_has_ended_before_it_is_started_again() {
    let world = approved("alone", "");
    let mut client = serve(&world);
    let mut call = |tool: &str| call(&mut client, tool, "x");
    assert_eq!(text(&call("scripted_echo")), "x");
    let garbled = call("scripted_garble");
    assert!(text(&garbled).contains("a message that is not accepted"), "{garbled}");
    // It refuses to start beside another instance of itself.
    assert_eq!(text(&call("scripted_echo")), "x");
    assert_eq!(starts(&world), 2);
}

#[test]
fn server_may_write_what_it_holds_before_it_ends() {
    let world = approved("slow", "");
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    assert_eq!(program(&world, &words).run().exits_with(0).stdout, "x");
    // Once for the approval, and once for the call; a line that it writes before does not end it.
    assert_eq!(world.read("kept").as_deref(), Some("kept\nkept\n"));
}

#[test]
fn server_that_does_not_end_is_killed() {
    let world = approved("stays", "");
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    let begun = std::time::Instant::now();
    assert_eq!(program(&world, &words).run().exits_with(0).stdout, "x");
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "it sleeps for 1,000 s");
}

#[test]
fn server_that_starts_late_serves_the_next_call() {
    let world = approved("late", "");
    let words = ["--allow", "network", "--timeout", "1500ms"];
    let mut client = Client::start_with(program(&world, &[]), &words).shake_hands(&json!({}));
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "scripted_echo").unwrap();
    let hints = ["openWorldHint", "idempotentHint"].map(|hint| echo["annotations"][hint] == true);
    assert_eq!(hints, [true, false], "nothing holds a server to its class");
    let mut call = || {
        let params = json!({"name": "scripted_echo", "arguments": {"text": "x"}});
        client.request("tools/call", &params)["result"]["isError"].clone()
    };
    assert_eq!(call(), true, "it takes two seconds to start");
    assert_eq!(call(), false);
    assert_eq!(starts(&world), 1);
}

#[test]
fn server_that_offers_too_much_is_refused() {
    for (mode, reason) in [("many", "more than 256 tools"), ("endless", "more than 64 pages")] {
        let world = World::new();
        configure(&world, mode, "");
        let words = ["mcp", "approve", "scripted", "--yes"];
        let ran = program(&world, &words).run().exits_with(5);
        assert!(ran.stderr.contains(reason), "{mode}: {}", ran.stderr);
        let listed = program(&world, &["list"]).run().exits_with(0);
        assert!(!listed.stdout.contains("scripted"), "{}", listed.stdout);
    }
}

#[test]
fn end_of_a_server_is_told_with_its_last_words() {
    let world = World::new();
    configure(&world, "ends", "");
    let ran = program(&world, &["mcp", "approve", "scripted", "--yes"]).run().exits_with(5);
    assert!(ran.stderr.contains("exit code 7"), "{}", ran.stderr);
    assert!(ran.stderr.contains("library"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("\u{1b}[31mlibrary"), "{:?}", ran.stderr);
}

#[test]
fn missing_program_is_told() {
    let world = World::new();
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    let table = "[mcp.servers.scripted]\ncommand = \"no-such-program-here\"\n";
    std::fs::write(folder.join("palisade.toml"), table).unwrap();
    let ran = program(&world, &["mcp", "approve", "scripted", "--yes"]).run().exits_with(5);
    assert!(ran.stderr.contains("no-such-program-here"), "{}", ran.stderr);
}

#[test]
fn silent_server_ends_with_its_call() {
    let world = approved("plain", "");
    let folder = world.home().join(".config/palisade/palisade.mcp");
    // The approval is bound to the arguments, so that it is moved to the silent server.
    let file = folder.join("scripted.json");
    let stored = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, stored.replace("plain", "silent")).unwrap();
    configure(&world, "silent", "");
    let words =
        ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network", "--timeout", "500ms"];
    let _ = program(&world, &words).run().exits_with(7);
    assert_eq!(starts(&world), 1);
}
