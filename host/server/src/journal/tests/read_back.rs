//! Each record is read back as it was written, through each filter.

use super::*;
use crate::journal::{
    CallFilter, CallRow, ConfirmationFilter, ConfirmationRequested, ConfirmationResolved, Page,
    PluginSeen, SessionFilter,
};

fn page(limit: usize) -> Page {
    Page { after: None, limit }
}

fn ids(calls: &[CallRow]) -> Vec<&str> {
    calls.iter().map(|call| call.id.as_str()).collect()
}

#[tokio::test]
async fn call_is_read_back_with_everything_about_it() {
    let journal = temporary();
    journal.record(session("s", Some("me")));
    let key = journal.next_call();
    let call =
        CallFacts { session_id: Some("s".into()), turn_id: Some("turn".into()), ..facts(key, "c") };
    let about = NewEvent {
        session_id: Some("s".into()),
        call_id: Some("c".into()),
        call: Some(key),
        ..new_event("{}")
    };
    journal.record(started(call.clone()));
    journal.record(Record::Event(about));
    journal.record(ended(call, Outcome::Succeeded));
    journal.flush().await;
    let page = journal.call(CallRef::Key(key)).await.unwrap().unwrap();
    let row = &page.call;
    assert_eq!((row.key, row.id.as_str(), row.tool.as_str()), (key, "c", "write_file"));
    assert_eq!((row.session_id.as_deref(), row.client.as_deref()), (Some("s"), Some("me")));
    assert_eq!((row.turn_id.as_deref(), row.class.as_deref()), (Some("turn"), Some("write")));
    assert_eq!((row.plugin.as_deref(), row.digest.as_deref()), (Some("files"), Some("sha256:00")));
    assert_eq!(
        (row.state, row.duration),
        (CallState::Succeeded, Some(Duration::from_micros(1_500)))
    );
    assert!(row.created <= row.started.unwrap() && row.started <= row.ended);
    assert_eq!(row.input_start.as_deref(), Some(r#"{"path":"Note.txt"}"#));
    assert_eq!(page.input, Some(text(r#"{"path":"Note.txt"}"#)));
    assert_eq!(page.output, Some(text("done")));
    assert_eq!(page.files_modified, [serde_json::json!("Note.txt")]);
    assert_eq!(page.used, Some(Used { bytes_written: 7, ..Used::default() }));
    assert_eq!((page.events.len(), page.events[0].client.as_deref()), (1, Some("me")));
}

#[tokio::test]
async fn digest_of_a_text_that_is_not_kept_is_read_back() {
    let journal = temporary();
    let key = journal.next_call();
    let digest = Body { text: None, length: 70_000, digest: Some("sha256:ab".into()) };
    let start = CallStarted { call: facts(key, "c"), input: digest.clone(), at: now() };
    journal.commit(Record::CallStarted(Box::new(start))).await.unwrap();
    let page = journal.call(CallRef::Key(key)).await.unwrap().unwrap();
    assert_eq!((page.input, page.output, page.used), (Some(digest), None, None));
}

#[tokio::test]
async fn refused_call_has_a_row_without_a_start() {
    let journal = temporary();
    let key = journal.next_call();
    journal.commit(ended(facts(key, "c"), failed("permission_denied"))).await.unwrap();
    let row = journal.call(CallRef::Key(key)).await.unwrap().unwrap().call;
    assert_eq!((row.state, row.started), (CallState::Failed, None));
    assert_eq!(row.error_class.as_deref(), Some("permission_denied"));
    assert_eq!(row.message.as_deref(), Some("why"));
}

#[tokio::test]
async fn late_start_does_not_revive_an_ended_call() {
    let journal = temporary();
    let key = journal.next_call();
    journal.record(ended(facts(key, "c"), failed("cancelled")));
    journal.commit(started(facts(key, "c"))).await.unwrap();
    assert_eq!(state(&journal, key).await, Some(CallState::Failed));
}

#[tokio::test]
async fn call_waits_from_its_question_to_its_start() {
    let journal = temporary();
    let key = journal.next_call();
    let question = ConfirmationRequested {
        call: facts(key, "c"),
        request_id: "cr_1".into(),
        input: Some(text(r#"{"path":"a"}"#)),
        input_summary: "a".into(),
        projected_modifications: r#"["a","b"]"#.into(),
        at: now(),
        expires: now(),
    };
    journal.commit(Record::ConfirmationRequested(Box::new(question))).await.unwrap();
    assert_eq!(state(&journal, key).await, Some(CallState::Waiting));
    let settled = ConfirmationResolved {
        request_id: "cr_1".into(),
        resolution: "allow",
        answered_by: Some("operator".into()),
        at: now(),
    };
    journal.record(Record::ConfirmationResolved(settled.clone()));
    // The first resolution counts.
    journal.record(Record::ConfirmationResolved(ConfirmationResolved {
        resolution: "deny",
        ..settled
    }));
    journal.commit(started(facts(key, "c"))).await.unwrap();
    let call = journal.call(CallRef::Key(key)).await.unwrap().unwrap();
    assert_eq!(call.call.state, CallState::Running);
    let listed = journal.confirmations(&ConfirmationFilter::default(), page(9)).await.unwrap();
    assert_eq!(call.confirmations, listed.rows);
    let row = &listed.rows[0];
    assert_eq!((row.request_id.as_str(), row.call, row.call_id.as_str()), ("cr_1", key, "c"));
    assert_eq!(row.projected_modifications, ["a", "b"]);
    assert_eq!(
        (row.resolution.as_deref(), row.answered_by.as_deref()),
        (Some("allow"), Some("operator"))
    );
    let only = |resolution: &str| ConfirmationFilter {
        resolution: Some(resolution.into()),
        ..ConfirmationFilter::default()
    };
    for (id, found) in [("cr_1", 1), ("cr_2", 0)] {
        let one =
            ConfirmationFilter { request_id: Some(id.into()), ..ConfirmationFilter::default() };
        assert_eq!(journal.confirmations(&one, page(9)).await.unwrap().rows.len(), found);
    }
    assert_eq!(journal.confirmations(&only("allow"), page(9)).await.unwrap().rows.len(), 1);
    assert_eq!(journal.confirmations(&only("deny"), page(9)).await.unwrap().rows.len(), 0);
}

#[tokio::test]
async fn sessions_and_plugins_are_read_back() {
    let journal = temporary();
    journal.record(session("a", Some("me")));
    journal.record(session("b", None));
    let call = CallFacts { session_id: Some("a".into()), ..facts(journal.next_call(), "c") };
    journal.record(started(call));
    journal.record(Record::SessionClosed { id: "a".into(), at: now() });
    let seen = PluginSeen {
        name: "files".into(),
        digest: "sha256:00".into(),
        tools: vec!["read_file".into()],
        at: now(),
    };
    journal.record(Record::PluginSeen(seen.clone()));
    let later = Timestamp::from_micros(seen.at.micros() + 1);
    journal.record(Record::PluginSeen(PluginSeen { at: later, ..seen }));
    journal.flush().await;
    let all = journal.sessions(&SessionFilter::default(), page(9)).await.unwrap();
    assert_eq!(all.rows.iter().map(|row| &*row.id).collect::<Vec<_>>(), ["b", "a"]);
    let a = journal.session("a").await.unwrap().unwrap();
    assert!(a.closed.is_some() && a.calls == 1 && a.last_call.is_some());
    assert_eq!((a.client.as_deref(), a.workspace.as_deref()), (Some("me"), Some("/project")));
    let mine = SessionFilter { client: Some("me".into()) };
    assert_eq!(journal.sessions(&mine, page(9)).await.unwrap().rows, [a]);
    assert_eq!(journal.session("nobody").await.unwrap(), None);
    let plugins = journal.plugins(page(9)).await.unwrap().rows;
    assert_eq!(
        (plugins.len(), plugins[0].tools.as_slice()),
        (1, ["read_file".to_owned()].as_slice())
    );
    assert!(plugins[0].first_seen < plugins[0].last_seen);
}

#[tokio::test]
async fn reused_session_id_shows_nothing_of_the_earlier_client() {
    let journal = temporary();
    let about = || Record::Event(NewEvent { session_id: Some("s".into()), ..new_event("{}") });
    let call = |key| CallFacts { session_id: Some("s".into()), ..facts(key, "c") };
    let (first, second) = (journal.next_call(), journal.next_call());
    for (client, key) in [("first", first), ("second", second)] {
        journal.record(session("s", Some(client)));
        journal.record(about());
        journal.record(started(call(key)));
    }
    journal.flush().await;
    let mine = |client: &str| EventFilter {
        client: Some(client.into()),
        session_id: Some("s".into()),
        call: None,
    };
    assert_eq!(read_all(&journal, &mine("first")).await.len(), 1);
    assert_eq!(read_all(&journal, &mine("second")).await.len(), 1);
    assert_eq!(read_all(&journal, &mine("third")).await.len(), 0);
    let of = |client: Option<&str>| CallRef::Id { id: "c".into(), client: client.map(Into::into) };
    for (client, expected) in [(None, second), (Some("first"), first), (Some("second"), second)] {
        assert_eq!(journal.call(of(client)).await.unwrap().unwrap().call.key, expected);
    }
    assert_eq!(journal.call(of(Some("third"))).await.unwrap(), None);
}

/// Ten calls: every other of another tool, every third failed.
async fn ten_calls(journal: &Journal) {
    let begin = now();
    for number in 0..10_u32 {
        let tool = if number % 2 == 0 { "write_file" } else { "Search_100%" };
        let key = journal.next_call();
        let call = CallFacts { tool: tool.into(), ..facts(key, &number.to_string()) };
        let input = text(r#"{"path":"Note.txt"}"#);
        let at = Timestamp::from_micros(begin.micros() + i64::from(number));
        let start = CallStarted { call: call.clone(), input, at };
        journal.record(Record::CallStarted(Box::new(start)));
        let outcome = if number % 3 == 0 { failed("timeout") } else { Outcome::Succeeded };
        if number < 9 {
            journal.record(ended(call, outcome));
        }
    }
    journal.flush().await;
}

#[tokio::test]
async fn each_filter_selects_its_calls() {
    let journal = temporary();
    ten_calls(&journal).await;
    let list = async |filter: CallFilter| {
        let rows = journal.calls(&filter, page(99)).await.unwrap().rows;
        ids(&rows).join(" ")
    };
    let all = CallFilter::default;
    assert_eq!(list(all()).await, "9 8 7 6 5 4 3 2 1 0");
    assert_eq!(list(CallFilter { tool: Some("write_file".into()), ..all() }).await, "8 6 4 2 0");
    assert_eq!(list(CallFilter { state: Some(CallState::Running), ..all() }).await, "9");
    assert_eq!(list(CallFilter { state: Some(CallState::Failed), ..all() }).await, "6 3 0");
    assert_eq!(list(CallFilter { error_class: Some("timeout".into()), ..all() }).await, "6 3 0");
    assert_eq!(list(CallFilter { class: Some("read".into()), ..all() }).await, "");
    let both = CallFilter {
        tool: Some("write_file".into()),
        state: Some(CallState::Failed),
        class: Some("write".into()),
        ..all()
    };
    assert_eq!(list(both).await, "6 0");
    let found = journal.calls(&all(), page(99)).await.unwrap().rows;
    let (since, until) = (Some(found[6].created), Some(found[2].created));
    assert_eq!(list(CallFilter { since, until, ..all() }).await, "6 5 4 3");
    let future = Some(Timestamp::from_micros(i64::MAX));
    assert_eq!(list(CallFilter { since: future, ..all() }).await, "");
    assert_eq!(list(CallFilter { until: Some(Timestamp::default()), ..all() }).await, "");
}

#[tokio::test]
async fn text_is_found_in_names_and_texts_and_is_no_pattern() {
    let journal = temporary();
    ten_calls(&journal).await;
    let call =
        CallFacts { session_id: Some("Night".into()), ..facts(journal.next_call(), "Odd-1") };
    let Record::CallEnded(mut end) = ended(call, failed("timeout")) else {
        unreachable!("`ended` makes an end");
    };
    end.outcome = Outcome::Failed { class: "timeout", message: "It took too Long".into() };
    end.output = text(&format!("{}Beyond", "x".repeat(4_095)));
    journal.commit(Record::CallEnded(end)).await.unwrap();
    let all = CallFilter { tool: None, ..CallFilter::default() };
    let found = async |text: &str| {
        let filter = CallFilter { text: Some(text.into()), ..all.clone() };
        let rows = journal.calls(&filter, page(99)).await.unwrap().rows;
        for row in journal.calls(&all, page(99)).await.unwrap().rows {
            let call = journal.call(CallRef::Key(row.key)).await.unwrap().unwrap();
            assert_eq!(filter.selects(&call), rows.contains(&row), "{text}: {row:?}");
        }
        rows.len()
    };
    assert_eq!(found("SEARCH").await, 5);
    assert_eq!(found("note.TXT").await, 10);
    assert_eq!(found("100%").await, 5);
    assert_eq!(found("DONE").await, 9, "in the output");
    for one in ["too long", "odd-1", "NIGHT", "xxB"] {
        assert_eq!(found(one).await, 1, "{one}");
    }
    for none in ["no such text", "s_arch", "%o%", "' OR 1 = 1 --", "xxBe"] {
        assert_eq!(found(none).await, 0, "{none}");
    }
}

#[tokio::test]
async fn pages_have_each_call_once_while_others_arrive() {
    let journal = temporary();
    ten_calls(&journal).await;
    let (mut seen, mut next) = (Vec::new(), None);
    loop {
        let page = Page { after: next, limit: 3 };
        let listing = journal.calls(&CallFilter::default(), page).await.unwrap();
        seen.extend(listing.rows.iter().map(|call| call.id.clone()));
        journal.commit(started(facts(journal.next_call(), "late"))).await.unwrap();
        next = listing.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(seen.join(" "), "9 8 7 6 5 4 3 2 1 0");
}

#[tokio::test]
async fn page_looks_at_a_bounded_number_of_rows_and_says_where_to_go_on() {
    let journal = temporary();
    let rare = CallFacts { tool: "rare".into(), ..facts(journal.next_call(), "rare") };
    journal.record(started(rare));
    for _ in 0..5_000 {
        journal.record(started(facts(journal.next_call(), "c")));
    }
    journal.flush().await;
    let filter = CallFilter { text: Some("rare".into()), ..CallFilter::default() };
    let first = journal.calls(&filter, page(9)).await.unwrap();
    assert!(first.rows.is_empty() && first.next.is_some());
    let second = journal.calls(&filter, Page { after: first.next, limit: 9 }).await.unwrap();
    assert_eq!((ids(&second.rows), second.next), (vec!["rare"], None));
    let filter = CallFilter { tool: Some("rare".into()), ..CallFilter::default() };
    let found = journal.calls(&filter, page(9)).await.unwrap();
    assert_eq!((ids(&found.rows), found.next), (vec!["rare"], None), "an index leads there");
}

#[tokio::test]
async fn summary_counts_outcomes_and_measures_run_times() {
    let journal = temporary();
    ten_calls(&journal).await;
    journal
        .commit(ended(facts(journal.next_call(), "refused"), failed("not_found")))
        .await
        .unwrap();
    let summary = journal.summary(Timestamp::default()).await.unwrap();
    assert_eq!(summary.since, Timestamp::default());
    let [search, write] = summary.tools.as_slice() else { panic!("{summary:?}") };
    assert_eq!((search.tool.as_str(), write.tool.as_str()), ("Search_100%", "write_file"));
    let of = |state| write.states.get(&state).copied().unwrap_or_default();
    assert_eq!((of(CallState::Succeeded), of(CallState::Failed)), (3, 3));
    assert_eq!((write.errors["timeout"], write.errors["not_found"]), (2, 1));
    assert_eq!(search.states[&CallState::Running], 1);
    assert_eq!(write.latency.unwrap().p50, Duration::from_micros(1_500));
    let nothing = journal.summary(Timestamp::from_micros(i64::MAX)).await.unwrap();
    assert!(nothing.tools.is_empty());
}

#[tokio::test]
async fn plugins_that_were_new_long_ago_are_forgotten() {
    let journal = temporary();
    for number in 0..4_100 {
        journal.record(Record::PluginSeen(PluginSeen {
            name: "files".into(),
            digest: number.to_string().into(),
            tools: Vec::new(),
            at: now(),
        }));
    }
    journal.flush().await;
    let kept = journal.0.readers.read_here(|conn| {
        conn.query_row("SELECT count(*), min(key) FROM plugins", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
    });
    assert_eq!(kept, Ok((4_096, 5)));
}
