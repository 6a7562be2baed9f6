//! Calls one tool many times: something to hold a profiler against. `loop_call TOOL JSON COUNT`.

#![allow(clippy::print_stdout, reason = "an example prints")]

use palisade::{Host, json};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (tool, input) =
        (args.next().unwrap_or("calculate".into()), args.next().unwrap_or(r#"{"expression":"1"}"#.into()));
    let count: u32 = args.next().map_or(Ok(1_000), |count| count.parse())?;
    let host = Host::builder().build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = Instant::now();
    for _ in 0..count {
        let result = runtime.block_on(host.call(&tool, input.as_str(), json!({})));
        assert!(result.is_success(), "{result}");
    }
    println!("{:?} a call", start.elapsed() / count.max(1));
    Ok(())
}
