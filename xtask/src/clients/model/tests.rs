//! Tests of the stand-in for the model.

use super::*;

fn good() -> Value {
    json!({ "name": "good", "arguments": {} })
}

fn script() -> String {
    json!({ "turns": [
        [{ "name": "read_file", "arguments": { "path": "a" } }, good()],
        [good()],
    ] })
    .to_string()
}

fn chat(messages: &Value) -> Value {
    let body = json!({ "model": "m", "messages": messages });
    let Ok(Reply::Whole(reply)) = reply::make(Wire::Chat, &body) else { panic!("no reply") };
    reply["choices"][0].clone()
}

#[test]
fn each_turn_of_the_script_follows_the_calls_before_it() {
    let user = json!({ "role": "user", "content": script() });
    let first = chat(&json!([{ "role": "system", "content": "Be brief." }, user]));
    assert_eq!(first["finish_reason"], "tool_calls");
    let calls = &first["message"]["tool_calls"];
    assert_eq!(
        calls[0]["function"],
        json!({ "name": "read_file", "arguments": r#"{"path":"a"}"# })
    );
    assert_eq!((&calls[0]["id"], &calls[1]["id"]), (&json!("call_0"), &json!("call_1")));

    let second = chat(&json!([user, first["message"]]));
    assert_eq!(second["message"]["tool_calls"][0]["id"], "call_2");

    let result = json!({ "role": "tool", "tool_call_id": "call_2", "content": "good" });
    let last = chat(&json!([user, first["message"], second["message"], result]));
    let said = last["message"]["content"].as_str().expect("words");
    let said: Value = serde_json::from_str(said).expect("JSON");
    assert_eq!((&last["finish_reason"], &said["messages"][3]), (&json!("stop"), &result));
}

#[test]
fn responses_have_the_same_script() {
    let user = json!({ "role": "user", "content": [{ "type": "input_text", "text": script() }] });
    let input = json!([user, { "type": "function_call" }, { "type": "function_call" }]);
    let body = json!({ "model": "m", "input": input });
    let Ok(Reply::Whole(reply)) = reply::make(Wire::Responses, &body) else { panic!("no reply") };
    assert_eq!(
        (&reply["output"][0]["name"], &reply["output"][0]["call_id"]),
        (&json!("good"), &json!("call_2"))
    );
}

#[test]
fn messages_have_the_same_script_whole_and_as_a_stream() {
    let user = json!({ "role": "user", "content": script() });
    let body = |messages: Value, stream: bool| json!({ "messages": messages, "stream": stream });
    let Ok(Reply::Whole(first)) = reply::make(Wire::Messages, &body(json!([user]), false)) else {
        panic!("no reply")
    };
    assert_eq!(first["stop_reason"], "tool_use");
    let input = json!({ "path": "a" });
    let call = json!({ "type": "tool_use", "id": "call_0", "name": "read_file", "input": input });
    assert_eq!((&first["content"][0], first["content"].as_array().map(Vec::len)), (&call, Some(2)));
    let said = json!({ "role": "assistant", "content": first["content"] });
    let Ok(Reply::Stream(second)) = reply::make(Wire::Messages, &body(json!([user, said]), true))
    else {
        panic!("no stream")
    };
    let events: Vec<Value> = second
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let names: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    assert_eq!(
        names,
        [&["message_start"][..], &block, &["message_delta", "message_stop"]].concat()
    );
    assert_eq!(events[1]["content_block"]["id"], "call_2");
    assert_eq!(events[2]["delta"]["partial_json"], "{}");
}

#[test]
fn strict_tool_with_an_unknown_format_is_refused() {
    let request = |format: &str, strict: bool| {
        let path = json!({ "type": "string", "format": format });
        let parameters = json!({
            "type": "object",
            "properties": { "path": path },
            "required": ["path"],
            "additionalProperties": false,
        });
        json!({ "tools": [{ "name": "read", "parameters": parameters, "strict": strict }] })
    };
    let refused = |request| {
        let refused = strict::check(Wire::Responses, &request).expect_err("a refusal");
        format!("{refused:#}")
    };
    let refusal = refused(request("workspace-path", true));
    assert!(refusal.starts_with("Invalid schema for function 'read': "), "{refusal}");
    let end = r#"In context=["properties", "path"], 'workspace-path' is not a valid format"#;
    assert!(refusal.ends_with(end), "{refusal}");
    assert!(strict::check(Wire::Responses, &request("workspace-path", false)).is_ok());
    assert!(strict::check(Wire::Responses, &request("date", true)).is_ok());
    let mut open = request("date", true);
    open["tools"][0]["parameters"]["additionalProperties"] = json!(true);
    assert!(refused(open).contains("'additionalProperties'"));
    let mut optional = request("date", true);
    optional["tools"][0]["parameters"]["required"] = json!([]);
    assert!(refused(optional).contains("Missing 'path'"));
}

#[test]
fn request_is_answered_over_http() {
    let model = Model::start().expect("a stand-in");
    let ask = |path: &str, body: &str| {
        let mut stream = TcpStream::connect(model.address).expect("a connection");
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: model\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).expect("a request");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response");
        response
    };
    let body = json!({ "messages": [{ "role": "user", "content": script() }], "stream": true });
    let streamed = ask("/v1/chat/completions", &body.to_string());
    assert!(streamed.starts_with("HTTP/1.1 200 OK\r\n"), "{streamed}");
    assert!(streamed.ends_with("data: [DONE]\n\n"), "{streamed}");
    let lost = ask("/v1/models", "");
    assert!(lost.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{lost}");
}
