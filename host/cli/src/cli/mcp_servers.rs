//! `palisade mcp approve`, `list` and `revoke`: the MCP servers whose tools this program offers.

use super::args::{Common, McpApprove, McpList, McpRevoke};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::prompt::{self, YesNo};
use super::wrap::{columns, hanging};
use super::{approve, hint, inspect, remember, servers, setup};
use crate::config::{McpCommand, McpPlace, McpServer, Settings, Value};
use palisade::tool::text::elided;
use palisade::workspace::Workspace;
use palisade_mcp_client::{
    Approval, Approvals, ConnectError, Difference, Offer, Reach, Server, ServerName, look,
};
use palisade_shell::{Confinement, Network};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The time after which a person is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// The indentation of what is said of a server.
const INDENT: &str = "  ";

/// The beginning of the error of a program that has ended without a fault.
const DONE: &str = "it ended with exit code 0";

/// A configured server, with its approval.
struct Known<'a> {
    name: &'a ServerName,
    server: &'a McpServer,
    reach: Reach,
    approval: Approval,
    /// The names of the tools of other approved servers.
    others: BTreeMap<String, &'a ServerName>,
}

/// Shows what a server offers, and approves it if the person says yes.
pub(super) fn approve(common: &Common, args: &McpApprove) -> Result<Exit, Failure> {
    let settings = setup::settings(common)?;
    // From now on, tools of other runs are kept from the approvals.
    remember::for_other_runs(common, &settings);
    let approvals = writable(common)?;
    let known = known(common, &settings, &approvals, &args.name)?;
    let offer = ask_server(common, &known)?;
    if args.json {
        output::json(&shown_json(&known, &offer))?;
        return Ok(Exit::Ok);
    }
    let named = args.digest;
    if let Some(named) = named.filter(|named| *named != offer.digest()) {
        let digest = offer.digest();
        let line = format!("`{}`: its words have the digest {digest}, and not {named}", known.name);
        output::quoting_problem("not approved:", &line);
        return Ok(Exit::Denied);
    }
    if known.approval == Approval::Given(offer.clone()) {
        let text = format!("`{}` is approved, and its words are the approved ones.", known.name);
        output::text(&output::prose(&text))?;
        return Ok(Exit::Ok);
    }
    let text = shown(&known, &offer, columns(std::io::stdout()));
    if named.is_none() && approve::is_too_long(&text) {
        output::quoting_problem("not approved:", &too_long(common, known.name, &offer));
        return Ok(Exit::Denied);
    }
    output::text(&text)?;
    for file in servers::changeable(common, known.server) {
        let file = elided(&file.to_string_lossy(), 512);
        output::note(&format!(
            "tools that write can change `{file}`, which the command line of the server names: keep it outside of the workspace"
        ));
    }
    let question = format!("Approve `{}`? [y]es, [N]o: ", known.name);
    // A digest names the very words, and is a yes to them.
    let answer = match args.yes || named.is_some() {
        true => Ok(YesNo::Yes),
        false => prompt::yes_or_no(&question),
    };
    match answer {
        Ok(YesNo::Yes) => {}
        Ok(YesNo::No) => {
            output::quoting_problem(
                "not approved:",
                &format!("`{}` offers no tool here", known.name),
            );
            return Ok(Exit::Denied);
        }
        Err(_) => {
            let line = "there is no terminal for the question; --yes approves these tools";
            output::quoting_problem("not approved:", line);
            return Ok(Exit::Denied);
        }
    }
    approvals.approve(known.name, &known.reach, offer).map_err(Failure::usage)?;
    let running = match known.approval.former() {
        Some(_) => " A program that runs already keeps the former words until it is started again.",
        None => "",
    };
    output::text(&output::prose(&format!("`{}` is approved.{running}", known.name)))?;
    Ok(Exit::Ok)
}

