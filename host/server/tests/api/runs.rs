//! The records of an earlier run of the server are the operator's.

use super::world::{CLIENT, OPERATOR, World};
use palisade_server::Attached;
use palisade_server::journal::{Journal, JournalError, JournalSettings};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

/// Begins a run, as soon as nothing of an earlier one uses the journal.
async fn run(path: &Path) -> World {
    let open = async {
        loop {
            match Journal::open(path, JournalSettings::default()) {
                Err(JournalError::InUse { .. }) => tokio::task::yield_now().await,
                opened => return opened.unwrap(),
            }
        }
    };
    let journal = tokio::time::timeout(Duration::from_secs(60), open).await.unwrap();
    World::on(journal, Attached::WhileWatched, |host| host, |settings| settings)
}

async fn calculate(world: &World, id: &str) {
    let call = json!({"id": id, "tool": "calculate", "input": {"expression": "1"}});
    assert_eq!(world.post(&CLIENT, "/sessions/s1/calls", call).await.status, 200);
}

#[tokio::test]
async fn client_sees_nothing_of_an_earlier_run() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = directory.path().join("journal.db");
    let first = run(&path).await;
    first.session(&CLIENT, "s1").await;
    calculate(&first, "before").await;
    let mut events = first.events(&CLIENT, "/events?after=0").await;
    assert_eq!(events.until("tool.completed").await.data["tool_use_id"], "before");
    let place = events.last.clone().unwrap();
    first.server.journal().clone().close();
    drop((events, first));

    let second = run(&path).await;
    for path in ["/sessions/s1", "/sessions/s1/events"] {
        let missing = second.get(&CLIENT, path).await.problem();
        assert_eq!(missing, (404, "session_not_found".to_owned()), "{path}");
    }
    assert_eq!(second.get(&OPERATOR, "/sessions/s1").await.status, 200, "the operator's");
    second.session(&CLIENT, "s1").await;
    calculate(&second, "after").await;
    for after in ["0", "1"] {
        for path in ["/events", "/sessions/s1/events"] {
            let mut events = second.events_after(&CLIENT, path, Some(after)).await;
            let gap = events.next().await.unwrap();
            assert_eq!(gap.name, "journal.gap", "{path} after {after}");
            let oldest: u64 = gap.data["oldest"].as_str().unwrap().parse().unwrap();
            assert!(oldest > place.parse().unwrap(), "{oldest}");
            assert_eq!(events.until("tool.completed").await.data["tool_use_id"], "after");
        }
    }
    // A client that saw all events of the earlier run misses nothing.
    let mut events = second.events_after(&CLIENT, "/events", Some(&place)).await;
    assert_eq!(events.next().await.unwrap().name, "session.opened");
    assert_eq!(events.until("tool.completed").await.data["tool_use_id"], "after");
    let mut all = second.events_after(&OPERATOR, "/events", Some("0")).await;
    assert_eq!(all.until("tool.completed").await.data["tool_use_id"], "before");
    assert_eq!(all.until("tool.completed").await.data["tool_use_id"], "after");
}
