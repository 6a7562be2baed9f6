//! MCP servers as sources of tools: `[mcp.servers.NAME]`. Only the user's own file may contain
//! them: a server is a program that runs with the rights of the user, or gets the input of calls.

use super::file::expand;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use palisade::SideEffects;
use palisade::tool::text::elided;
use palisade_mcp_client::{Classes, Reach, ServerCommand, ServerName, ServerUrl};
use palisade_net::Network as HttpNetwork;
use palisade_shell::{Confinement, Network, ServiceCommand, ShellLimits, ShellOptions};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The variables that a server without confinement gets from the environment of this program:
/// those without which programs of a home directory are not found.
const INHERITED: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG"];

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawMcp {
    pub(super) servers: BTreeMap<String, RawServer>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawServer {
    #[serde(rename = "type")]
    transport: Option<String>,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    pass: Option<Vec<String>>,
    confined: Option<bool>,
    network: Option<bool>,
    read: Option<Vec<String>>,
    url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    token_env: Option<String>,
    class: Option<String>,
    classes: BTreeMap<String, String>,
}

/// An MCP server whose tools this program offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The classes of its tools.
    pub classes: Classes,
    /// Where it is.
    pub place: McpPlace,
}

/// Where an MCP server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpPlace {
    /// A program of this machine.
    Command(McpCommand),
    /// At a URL.
    Url(McpUrl),
}

/// An MCP server that is a program of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpCommand {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub variables: BTreeMap<String, String>,
    /// The names of variables that it gets from the environment of this program.
    pub passed: Vec<String>,
    /// How it is confined. The network of a server without confinement is open.
    pub confinement: Confinement,
    /// The network of a confined server.
    pub network: Network,
    /// The paths that a confined server may read beside the workspace and the system's programs.
    pub readable: Vec<PathBuf>,
}

/// An MCP server at a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpUrl {
    /// The URL.
    pub url: String,
    /// The headers of each request.
    pub headers: BTreeMap<String, String>,
    /// The name of the variable of this program's environment with the bearer token.
    pub token_variable: Option<String>,
}

/// Checks the tables of a file.
pub(super) fn checked(raw: RawMcp) -> Result<BTreeMap<ServerName, McpServer>, String> {
    let table = |(name, table): (String, RawServer)| {
        let parsed = ServerName::parse(&name).map_err(|error| format!("`mcp.servers`: {error}"))?;
        Ok((parsed, table.checked(&format!("mcp.servers.{name}"))?))
    };
    raw.servers.into_iter().map(table).collect()
}

impl RawServer {
    /// Checks the table with this key.
    ///
    /// # Errors
    ///
    /// The key and the reason.
    fn checked(self, key: &str) -> Result<McpServer, String> {
        let class = |place: String, text: &str| {
            text.parse::<SideEffects>().map_err(|error| format!("`{place}`: {error}"))
        };
        let all = self.class.as_deref();
        let all = all.map_or(Ok(SideEffects::Network), |text| class(format!("{key}.class"), text));
        let mut classes = Classes::all(all?);
        for (tool, text) in &self.classes {
            classes = classes.with(tool, class(format!("{key}.classes.{tool}"), text)?);
        }
        let place = match (&self.command, &self.url) {
            (Some(program), None) => McpPlace::Command(self.command(key, program)?),
            (None, Some(url)) => McpPlace::Url(self.url(key, url)?),
            (None, None) => {
                return Err(format!("`{key}`: write the `command` that starts it, or its `url`"));
            }
            (Some(_), Some(_)) => {
                return Err(format!("`{key}`: write either `command` or `url`, not both"));
            }
        };
        self.check_transport(key)?;
        Ok(McpServer { classes, place })
    }

    /// Checks the `type`. The tables of other clients have it; `command` and `url` say as much.
    ///
    /// # Errors
    ///
    /// If it contradicts the `command` or the `url`, or if it is not supported.
    fn check_transport(&self, key: &str) -> Result<(), String> {
        let Some(transport) = self.transport.as_deref() else { return Ok(()) };
        let is_accepted = match transport {
            "stdio" => self.url.is_none(),
            "http" | "streamable-http" => self.command.is_none(),
            _ => false,
        };
        match is_accepted {
            true => Ok(()),
            false => Err(format!(
                "`{key}.type` is `{}`: `stdio` is accepted beside a `command`, `http` or `streamable-http` beside a `url`, and it can be left out",
                elided(transport, 64)
            )),
        }
    }