/// Returns the refusal of a server with more words than a terminal shows.
fn too_long(common: &Common, name: &ServerName, offer: &Offer) -> String {
    let json = hint::named(&hint::command(common, "mcp approve --json"), name.as_str());
    let digest = offer.digest();
    format!(
        "`{name}`: it has more words than a terminal shows: read them in the file of `{json} > FILE`, and then approve them with `--digest {digest}`"
    )
}

/// Lists the configured servers.
pub(super) fn list(common: &Common, args: &McpList) -> Result<Exit, Failure> {
    let settings = setup::settings(common)?;
    let approvals = servers::approvals(common);
    let of = |(name, server): (&ServerName, &Value<McpServer>)| {
        let reach = servers::reach(&settings, &server.value)?;
        let approval = approvals.as_ref().map_or(Ok(Approval::Missing), |it| it.of(name, &reach));
        let approval = approval.unwrap_or_else(|error| {
            output::note(&error.to_string());
            Approval::Missing
        });
        Ok::<_, Failure>((name.clone(), reach, approval))
    };
    let all: Vec<_> = settings.servers.iter().map(of).collect::<Result<_, _>>()?;
    let tools = |approval: &Approval| match approval {
        Approval::Given(offer) => offer.tools.len(),
        Approval::Missing | Approval::Elsewhere { .. } => 0,
    };
    if args.json {
        let all: Vec<_> = all
            .iter()
            .map(|(name, reach, approval)| {
                let is_approved = matches!(approval, Approval::Given(_));
                json!({"server": name.as_str(), "approved": is_approved, "tools": tools(approval), "place": reach.place(), "rights": rights(reach)})
            })
            .collect();
        output::json(&all)?;
        return Ok(Exit::Ok);
    }
    if all.is_empty() {
        output::text(&without_servers(common))?;
        return Ok(Exit::Ok);
    }
    let head = ["SERVER", "APPROVAL", "TOOLS", "RIGHTS", "PLACE"].map(Cell::heading).into();
    let rows = all.iter().map(|(name, reach, approval)| -> Vec<Cell> {
        let state = servers::state(approval).trim_start_matches("is ");
        let place = place(reach);
        let rights = rights(reach);
        let count = tools(approval).to_string();
        vec![name.as_str().into(), state.into(), count.into(), rights.into(), place.into()]
    });
    output::text(&output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))?;
    Ok(Exit::Ok)
}

/// Returns the advice for a configuration without any server.
fn without_servers(common: &Common) -> String {
    let (own, approve) = (setup::own_place(common), hint::command(common, "mcp approve git"));
    let text = format!(
        "No MCP server is configured. Write a table such as this {own}, and then approve its tools with `{approve}`:"
    );
    let text = output::prose(&text);
    format!("{text}\n[mcp.servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-server-git\"]\n")
}

/// Takes the approval of a server back.
pub(super) fn revoke(common: &Common, args: &McpRevoke) -> Result<Exit, Failure> {
    let name = ServerName::parse(&args.name).map_err(Failure::usage)?;
    match writable(common)?.revoke(&name).map_err(Failure::usage)? {
        true => {
            let text = format!(
                "`{name}` is no longer approved. A program that runs already keeps its tools until it is started again.\n{}",
                left_over(common, &name)
            );
            output::text(&output::prose(&text))?;
            Ok(Exit::Ok)
        }
        false => Err(Failure::new(Exit::NotFound, format!("no MCP server `{name}` is approved"))),
    }
}

/// Returns the parts of the configuration that stay after a revocation: the table of the server,
/// and rules for its tools. Empty if there are none, or if the configuration cannot be read.
fn left_over(common: &Common, name: &ServerName) -> String {
    let Ok(settings) = setup::settings(common) else { return String::new() };
    let mut lines = Vec::new();
    if servers::named(&settings, name.as_str()).is_some() {
        let own = setup::own_place(common);
        lines.push(format!("To remove the server, delete its table `[mcp.servers.{name}]` {own}."));
    }
    let tools = format!("mcp/{name}/");
    let rules = settings.of_tools().filter(|rule| rule.tool.starts_with(&tools));
    let rules: Vec<String> = rules.map(|rule| format!("`{}`", rule.key())).collect();
    if !rules.is_empty() {
        lines.push(format!(
            "Rules for its tools stay, and hold again once it is approved: {}.",
            elided(&rules.join(", "), 512)
        ));
    }
    lines.join("\n")
}

