//! A server that is told to end takes no new calls, lets the running ones end, and ends in time.

use crate::served;
use palisade_tests::Program;
use palisade_tests::World;
use palisade_tests::api::{Api, Sender, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

/// Starts a command that waits until the file `go` is there.
fn begin_wait(api: &Api, world: &World) -> std::thread::JoinHandle<Value> {
    let command = "echo begun > begun; while [ ! -e go ]; do sleep 0.02; done; echo done";
    let call = json!({"tool": "shell", "id": "c1", "input": {"command": command}});
    let running = api.client.begin_call("s1", &call);
    world.wait_for("begun");
    running
}

/// Tells a server to end, and waits until it drains.
fn drain(api: &Api) {
    api.signal(Signal::TERM);
    let nobody = Sender::new(&api.endpoint.address);
    let status = || nobody.get("/readyz").message()["status"].clone();
    until("the server drains", || status() == "draining");
}

#[test]
fn running_call_ends_and_a_new_one_is_refused() {
    let world = World::new();
    let api = served(&world, &["--allow", "execute", "--drain", "60s"]);
    let running = begin_wait(&api, &world);
    drain(&api);
    let ready = api.client.get("/readyz").message();
    assert_eq!(ready["status"], "draining", "{ready}");
    let new = json!({"tool": "read_file", "input": {"path": "a"}});
    let refused = api.client.post("/sessions/s1/calls", &new);
    let code = refused.message()["code"].clone();
    assert_eq!((refused.status, code), (503, json!("draining")), "{refused:?}");
    world.file("go", "");
    let result = running.join().unwrap();
    assert_eq!(result["success"], true, "{result}");
    assert!(result["output"].as_str().unwrap().contains("done"), "{result}");
    let begun = Instant::now();
    let ran = api.endpoint.end();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    ran.stderr_contains(&["draining: no more calls are taken, and 1 request has 1m to end"]);
    assert!(ran.stderr.ends_with("\ndrained: all calls have ended\n"), "{ran:?}");
    let log = Program::new(&world).args(["log", "c1", "--json"]).run().exits_with(0).json();
    assert_eq!(log["state"], "succeeded", "the journal has the end: {log}");
}

#[test]
fn readers_of_events_are_told_before_the_server_ends() {
    let world = World::new();
    let api = served(&world, &["--allow", "execute", "--drain", "60s"]);
    let mut events = api.operator.events("/events?after=0");
    let opened = events.find(|event| event.name == "session.opened");
    let running = begin_wait(&api, &world);
    api.signal(Signal::TERM);
    let told = events.find(|event| event.name == "server.draining");
    assert_eq!((told.id.as_str(), &told.json()["seq"]), ("", &Value::Null), "{told:?}");
    // Events of the server itself begin with the keys of all events, in their order.
    for (event, session) in [(&opened, r#""s1""#), (&told, "null")] {
        let data = event.json();
        let (time, name) = (data["time"].as_str().unwrap(), &event.name);
        let head = format!(r#"{{"v":1,"seq":null,"time":"{time}","event":"{name}","#)
            + &format!(r#""session_id":{session},"turn_id":null,"tool_use_id":null,"#)
            + r#""tool_name":null,"side_effects":null"#;
        assert!(event.data.starts_with(&head), "{event:?}");
    }
    world.file("go", "");
    assert_eq!(running.join().unwrap()["success"], true);
}

#[test]
fn call_that_does_not_end_is_cancelled_when_the_time_is_up() {
    let world = World::new();
    let api = served(&world, &["--allow", "execute", "--drain", "500ms"]);
    let running = begin_wait(&api, &world);
    api.signal(Signal::TERM);
    assert_eq!(running.join().unwrap()["error"]["class"], "cancelled");
    let ran = api.endpoint.end();
    assert!(ran.stderr.ends_with("\ndrained: 1 request was cancelled after 500ms\n"), "{ran:?}");
    let log = Program::new(&world).args(["log", "c1", "--json"]).run().exits_with(0).json();
    assert_eq!(log["error_class"], "cancelled", "{log}");
}

#[test]
fn second_signal_ends_it_at_once() {
    let world = World::new();
    let api = served(&world, &["--allow", "execute", "--drain", "600s"]);
    let running = begin_wait(&api, &world);
    drain(&api);
    let begun = Instant::now();
    api.signal(Signal::TERM);
    let ran = api.endpoint.end();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    ran.stderr_contains(&["another signal cancels it at once"]);
    let said = "\ndrained: 1 request was cancelled by another signal\n";
    assert!(ran.stderr.ends_with(said), "{ran:?}");
    // Its caller has the result, unless the connection ended before.
    if let Ok(result) = running.join() {
        assert_eq!(result["error"]["class"], "cancelled", "{result}");
    }
    let log = Program::new(&world).args(["log", "c1", "--json"]).run().exits_with(0).json();
    assert_eq!(log["error_class"], "cancelled", "{log}");
}

#[test]
fn service_manager_is_told_of_readiness_and_of_the_end() {
    let world = World::new();
    let path = world.outer().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let told = || {
        let mut bytes = [0; 256];
        let count = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    let program = Program::new(&world).env("NOTIFY_SOCKET", &path);
    let api = Api::of(program, &world.home(), &[]);
    assert_eq!(told(), "READY=1");
    api.signal(Signal::TERM);
    assert_eq!(told(), "STOPPING=1");
    let ran = api.endpoint.end();
    ran.stderr_contains(&["draining: no more calls are taken, and none runs\ndrained: all"]);
}
