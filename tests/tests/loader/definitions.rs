//! Plugins with invalid tool definitions.

use palisade_tests::Wat;
use palisade_tests::wat::Told;

use super::{refused, says};

/// Returns why a plugin with this tool is rejected.
#[track_caller]
fn refused_for(tool: Told) -> String {
    refused(&Wat::new(tool).build())
}

#[test]
fn endless_description_is_refused() {
    let plugin = Wat::new(Told::new("raw")).definitions("(loop (br 0)) unreachable");
    says(&refused(&plugin.build()), &["asking it for its tools failed", "2s"]);
}

#[test]
fn trapping_description_is_refused() {
    let plugin = Wat::new(Told::new("raw")).definitions("unreachable");
    says(&refused(&plugin.build()), &["asking it for its tools failed"]);
}

#[test]
fn description_beyond_the_memory_is_refused() {
    let plugin = Wat::new(Told::new("raw")).definitions("(i32.const -8)");
    says(&refused(&plugin.build()), &["asking it for its tools failed"]);
}

#[test]
fn plugin_without_tools_is_refused() {
    says(&refused(&Wat::with_tools(Vec::new()).build()), &["0 tools", "1 to 256"]);
}

#[test]
fn plugin_with_too_many_tools_is_refused() {
    let tools: Vec<Told> = (0..257).map(|number| Told::new(&format!("tool{number}"))).collect();
    says(&refused(&Wat::with_tools(tools.clone()).build()), &["257 tools", "1 to 256"]);
    let loaded = super::load(&super::with_file(&Wat::with_tools(tools[..256].to_vec()).build()));
    assert_eq!(loaded.tools.len(), 258);
}

#[test]
fn invalid_tool_name_is_refused_with_a_suggestion() {
    says(&refused_for(Told::new("Read-File")), &["`Read-File` is not a tool name", "`read_file`"]);
    says(&refused_for(Told::new("")), &["is not a tool name"]);
    says(&refused_for(Told::new(&"a".repeat(65))), &["is not a tool name"]);
    says(&refused_for(Told::new("a\u{202e}b")), &["is not a tool name", "\\u{202e}"]);
}

#[test]
fn empty_description_is_refused() {
    says(
        &refused_for(Told { description: " \n".to_owned(), ..Told::new("raw") }),
        &["`raw`", "description"],
    );
}

#[test]
fn deceptive_description_is_refused() {
    let hidden = Told { description: "Reads.\u{200b}\u{e0041}".to_owned(), ..Told::new("raw") };
    says(&refused_for(hidden), &["`raw`", "description"]);
}

#[test]
fn unused_variation_selectors_are_refused() {
    for text in ["Reads.\u{fe0f}\u{fe0e}", "Reads ⚠\u{fe0f}\u{fe0e}."] {
        says(
            &refused_for(Told { description: text.to_owned(), ..Told::new("raw") }),
            &["`raw`", "description", "U+FE0"],
        );
        says(&refused_for(described(text)), &["/properties/path/description", "U+FE0"]);
        let metadata = serde_json::json!({"notes": [text]}).to_string();
        says(
            &refused_for(Told { metadata, ..Told::new("raw") }),
            &["metadata", "U+FE0", "/notes/0"],
        );
    }
    let drawn = Told {
        description: "Reads ⚠\u{fe0f}, ☎\u{fe0e} and 1\u{fe0f}\u{20e3}.".to_owned(),
        ..Told::new("raw")
    };
    let loaded = super::load(&super::with_file(&Wat::new(drawn).build()));
    assert_eq!(loaded.tools, ["raw", "good", "better"]);
}

#[test]
fn too_long_description_is_refused() {
    let long = Told { description: "x".repeat((16 << 10) + 1), ..Told::new("raw") };
    says(&refused_for(long), &["`raw`", "description"]);
}

#[test]
fn too_long_title_is_refused() {
    says(
        &refused_for(Told { title: Some("x".repeat(129)), ..Told::new("raw") }),
        &["`raw`", "title"],
    );
}

#[test]
fn zero_timeout_is_refused() {
    says(
        &refused_for(Told { timeout_ms: Some(0), ..Told::new("raw") }),
        &["`raw`", "timeout is zero"],
    );
}

#[test]
fn metadata_other_than_an_object_is_refused() {
    for metadata in ["[]", "{", "\"x\"", "{\"a\":1,\"a\":2}"] {
        says(
            &refused_for(Told { metadata: metadata.to_owned(), ..Told::new("raw") }),
            &["`raw`", "metadata"],
        );
    }
}

#[test]
fn invalid_json_schema_text_is_refused_with_the_place() {
    says(
        &refused_for(Told::new("raw").with_input("{\"type\": ")),
        &["`raw`", "the input schema is refused", "line 1"],
    );
}

