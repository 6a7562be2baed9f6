//! The fuzz target of tool outputs: any bytes as the contents of a guest's memory at the place of
//! its result.

use std::fmt::Write as _;
use std::sync::LazyLock;

use palisade::formats::{Provider, read_calls, write_results};
use palisade::{Call, Host, ToolResult, plugins::Shipped};
use serde_json::json;
use tempfile::TempDir;

use crate::uniform;
use crate::wat::{Told, Wat};

/// The address of the bytes in the guest's memory: the start of the page that the guest allocates.
/// Pointers in the bytes are absolute.
pub const ANSWER: u32 = 2 * 65_536;
/// The maximum number of bytes used; the rest is dropped, so that the call always allocates the
/// same page.
const LONGEST: usize = 4096;

/// The guest's code that decodes the input of the call, `{"hex":"…"}`, to the start of a new page,
/// and returns that page as the address of the result.
const DECODE: &str = r"(local $to i32) (local $from i32) (local $end i32) (local $base i32)
    (local.set $base (i32.mul (memory.grow (i32.const 1)) (i32.const 65536)))
    (local.set $to (local.get $base))
    (local.set $from (i32.add (i32.load offset=40 (local.get $call)) (i32.const 8)))
    (local.set $end (i32.sub
      (i32.add (i32.load offset=40 (local.get $call)) (i32.load offset=44 (local.get $call))) (i32.const 2)))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
      (i32.store8 (local.get $to) (i32.or
        (i32.shl (call $digit (i32.load8_u (local.get $from))) (i32.const 4))
        (call $digit (i32.load8_u offset=1 (local.get $from)))))
      (local.set $to (i32.add (local.get $to) (i32.const 1)))
      (local.set $from (i32.add (local.get $from) (i32.const 2)))
      (br $next)))
    (local.get $base)";
const DIGIT: &str = r"(func $digit (param $c i32) (result i32)
    (select
      (i32.sub (local.get $c) (i32.const 48))
      (i32.sub (local.get $c) (i32.const 87))
      (i32.le_u (local.get $c) (i32.const 57))))";

/// A host with a plugin that returns any given bytes as its result, without and with an output
/// schema.
struct Answering {
    host: Host,
    runtime: tokio::runtime::Runtime,
    _directory: TempDir,
}

static ANSWERING: LazyLock<Answering> = LazyLock::new(Answering::new);

/// Runs a call whose result is made of the bytes. The first byte selects the tool, without or with
/// an output schema; the rest is the guest's memory.
///
/// # Panics
///
/// If the result violates the contract, or cannot be written as a message to a provider.
pub fn output(bytes: &[u8]) {
    let result = answer(bytes);
    uniform::check_shape(&result.to_json());
    for provider in Provider::ALL {
        let calls = read_calls(provider, &reply(provider)).expect("a reply with one call");
        let (messages, _) = write_results(provider, &[(calls[0].clone(), result.clone())]);
        assert!(messages.is_array());
    }
}

/// Returns the host's result for the guest's memory in `bytes`.
#[must_use]
pub fn answer(bytes: &[u8]) -> ToolResult {
    let (which, answer) = bytes.split_first().unwrap_or((&0, &[]));
    let tool = if which % 2 == 0 { "free" } else { "bound" };
    ANSWERING.call(tool, &answer[..answer.len().min(LONGEST)])
}

/// Returns a provider's reply with one call.
fn reply(provider: Provider) -> String {
    let call = match provider {
        Provider::OpenAi => {
            json!({"tool_calls": [{"id": "a", "type": "function", "function": {"name": "free", "arguments": "{}"}}]})
        }
        Provider::OpenAiResponses => {
            json!({"type": "function_call", "call_id": "a", "name": "free", "arguments": "{}"})
        }
        Provider::Anthropic => json!({"type": "tool_use", "id": "a", "name": "free", "input": {}}),
        Provider::Gemini => json!({"functionCall": {"id": "a", "name": "free", "args": {}}}),
        other => panic!("there is no reply of {other}"),
    };
    call.to_string()
}

impl Answering {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [plugins, workspace] = ["plugins", "workspace"].map(|name| directory.path().join(name));
        for folder in [&plugins, &workspace] {
            std::fs::create_dir(folder).expect("a directory can be made");
        }
        std::fs::write(plugins.join("answering.wasm"), plugin()).expect("a file can be written");
        let builder =
            Host::builder().workspace(workspace).shipped(Shipped::LeftOut).plugins(plugins);
        let host = builder.build().expect("the host can be built");
        assert!(host.rejected().is_empty(), "{:?}", host.rejected());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { host, runtime, _directory: directory }
    }

    fn call(&self, tool: &str, answer: &[u8]) -> ToolResult {
        let mut hex = String::with_capacity(answer.len() * 2);
        for byte in answer {
            let _ = write!(hex, "{byte:02x}");
        }
        let call = Call::new(tool, json!({"hex": hex}));
        self.runtime.block_on(self.host.dispatch(self.host.session(), call))
    }
}

/// Builds the plugin.
fn plugin() -> Vec<u8> {
    let bound =
        r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;
    let tools =
        vec![Told::new("free"), Told { output: Some(bound.to_owned()), ..Told::new("bound") }];
    Wat::with_tools(tools).execute(DECODE).extra(DIGIT).build()
}
