//! `palisade policy explain`: what would happen to a call, and why, without running anything.

use super::args::{Common, Explain, Policy as Args, PolicyAction};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::{input, open};
use crate::config::{Origin, Settings};
use crate::policy::{Decision, Mode, Rule};
use crate::tool::json::JsonBounds;
use crate::tool::text::{elided, visible};
use crate::tool::{Call, Definition, ToolError};
use serde_json::{Value, json};

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let PolicyAction::Explain(args) = &args.action;
    let text = input::text_or_file(&args.input, JsonBounds::CALL_INPUT.bytes as u64)?;
    let settings = open::settings(common)?;
    let policy = open::policy(common, &settings, &args.allow);
    let host = open::builder(common, &settings).policy(policy).build()?;
    let call = Call::new(&args.tool, text);
    let id = call.id().clone();
    match host.foresee(host.session(), call) {
        Ok(foreseen) => {
            let (definition, decision) = (foreseen.tool.definition(), foreseen.decision);
            let explained = Explained {
                definition,
                decision,
                changes: &foreseen.changes,
                time: host.time_limit(&foreseen.tool, None),
                origin: origin(&settings, definition, decision.rule),
            };
            explained.show(args)?;
            Ok(if decision.mode == Mode::Deny { Exit::Denied } else { Exit::Ok })
        }
        Err(kind) => {
            open::show_rejected(host.rejected());
            refused(&ToolError::new(id, &args.tool, kind), args)
        }
    }
}

/// A call that would not come as far as the policy.
fn refused(error: &ToolError, args: &Explain) -> Result<Exit, Failure> {
    if args.json {
        output::json(&json!({"tool": args.tool, "outcome": "refused", "error": error.to_json()}))?;
    } else {
        output::text(&format!(
            "{} would be refused before the policy is asked: {}\n",
            elided(&args.tool, 64),
            visible(&error.message())
        ))?;
    }
    Ok(error.class().into())
}

struct Explained<'a> {
    definition: &'a Definition,
    decision: Decision,
    changes: &'a [String],
    time: std::time::Duration,
    origin: String,
}

impl Explained<'_> {
    fn show(&self, args: &Explain) -> Result<(), Failure> {
        if args.json { output::json(&self.to_json()) } else { output::text(&self.to_text()) }
    }

    fn outcome(&self) -> &'static str {
        match self.decision.mode {
            Mode::Auto => "runs",
            Mode::Prompt | Mode::PromptOnce => "asks",
            Mode::Deny => "refused",
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "tool": self.definition.name().as_str(),
            "side_effects": self.definition.side_effects().as_str(),
            "outcome": self.outcome(),
            "mode": self.decision.mode.as_str(),
            "rule": self.decision.rule.as_str(),
            "because": self.reason(),
            "origin": self.origin,
            "projected_modifications": self.changes,
            "timeout_ms": u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
        })
    }

    fn to_text(&self) -> String {
        let name = self.definition.name();
        let would = match self.decision.mode {
            Mode::Auto => format!("{name} would run without a question"),
            Mode::Prompt => format!("{name} would wait until you allow it"),
            Mode::PromptOnce => format!("{name} would wait until you allow it, once for a session"),
            Mode::Deny => format!("{name} would be refused, whatever you answer or allow"),
        };
        let rows = [("because", self.reason()), ("says", self.origin.clone()), ("changes", self.changes())];
        let rows = rows.into_iter().chain([("time", humantime::format_duration(self.time).to_string())]);
        let table: Vec<Vec<Cell>> = rows.map(|(key, value)| vec![format!("  {key}").into(), value.into()]).collect();
        format!("{would}\n{}", output::table(&table))
    }

    fn reason(&self) -> String {
        let (class, mode, name) = (self.definition.side_effects(), self.decision.mode, self.definition.name());
        match self.decision.rule {
            Rule::Class => format!("the class {class} is `{mode}`"),
            Rule::Tool => format!("the tool {name} is `{mode}`"),
            Rule::Override => format!("the workspace is trusted, but the class {class} is `{mode}` there"),
            Rule::Trusted => "the workspace is trusted".to_owned(),
            Rule::Allowed => format!("the class {class} is allowed"),
        }
    }

    fn changes(&self) -> String {
        match self.changes {
            [] => "nothing that its input names".to_owned(),
            paths => paths.iter().map(|path| format!("`{}`", elided(path, 160))).collect::<Vec<_>>().join(", "),
        }
    }
}

/// Where the rule stands.
fn origin(settings: &Settings, definition: &Definition, rule: Rule) -> String {
    let shown = |origin: Option<&Origin>| origin.unwrap_or(&Origin::Default).to_string();
    match rule {
        Rule::Class => shown(settings.classes.get(&definition.side_effects()).map(|mode| &mode.origin)),
        Rule::Tool => shown(settings.tools.get(definition.name().as_str()).map(|mode| &mode.origin)),
        Rule::Override | Rule::Trusted => "[[trusted]] in your palisade.toml".to_owned(),
        Rule::Allowed => "--allow".to_owned(),
    }
}