#[test]
fn schema_with_a_non_object_root_is_refused() {
    says(
        &refused_for(Told::new("raw").with_input(r#"{"type": "array"}"#)),
        &["`raw`", "the input schema is refused", "object"],
    );
}

#[test]
fn output_schema_is_checked() {
    let tool = Told {
        output: Some(r#"{"$ref": "https://example.com/s"}"#.to_owned()),
        ..Told::new("raw")
    };
    says(&refused_for(tool), &["`raw`", "the output schema is refused", "$ref"]);
}

#[test]
fn one_invalid_tool_rejects_its_plugin() {
    let plugin = Wat::with_tools(vec![Told::new("fine"), Told::new("Not-Fine")]);
    says(&refused(&plugin.build()), &["Not-Fine"]);
}

#[test]
fn title_of_several_lines_is_refused() {
    let forged = Told { title: Some("Good\n  class    none".to_owned()), ..Told::new("raw") };
    says(&refused_for(forged), &["`raw`", "title", "one line"]);
}

#[test]
fn patterns_of_all_tools_are_bounded_together() {
    let schema = |tool: usize| {
        let properties: Vec<String> = (0..100)
            .map(|n| format!(r#""p{n}":{{"type":"string","pattern":"^a{tool}b{n}$"}}"#))
            .collect();
        format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","))
    };
    let tools: Vec<Told> = (0..6)
        .map(|number| Told::new(&format!("tool{number}")).with_input(schema(number)))
        .collect();
    says(&refused(&Wat::with_tools(tools.clone()).build()), &["too many patterns", "512"]);
    says(
        &refused(&Wat::with_tools(tools.clone()).build()),
        &["`pattern`", "/properties/p", "the input schema of `tool5`"],
    );
    super::load(&super::with_file(&Wat::with_tools(tools[..5].to_vec()).build()));
}

#[test]
fn memory_of_all_descriptions_is_bounded_together() {
    // A short text of small objects, which take a hundred times as much memory each.
    let metadata = format!(r#"{{"a":[{}]}}"#, vec![r#"{"":0}"#; 4_900].join(","));
    let tools: Vec<Told> = (0..12)
        .map(|number| Told { metadata: metadata.clone(), ..Told::new(&format!("tool{number}")) })
        .collect();
    says(&refused(&Wat::with_tools(tools.clone()).build()), &["too much memory", "33554432"]);
    super::load(&super::with_file(&Wat::with_tools(tools[..8].to_vec()).build()));
}

/// Returns a tool whose schema has a property with this description.
fn described(description: &str) -> Told {
    let schema = serde_json::json!({"type": "object", "properties": {"path": {"type": "string", "description": description}}});
    Told::new("raw").with_input(schema.to_string())
}

#[test]
fn deceptive_schema_is_refused_with_the_place() {
    for hidden in ["Reads.\u{202e}", "Reads.\u{e0041}\u{e0042}", "Reads.\u{1b}[2J", "Reads.\r"] {
        says(
            &refused_for(described(hidden)),
            &["`raw`", "the input schema is refused", "/properties/path/description", "U+"],
        );
    }
    let constant = Told::new("raw")
        .with_input("{\"type\": \"object\", \"properties\": {\"a\": {\"enum\": [\"x\u{200b}\"]}}}");
    says(&refused_for(constant), &["`raw`", "/properties/a/enum/0", "U+200B"]);
    let output =
        Told { output: Some("{\"$comment\": \"\u{2066}\"}".to_owned()), ..Told::new("raw") };
    says(&refused_for(output), &["the output schema is refused", "/$comment", "U+2066"]);
}

#[test]
fn schema_in_any_language_is_accepted() {
    let schema = r#"{"type": "object", "properties": {"ending": {"enum": ["\n", "\r\n"], "description": "Zeilenende, 改行\n\tنهاية السطر"}}}"#;
    let loaded =
        super::load(&super::with_file(&Wat::new(Told::new("raw").with_input(schema)).build()));
    assert_eq!(loaded.tools, ["raw", "good", "better"]);
}

#[test]
fn deceptive_metadata_is_refused_with_the_place() {
    let hidden =
        Told { metadata: "{\"notes\": [\"a\", \"b\u{202e}\"]}".to_owned(), ..Told::new("raw") };
    says(&refused_for(hidden), &["`raw`", "metadata", "U+202E", "/notes/1"]);
    let plain = Told { metadata: r#"{"notes": ["a", "b\r\n"]}"#.to_owned(), ..Told::new("raw") };
    let loaded = super::load(&super::with_file(&Wat::new(plain).build()));
    assert_eq!(loaded.tools, ["raw", "good", "better"]);
}

/// Returns a schema whose references double at each level: written out, 2^`levels` subschemas.
fn doubling(levels: usize) -> String {
    let level = |n: usize| {
        format!(
            r##""d{n}": {{"properties": {{"a": {{"$ref": "#/$defs/d{0}"}}, "b": {{"$ref": "#/$defs/d{0}"}}}}}}"##,
            n + 1
        )
    };
    let levels_below: Vec<String> = (0..levels).map(level).collect();
    format!(
        r##"{{"type": "object", "$ref": "#/$defs/d0", "$defs": {{{}, "d{levels}": {{"type": "string"}}}}}}"##,
        levels_below.join(",")
    )
}

#[test]
fn exponential_schema_is_refused() {
    says(
        &refused_for(Told::new("raw").with_input(doubling(30))),
        &["`raw`", "the input schema is refused", "at most"],
    );
    let loaded =
        super::load(&super::with_file(&Wat::new(Told::new("raw").with_input(doubling(5))).build()));
    assert_eq!(loaded.tools, ["raw", "good", "better"]);
}

#[test]
fn costly_schemas_of_one_plugin_do_not_delay_others() {
    let tools: Vec<Told> =
        (0..256).map(|n| Told::new(&format!("tool{n}")).with_input(doubling(9))).collect();
    let start = std::time::Instant::now();
    let loaded = super::load(&super::with_file(&Wat::with_tools(tools).build()));
    assert!(
        loaded.tools.ends_with(&["good".to_owned(), "better".to_owned()]),
        "{:?}",
        loaded.rejected
    );
    assert!(start.elapsed() < std::time::Duration::from_secs(30), "{:?}", start.elapsed());
}