    fn command(&self, key: &str, program: &str) -> Result<McpCommand, String> {
        if self.headers.is_some() || self.token_env.is_some() {
            return Err(format!(
                "`{key}`: `headers` and `token_env` are for a server with a `url`"
            ));
        }
        let program = expand(program).to_string_lossy().into_owned();
        if program.trim().is_empty() {
            return Err(format!("`{key}.command` is empty; write the name of a program"));
        }
        // A relative path would lead to a program of the directory that palisade runs in.
        if program.contains('/') && !program.starts_with('/') {
            return Err(format!(
                "`{key}.command` is `{program}`; write the name of a program in `PATH`, or a whole path, from `/` or `~/` on"
            ));
        }
        let is_confined = self.confined == Some(true);
        if !is_confined && (self.network.is_some() || self.read.is_some()) {
            return Err(format!(
                "`{key}`: `network` and `read` are for a confined server; add `confined = true`, or leave them out"
            ));
        }
        let variables = self.env.clone().unwrap_or_default();
        let passed = self.pass.clone().unwrap_or_default();
        variables.keys().chain(&passed).try_for_each(|name| check_variable(key, name))?;
        if let Some((name, _)) = variables.iter().find(|(_, value)| value.contains("${")) {
            return Err(format!(
                "`{key}.env.{name}` has `${{…}}`, which nothing fills in; `pass = [\"NAME\"]` gives it a variable of yours"
            ));
        }
        let readable = self.read.iter().flatten().map(|text| expand(text));
        let readable: Vec<PathBuf> = readable.collect();
        if let Some(relative) = readable.iter().find(|path| !path.is_absolute()) {
            return Err(format!(
                "`{key}.read` has `{}`; write the whole path, from `/` or `~/` on",
                relative.display()
            ));
        }
        Ok(McpCommand {
            program,
            arguments: self.args.iter().flatten().map(|word| in_home(word)).collect(),
            variables,
            passed,
            confinement: match is_confined {
                true => Confinement::Landlock,
                false => Confinement::Unconfined,
            },
            network: match self.network {
                Some(true) => Network::Open,
                Some(false) | None => Network::Closed,
            },
            readable,
        })
    }

    fn url(&self, key: &str, url: &str) -> Result<McpUrl, String> {
        let of_command = [
            ("args", self.args.is_some()),
            ("env", self.env.is_some()),
            ("pass", self.pass.is_some()),
            ("confined", self.confined.is_some()),
            ("network", self.network.is_some()),
            ("read", self.read.is_some()),
        ];
        if let Some((other, _)) = of_command.into_iter().find(|(_, is_there)| *is_there) {
            return Err(format!("`{key}`: `{other}` is for a server with a `command`"));
        }
        let server = McpUrl {
            url: url.to_owned(),
            headers: self.headers.clone().unwrap_or_default(),
            token_variable: self.token_env.clone(),
        };
        server.token_variable.iter().try_for_each(|name| check_variable(key, name))?;
        server.headers(|_| None).map_err(|error| format!("`{key}.headers`: {error}"))?;
        ServerUrl::new(url, HeaderMap::new(), HttpNetwork::default())
            .map_err(|error| format!("`{key}.url`: {error}"))?;
        Ok(server)
    }
}

/// Expands a leading `~/` of an argument, as a shell does.
fn in_home(word: &str) -> String {
    match word.starts_with("~/") {
        true => expand(word).to_string_lossy().into_owned(),
        false => word.to_owned(),
    }
}

fn check_variable(key: &str, name: &str) -> Result<(), String> {
    match palisade_net::is_variable(name) {
        true => Ok(()),
        false => Err(format!(
            "`{key}`: `{name}` is no name of a variable: letters, digits and `_`, and no digit at the beginning"
        )),
    }
}

impl McpServer {
    /// Returns the names of variables that the server gets from this program's environment.
    pub(crate) fn passed(&self) -> impl Iterator<Item = &str> {
        let (passed, token) = match &self.place {
            McpPlace::Command(command) => (command.passed.as_slice(), None),
            McpPlace::Url(server) => (&[][..], server.token_variable.as_deref()),
        };
        passed.iter().map(String::as_str).chain(token)
    }

    /// Returns how the server is reached. `limits` are those of `shell`, and `variable` looks up a
    /// variable of this program's environment.
    ///
    /// # Errors
    ///
    /// If a server at a URL gets a token that is no header.
    pub(crate) fn reach(
        &self,
        limits: ShellLimits,
        network: impl FnOnce() -> HttpNetwork,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Reach, String> {
        match &self.place {
            McpPlace::Command(command) => Ok(Reach::Command(command.reach(limits, variable))),
            McpPlace::Url(server) => {
                let headers = server.headers(variable)?;
                let url = ServerUrl::new(&server.url, headers, network());
                url.map(Reach::Url).map_err(|error| error.to_string())
            }
        }
    }
}

impl McpCommand {
    fn reach(
        &self,
        limits: ShellLimits,
        variable: impl Fn(&str) -> Option<String>,
    ) -> ServerCommand {
        let inherited: &[&str] = match self.confinement {
            Confinement::Landlock => &[],
            Confinement::Unconfined => &INHERITED,
        };
        let passed = inherited.iter().copied().chain(self.passed.iter().map(String::as_str));
        let passed = passed.filter_map(|name| Some((name.to_owned(), variable(name)?)));
        let own = self.variables.iter().map(|(name, value)| (name.clone(), value.clone()));
        let mut command = ServerCommand::new(self.program.clone());
        command.command = ServiceCommand {
            arguments: self.arguments.clone(),
            variables: passed.chain(own).collect(),
            readable: self.readable.clone(),
            ..command.command
        };
        command.options = ShellOptions::new(self.confinement).network(self.network).limits(limits);
        command
    }
}

impl McpUrl {
    /// Returns the headers of each request. No error repeats a value.
    fn headers(&self, variable: impl Fn(&str) -> Option<String>) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let key = HeaderName::try_from(name)
                .map_err(|_| format!("`{name}` is no name of a header"))?;
            headers.insert(key, sensitive(value, name)?);
        }
        if let Some(name) = &self.token_variable
            && let Some(token) = variable(name)
        {
            headers.insert(header::AUTHORIZATION, sensitive(&format!("Bearer {token}"), name)?);
        }
        Ok(headers)
    }
}

fn sensitive(value: &str, name: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::try_from(value);
    let mut value = value.map_err(|_| format!("the value of `{name}` is no value of a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