/// Returns the approvals, in which this run may write.
fn writable(common: &Common) -> Result<Approvals, Failure> {
    servers::approvals(common).ok_or_else(|| {
        Failure::usage(
            "the approval would be in the workspace, where tools could write it, or there is no directory for it; run this with another --workspace or --config",
        )
    })
}

fn known<'a>(
    common: &Common,
    settings: &'a Settings,
    approvals: &Approvals,
    name: &str,
) -> Result<Known<'a>, Failure> {
    let missing = || {
        let name = elided(name, 64);
        let list = hint::command(common, "mcp list");
        let line = format!(
            "there is no MCP server `{name}` in your palisade.toml; `{list}` names those there are"
        );
        Failure::new(Exit::NotFound, line)
    };
    let (name, server) = servers::named(settings, name).ok_or_else(missing)?;
    let reach = servers::reach(settings, &server.value)?;
    // A damaged approval is replaced by a new one.
    let approval = approvals.of(name, &reach).unwrap_or(Approval::Missing);
    let others = servers::names_of_others(settings, approvals, name);
    Ok(Known { name, server: &server.value, reach, approval, others })
}

/// Starts a server and asks it for its tools.
fn ask_server(common: &Common, known: &Known<'_>) -> Result<Offer, Failure> {
    let workspace = Workspace::open(&common.workspace)
        .map_err(|error| Failure::usage(format!("the workspace cannot be opened: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let offer = runtime.block_on(async {
        let mut looking = std::pin::pin!(look(&known.reach, Arc::new(workspace)));
        match tokio::time::timeout(PATIENCE, &mut looking).await {
            Ok(offer) => offer,
            Err(_) => {
                let place = place(&known.reach);
                output::note(&format!(
                    "waiting for `{place}`, for up to two minutes; some programs are fetched when they start"
                ));
                looking.await
            }
        }
    });
    offer.map_err(|error| {
        let line = format!(
            "the MCP server `{}` cannot be looked at: {error}{}{}",
            known.name,
            hint_on_end(&error),
            hint_on_failure(known)
        );
        Failure::new(Exit::Tool, line)
    })
}

/// Returns the hint for a program that has ended without a fault, and so is no server.
fn hint_on_end(error: &ConnectError) -> &'static str {
    match error {
        ConnectError::Ended(how) | ConnectError::Crashed { end: how, .. }
            if how.starts_with(DONE) =>
        {
            "; a server of MCP keeps running and answers on its standard output"
        }
        _ => "",
    }
}

/// Returns what a server that does not start may lack.
fn hint_on_failure(known: &Known<'_>) -> Cow<'static, str> {
    match &known.server.place {
        McpPlace::Command(McpCommand { confinement: Confinement::Landlock, .. }) => {
            "; it is confined: `read` lets it read its own files, also the directories that links in them lead to, `network = true` opens sockets, and its `PATH` is the system's unless `pass = [\"PATH\"]`".into()
        }
        McpPlace::Command(_) => {
            "; `command` names the program alone, `args` its arguments, and `pass` and `env` its variables".into()
        }
        McpPlace::Url(_) => format!("; see whether a server of MCP answers at `{}`", place(&known.reach)).into(),
    }
}

/// Returns the rights of a server in a word.
fn rights(reach: &Reach) -> &'static str {
    match reach {
        Reach::Command(command) => match command.options.rights() {
            (Confinement::Landlock, Network::Closed) => "confined",
            (Confinement::Landlock, Network::Open) => "confined, with the network",
            (Confinement::Unconfined, _) => "all of yours",
        },
        _ => "none here",
    }
}

