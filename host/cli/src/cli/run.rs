//! `palisade run`: a program that calls tools.

use super::args::{Common, Programs, Run as Args};
use super::caller::Caller;
use super::exit::{Exit, Failure};
use super::grants::{RUN_JS, refuse_other_programs};
use super::signals::Signals;
use super::tool_session::{Prints, Tools, Wanted};
use super::{call, input, output};
use palisade::Call;
use palisade::internal::expect_one_call;
use palisade::tool::json::JsonBounds;
use serde_json::json;

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    let path = args.program.to_string_lossy();
    let program = input::file_or_standard(&path, JsonBounds::CALL_INPUT.bytes as u64)?;
    let caller = Caller::new(&args.caller)?;
    expect_one_call();
    let prints = if args.json { Prints::Json } else { Prints::Text };
    let common = &Common { programs: Programs::Granted, ..common.clone() };
    let tools = Tools::open(common, &args.running, Wanted::Tools(&[RUN_JS]), prints)?;
    refuse_other_programs(&tools.host)?;
    if !tools.host.registry().has(RUN_JS) {
        output::note("programs are run by the shipped plugin `code`, which is switched off here");
    }
    let mut call = caller.prepare(Call::new(RUN_JS, json!({"code": program})));
    if let Some(timeout) = args.running.timeout {
        call = call.with_timeout(timeout);
    }
    let result = tools.run(signals, async |host, interrupted| {
        let session = caller.session(host, None);
        host.dispatch(&session, call.with_cancellation(interrupted)).await
    })?;
    call::show(&result, prints, tools.shown.as_deref())
}
