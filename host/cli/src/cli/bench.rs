//! `palisade bench`: measures the cost of a tool's calls on this machine.

mod load;
mod measure;
mod report;

use super::args::{Bench as Args, Common};
use super::exit::{Exit, Failure};
use super::signals::Signals;
use super::{input, output, setup, tool_session, unused_rules};
use load::Load;
use measure::{Amount, Work};
use palisade::Host;
use palisade::internal::multi_thread_runtime;
use palisade::policy::Mode;
use palisade::sandbox::{CompileStrategy, limits};
use palisade::tool::json::JsonBounds;
use palisade::{Call, ToolResult};
use report::Report;
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Args, signals: &Signals) -> Result<Exit, Failure> {
    let text = input::text_or_file(&args.input, JsonBounds::CALL_INPUT.bytes as u64)?;
    let settings = setup::settings_within(
        common,
        args.timeout.unwrap_or(limits::OPENING).min(limits::OPENING),
    )?;
    let policy = setup::policy(common, &settings, &args.allow);
    let host = Arc::new(
        setup::builder(common, &settings)?
            .policy(policy)
            .compile_strategy(CompileStrategy::OptimizedOnly)
            .build_for(&args.tool)?,
    );
    unused_rules::show(common, &settings, &host, unused_rules::Told::of(&[&args.tool], &host));
    if !host.registry().has(&args.tool) || common.verbose {
        setup::show_missing(&host);
    }
    let callers = args.callers.map_or_else(usual_callers, usize::from);
    let work = Work {
        tool: args.tool.clone(),
        input: text,
        timeout: args.timeout,
        amount: Amount::asked(args.calls),
    };
    refuse_question(&host, &work)?;
    let runtime = multi_thread_runtime();
    let runtime = runtime.map_err(|error| Failure::no_thread("cannot start the calls", &error))?;
    let measured = tool_session::drive(signals, runtime, async |interrupted| {
        let taken = match measure::calls(&host, work, callers, interrupted.clone()).await {
            Ok(taken) => taken,
            Err(failed) => return Ok(Err(failed)),
        };
        let spawned = measure::processes();
        let load = loaded(|| load::of(common, &settings, &host, &args.tool, &interrupted))?;
        Ok::<_, Failure>(Ok((taken, spawned, load)))
    })??;
    let (taken, spawned, load) = match measured {
        Ok(measured) => measured,
        Err(failed) => return Ok(ended(&failed)),
    };
    let report = Report {
        tool: &args.tool,
        taken: &taken,
        spawned: spawned.as_ref(),
        load: load.as_ref(),
        host: &host,
    };
    if args.json {
        output::json(&report.to_json())?;
    } else {
        output::text(&report.to_text())?;
    }
    Ok(Exit::Ok)
}

/// Measures loading on a separate thread, because loading blocks on a runtime of its own. Temporary
/// files are removed even after an interruption.
fn loaded(
    load: impl FnOnce() -> Result<Option<Load>, Failure> + Send,
) -> Result<Option<Load>, Failure> {
    let joined = std::thread::scope(|scope| scope.spawn(load).join());
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the number of cores, and at least two, because the benchmark is to show concurrent
/// calls.
fn usual_callers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).max(2)
}

/// Refuses a tool that needs a confirmation: a benchmark cannot prompt for each call.
fn refuse_question(host: &Host, work: &Work) -> Result<(), Failure> {
    // The first call reports a failure that precedes the policy decision.
    let Ok(explanation) = host.explain(host.session(), Call::new(&work.tool, work.input.clone()))
    else {
        return Ok(());
    };
    if explanation.refused.is_some() || explanation.changes.is_err() {
        return Ok(());
    }
    let definition = explanation.tool.definition();
    let class = definition.side_effects();
    match explanation.decision.mode {
        Mode::Auto | Mode::Deny => Ok(()),
        Mode::Prompt | Mode::PromptOnce => Err(Failure::new(
            Exit::Denied,
            format!(
                "`{}` asks before it runs, and a benchmark has nobody to ask; `--allow {class}` lets it run, in a workspace that may be changed",
                definition.name()
            ),
        )),
    }
}

/// Reports the failed call and returns its exit code, because timings of failures are meaningless.
fn ended(failed: &ToolResult) -> Exit {
    let Some(error) = failed.error() else { return Exit::Internal };
    output::problem(&format!("{}:", error.class()), &error.message());
    error.class().into()
}
