//! MCP servers as sources of tools: `[mcp.servers.NAME]`. Only the user's own file may contain
//! them: a server is a program that runs with the rights of the user.

use super::file::expand;
use palisade::SideEffects;
use palisade_mcp_client::{Classes, Reach, ServerCommand, ServerName};
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawServer {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    pass: Vec<String>,
    class: Option<String>,
    #[serde(default)]
    classes: BTreeMap<String, String>,
    #[serde(default)]
    confined: bool,
    network: Option<bool>,
    #[serde(default)]
    read: Vec<String>,
}

/// An MCP server whose tools this program offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub variables: BTreeMap<String, String>,
    /// The names of variables that it gets from the environment of this program.
    pub passed: Vec<String>,
    /// The classes of its tools.
    pub classes: Classes,
    /// How it is confined. The network of a server without confinement is open.
    pub confinement: Confinement,
    /// The network of a confined server.
    pub network: Network,
    /// What a confined server may read beside the workspace and the programs of the system.
    pub readable: Vec<PathBuf>,
}

impl RawServer {
    /// Checks the table of the server with this name.
    ///
    /// # Errors
    ///
    /// The key and the reason.
    fn checked(self, name: &str) -> Result<McpServer, String> {
        let key = |key: &str| format!("mcp.servers.{name}.{key}");
        if self.command.trim().is_empty() {
            return Err(format!("`{}` is empty; write the name of a program", key("command")));
        }
        let class = |place: String, text: &str| {
            text.parse::<SideEffects>().map_err(|error| format!("`{place}`: {error}"))
        };
        let all = self
            .class
            .as_deref()
            .map_or(Ok(SideEffects::Network), |text| class(key("class"), text))?;
        let mut classes = Classes::all(all);
        for (tool, text) in &self.classes {
            classes = classes.with(tool, class(key(&format!("classes.{tool}")), text)?);
        }
        let is_variable = |name: &String| {
            !name.is_empty() && !name.contains(['=', '\0']) && name.trim() == name.as_str()
        };
        if let Some(wrong) = self.env.keys().chain(&self.pass).find(|name| !is_variable(name)) {
            return Err(format!("`mcp.servers.{name}`: `{wrong}` is no name of a variable"));
        }
        if !self.confined && (self.network.is_some() || !self.read.is_empty()) {
            return Err(format!(
                "`mcp.servers.{name}`: `network` and `read` are for a confined server; add `confined = true`, or leave them out"
            ));
        }
        let readable: Vec<PathBuf> = self.read.iter().map(|text| expand(text)).collect();
        if let Some(relative) = readable.iter().find(|path| !path.is_absolute()) {
            return Err(format!(
                "`{}` has `{}`; write the whole path, from `/` or `~/` on",
                key("read"),
                relative.display()
            ));
        }
        Ok(McpServer {
            command: self.command,
            arguments: self.args,
            variables: self.env,
            passed: self.pass,
            classes,
            confinement: match self.confined {
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
}

/// Checks the tables of a file.
pub(super) fn checked(raw: RawMcp) -> Result<BTreeMap<ServerName, McpServer>, String> {
    let table = |(name, table): (String, RawServer)| {
        let parsed = ServerName::parse(&name).map_err(|error| format!("`mcp.servers`: {error}"))?;
        Ok((parsed, table.checked(&name)?))
    };
    raw.servers.into_iter().map(table).collect()
}

impl McpServer {
    /// Returns how the server is reached. `limits` are those of `shell`, and `variable` looks up a
    /// variable of this program's environment.
    pub(crate) fn reach(
        &self,
        limits: ShellLimits,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Reach {
        let inherited: &[&str] = match self.confinement {
            Confinement::Landlock => &[],
            Confinement::Unconfined => &INHERITED,
        };
        let passed = inherited.iter().copied().chain(self.passed.iter().map(String::as_str));
        let passed = passed.filter_map(|name| Some((name.to_owned(), variable(name)?)));
        let own = self.variables.iter().map(|(name, value)| (name.clone(), value.clone()));
        let mut command = ServerCommand::new(self.command.clone());
        command.command = ServiceCommand {
            arguments: self.arguments.clone(),
            variables: passed.chain(own).collect(),
            readable: self.readable.clone(),
            ..command.command
        };
        command.options = ShellOptions::new(self.confinement).network(self.network).limits(limits);
        Reach::Command(command)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn servers(text: &str) -> Result<BTreeMap<ServerName, McpServer>, String> {
        checked(toml::from_str(text).map_err(|error: toml::de::Error| error.to_string())?)
    }

    #[test]
    fn server_is_of_class_network_without_confinement_by_default() {
        let all = servers("[servers.git]\ncommand = \"git-server\"\nargs = [\"--all\"]").unwrap();
        let git = &all[&ServerName::parse("git").unwrap()];
        assert_eq!(git.classes.of("status"), SideEffects::Network);
        assert_eq!(git.confinement, Confinement::Unconfined);
        let Reach::Command(command) =
            git.reach(ShellLimits::default(), |name| (name == "PATH").then(|| "/bin".to_owned()))
        else {
            panic!("it has a command")
        };
        assert_eq!(command.command.arguments, ["--all"]);
        assert_eq!(command.command.variables, [("PATH".to_owned(), "/bin".to_owned())]);
    }

    #[test]
    fn confined_server_inherits_only_what_is_named() {
        let text = "[servers.git]\ncommand = \"x\"\nconfined = true\npass = [\"TOKEN\"]\nenv = { A = \"1\" }\nread = [\"/opt/x\"]\nclass = \"read\"\nclasses = { push = \"execute\" }";
        let all = servers(text).unwrap();
        let git = &all[&ServerName::parse("git").unwrap()];
        assert_eq!(git.classes.of("status"), SideEffects::Read);
        assert_eq!(git.classes.of("push"), SideEffects::Execute);
        let Reach::Command(command) =
            git.reach(ShellLimits::default(), |name| Some(format!("<{name}>")))
        else {
            panic!("it has a command")
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(command.command.variables, [pair("TOKEN", "<TOKEN>"), pair("A", "1")]);
    }

    #[test]
    fn wrong_table_is_refused_with_its_key() {
        for (text, key) in [
            ("[servers.Git]\ncommand = \"x\"", "mcp.servers"),
            ("[servers.git]\nargs = []", "command"),
            ("[servers.git]\ncommand = \" \"", "mcp.servers.git.command"),
            ("[servers.git]\ncommand = \"x\"\nclass = \"all\"", "mcp.servers.git.class"),
            (
                "[servers.git]\ncommand = \"x\"\nclasses = { a = \"b\" }",
                "mcp.servers.git.classes.a",
            ),
            ("[servers.git]\ncommand = \"x\"\nnetwork = true", "confined"),
            ("[servers.git]\ncommand = \"x\"\npass = [\"A=B\"]", "A=B"),
            ("[servers.git]\ncommand = \"x\"\nconfined = true\nread = [\"x\"]", "read"),
        ] {
            let error = servers(text).unwrap_err();
            assert!(error.contains(key), "{text}: {error}");
        }
    }
}
