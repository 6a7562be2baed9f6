//! `palisade policy explain`: shows the decision on a call and its reason, without running it.

use super::args::{Common, Explain, Policy as Args, PolicyAction};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::unused_rules::{self, Told};
use super::{input, prompt, setup};
use crate::config::{Origin, Settings};
use palisade::policy::{Decision, Mode, Policy, Rule};
use palisade::registry::Registered;
use palisade::tool::json::JsonBounds;
use palisade::tool::text::{elided, visible};
use palisade::{Advice, Call, Places, ToolError};
use serde_json::{Value, json};

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let PolicyAction::Explain(args) = &args.action;
    let given = args.input.as_deref();
    let text = given
        .map(|input| input::text_or_file(input, JsonBounds::CALL_INPUT.bytes as u64))
        .transpose()?;
    let settings = setup::settings(common)?;
    let policy = setup::policy(common, &settings, &args.allow);
    let places = setup::places(common, &settings);
    let host = setup::builder(common, &settings)?.policy(policy).build_for(&args.tool)?;
    let call = Call::new(&args.tool, text.clone().unwrap_or_else(|| "{}".to_owned()));
    let error = |id, kind| ToolError::new(id, &args.tool, kind).with_places(places.clone().into());
    let id = call.id().clone();
    unused_rules::check(&settings, &host)?;
    unused_rules::show(common, &settings, &host, Told::of(&[&args.tool], &host));
    let explanation = match host.explain(host.session(), call) {
        Ok(explanation) => explanation,
        Err(kind) => {
            setup::show_missing(&host);
            return unknown(&error(id, kind), args);
        }
    };
    let decision = explanation.decision;
    setup::show_clashes(&host);
    setup::show_undecided(common, &host, &[&args.tool]);
    unused_rules::show_unbound(&settings, &host, Some(&[&args.tool]));
    let changes = match (explanation.refused, explanation.changes) {
        (Some(kind), _) => Changes::AlwaysRefused(error(id, kind)),
        (None, _) if text.is_none() => Changes::Unknown,
        (None, Ok(paths)) => Changes::Of(paths),
        (None, Err(kind)) => Changes::Refused(error(id, kind)),
    };
    let would = Would::of(decision.mode, prompt::can_ask());
    let decides = !matches!(changes, Changes::AlwaysRefused(_));
    let advice = decides
        .then(|| would.advice(host.session().policy(), decision.rule, &explanation.tool))
        .flatten();
    let explained = Explained {
        tool: &explanation.tool,
        decision,
        would,
        changes,
        time: host.time_limit(&explanation.tool, None),
        origin: origin(&places, &settings, &explanation.tool, decision.rule),
        advice: advice.map(|advice| advice.told(&places)),
    };
    explained.show(args)?;
    Ok(explained.exit())
}

/// Reports a call that is refused because its tool does not exist.
fn unknown(error: &ToolError, args: &Explain) -> Result<Exit, Failure> {
    if args.json {
        output::json(&json!({"tool": args.tool, "outcome": "refused", "error": error.to_json()}))?;
    } else {
        let name = elided(&args.tool, 64);
        let message = visible(&error.message());
        let said = format!("{name} would be refused before the policy is asked: {message}");
        output::text(&output::prose(&said))?;
    }
    Ok(error.class().into())
}

/// The effect of a policy decision in this environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Would {
    Run,
    Ask,
    AskOnce,
    /// A confirmation is needed, and there is no terminal.
    AskNobody,
    Deny,
}

impl Would {
    fn of(mode: Mode, can_ask: bool) -> Self {
        match mode {
            Mode::Auto => Self::Run,
            Mode::Deny => Self::Deny,
            Mode::Prompt | Mode::PromptOnce if !can_ask => Self::AskNobody,
            Mode::Prompt => Self::Ask,
            Mode::PromptOnce => Self::AskOnce,
        }
    }

    fn outcome(self) -> &'static str {
        match self {
            Self::Run => "runs",
            Self::Ask | Self::AskOnce => "asks",
            Self::AskNobody | Self::Deny => "refused",
        }
    }

    fn exit(self) -> Exit {
        if self.outcome() == "refused" { Exit::Denied } else { Exit::Ok }
    }

    fn said(self) -> &'static str {
        match self {
            Self::Run => "would run without a question",
            Self::Ask => "would wait until you allow it",
            Self::AskOnce => "would wait until you allow it, once for a session",
            Self::AskNobody => {
                "would be refused: it needs a confirmation, and there is no terminal here to ask at"
            }
            Self::Deny => "would be refused, whatever you answer or allow",
        }
    }

    fn advice(self, policy: &Policy, rule: Rule, tool: &Registered) -> Option<Advice> {
        match self {
            Self::Deny => Some(rule.advice_on_deny(tool.definition(), tool.origin())),
            Self::Ask | Self::AskOnce | Self::AskNobody => {
                Some(policy.advice_on_prompt(rule, tool.definition(), tool.origin()))
            }
            Self::Run => None,
        }
    }
}

/// The paths that a call would change.
enum Changes {
    /// Unknown, because no input was given.
    Unknown,
    /// These paths.
    Of(Vec<String>),
    /// The input is refused before the policy is asked.
    Refused(ToolError),
    /// So is every input.
    AlwaysRefused(ToolError),
}

struct Explained<'a> {
    tool: &'a Registered,
    decision: Decision,
    would: Would,
    changes: Changes,
    time: std::time::Duration,
    origin: String,
    advice: Option<String>,
}

