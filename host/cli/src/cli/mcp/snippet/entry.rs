//! One server's members in a client's file.

use super::Program;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// One server entry of a client's file. The keys keep their order, for readability.
#[derive(Default)]
pub(super) struct Entry(Vec<(&'static str, Value)>);

impl Entry {
    /// Returns the members in their order.
    pub(super) fn members(&self) -> Vec<(&str, &Value)> {
        self.0.iter().map(|(key, value)| (*key, value)).collect()
    }

    pub(super) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((key, value.into()));
        self
    }

    /// Adds the environment unless it is empty.
    pub(super) fn with_environment(self, key: &'static str, program: &Program) -> Self {
        if program.environment.is_empty() {
            self
        } else {
            self.with(key, json!(program.environment))
        }
    }

    /// Returns the entry with its name as a member, for a client that takes it without an enclosing
    /// key.
    pub(super) fn named(&self, name: &str) -> Self {
        let mut members = vec![("name", Value::from(name))];
        members.extend(self.0.iter().cloned());
        Self(members)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|member| (member.0, &member.1)))
    }
}
