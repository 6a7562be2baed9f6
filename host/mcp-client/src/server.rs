//! A server: its approved tools, with the classes that the operator gives them.

use crate::approval::Approval;
use crate::connections::Connections;
use crate::name::ServerName;
use crate::offer::OfferedTool;
use crate::reach::Reach;
use crate::schemas::SchemaRoom;
use crate::tool;
use palisade::internal::Owed;
use palisade::tool::text::elided;
use palisade::{Definition, Factory, SideEffects};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The classes that the operator gives to the tools of a server. The statements of a server about
/// itself are no reason for a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    all: SideEffects,
    named: BTreeMap<String, SideEffects>,
}

impl Classes {
    /// Gives one class to all tools.
    #[must_use]
    pub fn all(class: SideEffects) -> Self {
        Self { all: class, named: BTreeMap::new() }
    }

    /// Gives another class to a tool, by the name that its server gives it.
    #[must_use]
    pub fn with(mut self, tool: impl Into<String>, class: SideEffects) -> Self {
        self.named.insert(tool.into(), class);
        self
    }

    /// Returns the tools that have a class of their own, by the names that their server gives them.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Returns the class of a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> SideEffects {
        self.named.get(tool).copied().unwrap_or(self.all)
    }
}

/// A tool of a server that a host does not get.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The name that the server gives it.
    pub tool: String,
    /// The reason.
    pub reason: String,
}

/// A server whose approved tools a host gets.
#[derive(Debug)]
pub struct Server {
    tools: Vec<(Definition, OfferedTool)>,
    left_out: Vec<LeftOut>,
    connections: Arc<Connections>,
    /// The memory of the schemas.
    #[expect(dead_code, reason = "counts for as long as it lives")]
    memory: Owed,
}

impl Server {
    /// Creates a server. It is started at the first call of a tool.
    #[must_use]
    pub fn new(name: ServerName, reach: Reach, classes: &Classes, approval: &Approval) -> Self {
        let mut tools: Vec<(Definition, OfferedTool)> = Vec::new();
        let mut left_out = Vec::new();
        let mut room = SchemaRoom::new();
        for offered in approval.tools() {
            let defined =
                tool::definition(&name, offered, classes.of(&offered.name), &reach, &mut room);
            // Rules name a tool by its own name, and sessions by the other.
            let taken = |new: &Definition| {
                let clash = |it: &Definition| {
                    let names = [(it.name(), new.name()), (it.own_name(), new.own_name())];
                    names.into_iter().find(|(its, other)| its == other).map(|(its, _)| its.clone())
                };
                tools.iter().find_map(|(it, first)| Some((clash(it)?, first)))
            };
            let reason = match &defined {
                Err(reason) => reason.clone(),
                Ok(new) => match taken(new) {
                    Some((name, first)) => {
                        let first = elided(&first.name, 64);
                        format!("its name is `{name}`, which the tool `{first}` has")
                    }
                    None => {
                        tools.push((new.clone(), offered.clone()));
                        continue;
                    }
                },
            };
            left_out.push(LeftOut { tool: offered.name.clone(), reason });
        }
        let connections = Arc::new(Connections::new(name, reach));
        Self { tools, left_out, connections, memory: Owed::new(room.taken()) }
    }

    /// Returns the tools for a host, one factory each.
    #[must_use]
    pub fn factories(&self) -> Vec<Factory> {
        let factory = |(definition, offered): &(Definition, OfferedTool)| -> Factory {
            tool::factory(definition.clone(), offered.clone(), self.connections.clone())
        };
        self.tools.iter().map(factory).collect()
    }

    /// Returns the definitions of the tools.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.tools.iter().map(|(definition, _)| definition)
    }

    /// Returns the approved tools that a host does not get, with the reasons.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::offer::Offer;
    use crate::reach::ServerCommand;
    use serde_json::{Value, json};

    fn server(offer: Value) -> Server {
        let offer: Offer = serde_json::from_value(offer).unwrap();
        Server::new(
            ServerName::parse("git").unwrap(),
            Reach::Command(ServerCommand::new("git")),
            &Classes::all(SideEffects::Network),
            &Approval::Given(offer),
        )
    }

    #[test]
    fn no_two_tools_have_one_name_in_rules_or_in_sessions() {
        for (first, second) in
            [("9", "git_9"), ("2fa", "git_2fa"), ("_a", "git__a"), ("a-b", "a_b")]
        {
            let tool =
                |name| json!({"name": name, "description": "D.", "input": {"type": "object"}});
            let offer = json!({"tools": [tool(first), tool(second), tool("c")]});
            let server = server(offer);
            assert_eq!(server.definitions().count(), 2, "{first} {second}");
            assert_eq!(server.left_out()[0].tool, second);
        }
    }

    /// Returns the offer of 60 tools with this input schema.
    fn sixty_with(schema: &Value) -> Value {
        let tool = |at| json!({"name": format!("t{at}"), "description": "D.", "input": schema});
        json!({"tools": (10..70).map(tool).collect::<Vec<_>>()})
    }

    #[test]
    fn schemas_of_all_tools_have_bounded_memory_together() {
        let values = vec![json!({"": 0}); 5_000];
        let large = sixty_with(&json!({"type": "object", "examples": values}));
        // Each takes some 140 KiB of compiled patterns.
        let pattern = json!({"pattern": "^[\\p{L}]{20}$"});
        let patterns = sixty_with(&json!({"type": "object", "properties": {"a": pattern}}));
        for (offer, reason) in [(large, "too much memory"), (patterns, "pattern")] {
            let server = server(offer);
            let (accepted, left_out) = (server.definitions().count(), server.left_out());
            assert!((5..55).contains(&accepted), "{accepted} with {reason}");
            assert_eq!(left_out.len(), 60 - accepted);
            assert!(left_out.iter().all(|it| it.reason.contains(reason)), "{left_out:?}");
        }
    }
}