/// Returns the rights of a server in a sentence.
fn explained_rights(known: &Known<'_>) -> String {
    let text = match &known.server.place {
        McpPlace::Command(McpCommand { confinement: Confinement::Unconfined, .. }) => {
            "all of yours: it can read and change each of your files, and use the network; `confined = true` in its table confines it"
        }
        McpPlace::Command(command) => {
            let own = command.readable.iter().map(|path| format!("`{}`", setup::shown(path)));
            let all = std::iter::once("the programs of the system".to_owned()).chain(own);
            let all = elided(&all.collect::<Vec<_>>().join(", "), 2_000);
            return format!("{}; read-only: {all}", known.reach.sandbox());
        }
        McpPlace::Url(_) => "none on this machine; it gets the input of each call",
    };
    text.to_owned()
}

/// Returns the command or the URL of a server.
fn place(reach: &Reach) -> String {
    let words = reach.place().into_iter().map(palisade_trust::shell_word);
    elided(&words.collect::<Vec<_>>().join(" "), 300)
}

/// Returns a server as a person sees it before an approval.
fn shown(known: &Known<'_>, offer: &Offer, room: usize) -> String {
    let line = |text: &str| hanging(INDENT, "      ", text, room);
    let name = known.name;
    let state = servers::state(&known.approval);
    let mut text = hanging("", INDENT, &format!("The MCP server `{name}` {state}."), room);
    if let Some(former) = known.approval.former() {
        let difference = Difference::between(former, offer);
        for (what, tools) in [
            ("new", &difference.added),
            ("no longer there", &difference.removed),
            ("with other words", &difference.changed),
        ] {
            if !tools.is_empty() {
                text.push_str(&line(&format!("{what}: {}", elided(&tools.join(", "), 2_000))));
            }
        }
    }
    let own = [offer.server.as_deref(), offer.version.as_deref()];
    let own: Vec<&str> = own.into_iter().flatten().collect();
    text.push_str(&line(&format!("place      {}", place(&known.reach))));
    text.push_str(&line(&format!("itself     {}", elided(&own.join(" "), 200))));
    text.push_str(&line(&format!("rights     {}", explained_rights(known))));
    let server = approved(known, offer);
    for definition in server.definitions() {
        text.push_str(&inspect::tool_of_server(definition, room));
        if let Some(other) = known.others.get(definition.name().as_str()) {
            let first = other.min(&name);
            text.push_str(&line(&format!(
                "the MCP server `{other}` has a tool of this name, which is that of `{first}` from now on"
            )));
        }
        text.push('\n');
    }
    for left_out in server.left_out() {
        let tool = elided(&left_out.tool, 64);
        text.push_str(&line(&format!("left out: `{tool}`: {}", elided(&left_out.reason, 512))));
    }
    text
}

/// Returns the server as it would be with the approval of this offer.
fn approved(known: &Known<'_>, offer: &Offer) -> Server {
    let approval = Approval::Given(offer.clone());
    Server::new(known.name.clone(), known.reach.clone(), &known.server.classes, &approval)
}

fn shown_json(known: &Known<'_>, offer: &Offer) -> serde_json::Value {
    let server = approved(known, offer);
    let tool = |definition: &palisade::Definition| json!({"name": definition.name().as_str(), "class": definition.side_effects().as_str()});
    let left_out =
        |it: &palisade_mcp_client::LeftOut| json!({"tool": it.tool, "reason": it.reason});
    let difference = known.approval.former().map(|former| {
        let it = Difference::between(former, offer);
        json!({"added": it.added, "removed": it.removed, "changed": it.changed})
    });
    json!({
        "server": known.name.as_str(),
        "approved": known.approval == Approval::Given(offer.clone()),
        "digest": offer.digest().to_string(),
        "place": known.reach.place(), "rights": rights(&known.reach),
        "tools": server.definitions().map(tool).collect::<Vec<_>>(),
        "left_out": server.left_out().iter().map(left_out).collect::<Vec<_>>(),
        "words": offer,
        "difference": difference,
    })
}