impl Explained<'_> {
    fn show(&self, args: &Explain) -> Result<(), Failure> {
        let told =
            if args.json { output::json(&self.to_json()) } else { output::text(&self.to_text()) };
        told.map(drop)
    }

    fn exit(&self) -> Exit {
        match &self.changes {
            Changes::Refused(error) | Changes::AlwaysRefused(error) => error.class().into(),
            Changes::Unknown | Changes::Of(_) => self.would.exit(),
        }
    }

    fn to_json(&self) -> Value {
        let mut value = json!({
            "tool": self.tool.definition().name().as_str(),
            "own_name": self.tool.definition().own_name().as_str(),
            "side_effects": self.tool.definition().side_effects().as_str(),
            "outcome": self.would.outcome(),
            "mode": self.decision.mode.as_str(),
            "rule": self.decision.rule.as_str(),
            "because": self.reason(),
            "origin": self.origin,
            "grants": self.tool.grants(),
            "advice": self.advice,
            "projected_modifications": null,
            "timeout_ms": u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
        });
        match &self.changes {
            Changes::Unknown => {}
            Changes::Of(paths) => value["projected_modifications"] = json!(paths),
            Changes::Refused(error) | Changes::AlwaysRefused(error) => {
                value["outcome"] = json!("refused");
                value["error"] = error.to_json();
            }
        }
        value
    }

    fn to_text(&self) -> String {
        let name = self.tool.definition().name();
        let said = self.would.said();
        let would = match &self.changes {
            Changes::Unknown | Changes::Of(_) => format!("{name} {said}"),
            Changes::AlwaysRefused(error) => {
                let message = visible(&error.message());
                format!("{name} would be refused with every input: {message}")
            }
            Changes::Refused(error) => {
                let message = visible(&error.message());
                format!(
                    "{name} would be refused before the policy is asked: {message}\nWith another input it {said}"
                )
            }
        };
        // Where no policy is asked, its rule and the way to change it would mislead.
        let decides = !matches!(self.changes, Changes::AlwaysRefused(_));
        let rows = [
            ("named", self.named()),
            ("because", decides.then(|| self.reason())),
            ("says", decides.then(|| self.origin.clone())),
            ("granted", self.granted()),
            ("changes", self.changes()),
        ];
        let rows = rows
            .into_iter()
            .chain([("time", Some(humantime::format_duration(self.time).to_string()))]);
        let rows = rows
            .chain([("advice", self.advice.clone())])
            .filter_map(|(key, value)| Some((key, value?)));
        let table: Vec<Vec<Cell>> =
            rows.map(|(key, value)| vec![format!("  {key}").into(), cell(key, value)]).collect();
        format!("{}{}", output::prose(&would), output::table(&table))
    }

    fn reason(&self) -> String {
        let class = self.tool.definition().side_effects();
        let mode = self.decision.mode;
        let (name, own) = (self.tool.definition().name(), self.tool.definition().own_name());
        match self.decision.rule {
            Rule::Class => format!("the class {class} is `{mode}`"),
            Rule::Tool => format!("the tool {own} is `{mode}`"),
            Rule::PluginTool => {
                let plugin = self.tool.origin().rule_name();
                let giver = self.giver();
                format!("the tool {own} of the {giver} {} is `{mode}`", elided(plugin, 64))
            }
            Rule::SeenTool | Rule::SeenPluginTool => {
                let own = self.tool.full_name();
                format!(
                    "the name {name} is `{mode}`, under which sessions see {}",
                    elided(&own, 128)
                )
            }
            Rule::Override => {
                format!("the workspace is trusted, but the class {class} is `{mode}` there")
            }
            Rule::Trusted => "the workspace is trusted".to_owned(),
            Rule::Allowed => format!("the class {class} is allowed"),
            other => format!("the rule `{}` holds", other.as_str()),
        }
    }

    /// Returns the own name of a tool that sessions see under another one.
    fn named(&self) -> Option<String> {
        let definition = self.tool.definition();
        let full = || format!("by its {} {}", self.giver(), elided(&self.tool.full_name(), 128));
        (definition.own_name() != definition.name()).then(full)
    }

    /// Returns the kind of thing that offers the tool, for a sentence.
    fn giver(&self) -> &'static str {
        match self.tool.origin() {
            palisade::registry::Origin::Server(_) => "server",
            palisade::registry::Origin::Native | palisade::registry::Origin::Plugin { .. } => {
                "plugin"
            }
        }
    }

    /// Returns what is granted to the tool's plugin.
    fn granted(&self) -> Option<String> {
        let grants = self.tool.grants();
        (!grants.is_empty()).then(|| grants.join("; "))
    }

    fn changes(&self) -> Option<String> {
        let Changes::Of(paths) = &self.changes else { return None };
        Some(match &paths[..] {
            [] => "nothing that its input names".to_owned(),
            paths => paths
                .iter()
                .map(|path| format!("`{}`", elided(path, 160)))
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}

/// Returns the value of a fact as a cell. The paths of an input are text of a model.
fn cell(fact: &str, value: String) -> Cell {
    if fact == "changes" { value.into() } else { Cell::sentence(value) }
}

/// Returns the origin of the rule that decided.
fn origin(places: &Places, settings: &Settings, tool: &Registered, rule: Rule) -> String {
    let definition = tool.definition();
    let shown = |origin: Option<&Origin>| origin.unwrap_or(&Origin::Default).to_string();
    match rule {
        Rule::Class => {
            shown(settings.classes.get(&definition.side_effects()).map(|mode| &mode.origin))
        }
        rule if rule.is_of_tool() => {
            let name = rule.tool_name(definition, tool.origin()).unwrap_or_default();
            shown(settings.tools.get(&name).map(|mode| &mode.origin))
        }
        Rule::Override | Rule::Trusted => format!("[[trusted]] {}", places.of("trusted")),
        Rule::Allowed => "--allow".to_owned(),
        other => other.as_str().to_owned(),
    }
}
