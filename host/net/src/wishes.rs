//! The wishes of a plugin: the grants that its author would like it to have, as the metadata of its
//! tools say. A wish grants nothing, and is shown to the person who can grant it.

use crate::grant_file::{Grant, GrantFileError};
use crate::limits;
use crate::secret::Secret;
use palisade::Definition;
use palisade::tool::text::elided;
use serde_json::{Map, Value};

/// The key of the metadata of a tool: an object with the lists `net`, `env`, `secret` and `tools`,
/// each as the file of grants has it.
pub const WISHES: &str = "wishes";

/// Reads one wish of a kind.
type Parse = fn(&Value) -> Result<Grant, String>;

/// The kinds of wishes, each with the function that reads one.
const KINDS: [(&str, Parse); 4] =
    [("net", net), ("env", env), ("secret", secret), ("tools", tools)];

/// The most characters of a reason that quotes a wish.
const REASON: usize = 300;

/// The wishes of one plugin, at most [`limits::WISHES`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    grants: Vec<Grant>,
    faults: Vec<WishFault>,
}

/// A wish that is ignored, because it has no meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WishFault {
    /// The tool whose metadata has the wish.
    pub tool: String,
    /// The fault and what would be accepted, on one line, escaped.
    pub reason: String,
}

impl Wishes {
    /// Reads the wishes of the tools of a plugin. A wish with a fault is left out.
    #[must_use]
    pub fn of(definitions: &[Definition]) -> Self {
        let mut wishes = Self::default();
        for definition in definitions {
            wishes.read(definition.name().as_str(), definition.metadata());
        }
        wishes
    }

    /// Returns the wishes, each once, in the order of the tools.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Returns the faults of the wishes that were left out, at most [`limits::WISHES`].
    #[must_use]
    pub fn faults(&self) -> &[WishFault] {
        &self.faults
    }

    fn read(&mut self, tool: &str, metadata: &Map<String, Value>) {
        let Some(wishes) = metadata.get(WISHES) else { return };
        let Some(wishes) = wishes.as_object() else {
            let form = "it is no object; `{\"net\": [\"GET https://api.example.org\"]}` is one";
            return self.fault(tool, form);
        };
        for (kind, read) in KINDS {
            match wishes.get(kind).map(Value::as_array) {
                Some(Some(listed)) => listed.iter().for_each(|wish| self.add(tool, read(wish))),
                Some(None) => self.fault(tool, &format!("`{kind}` is no list")),
                None => {}
            }
        }
        for kind in wishes.keys().filter(|key| KINDS.iter().all(|(kind, _)| kind != key)) {
            self.fault(tool, &format!("`{kind}` is none of `net`, `env`, `secret` and `tools`"));
        }
    }

    fn add(&mut self, tool: &str, wish: Result<Grant, String>) {
        match wish {
            Ok(wish) if self.grants.contains(&wish) => {}
            Ok(_) if self.grants.len() >= limits::WISHES => {
                self.fault(tool, &format!("a plugin has at most {} wishes", limits::WISHES));
            }
            Ok(wish) => self.grants.push(wish),
            Err(reason) => self.fault(tool, &reason),
        }
    }

    fn fault(&mut self, tool: &str, reason: &str) {
        let fault = WishFault { tool: tool.to_owned(), reason: elided(reason, REASON) };
        if self.faults.len() < limits::WISHES && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

fn net(wish: &Value) -> Result<Grant, String> {
    Grant::net(text(wish, "a network rule")?).map_err(|error| shown(&error))
}

fn env(wish: &Value) -> Result<Grant, String> {
    Grant::env(text(wish, "the name of a variable")?).map_err(|error| shown(&error))
}

fn secret(wish: &Value) -> Result<Grant, String> {
    let form = "a secret is an object with the texts `name`, `host` and `header`, and no other";
    let members = wish.as_object().filter(|members| members.len() == 3).ok_or(form)?;
    let member = |name: &str| text(members.get(name).ok_or(form)?, name);
    let secret = Secret::parse(member("name")?, member("host")?, member("header")?);
    secret.map(Grant::Secret).map_err(|error| error.to_string())
}

fn tools(wish: &Value) -> Result<Grant, String> {
    Grant::tools(text(wish, "a pattern of tools' names")?).map_err(|error| shown(&error))
}

/// Returns a text of a wish, which is bounded before anything reads it.
fn text<'a>(value: &'a Value, what: &str) -> Result<&'a str, String> {
    let text = value.as_str().ok_or_else(|| format!("{what} is a text"))?;
    match text.len() <= limits::WISH {
        true => Ok(text),
        false => Err(format!("{what} has at most {} bytes", limits::WISH)),
    }
}

fn shown(error: &GrantFileError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use serde_json::json;

    fn read(wishes: &Value) -> Wishes {
        let metadata = json!({ WISHES: wishes });
        let mut read = Wishes::default();
        read.read("probe", metadata.as_object().unwrap());
        read
    }

    fn shown(wishes: &Wishes) -> Vec<String> {
        wishes.grants().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wishes_are_written_as_in_the_file_of_grants() {
        let wishes = read(&json!({
            "net": ["GET https://api.example.org", "get https://API.example.org."],
            "env": ["LANG"],
            "secret": [{"name": "KEY", "host": "api.example.org", "header": "Authorization: Bearer"}],
            "tools": ["read_file", "search_*"],
        }));
        assert_eq!(
            shown(&wishes),
            [
                "net GET https://api.example.org",
                "env LANG",
                "secret KEY for api.example.org as authorization: Bearer",
                "tools read_file",
                "tools search_*"
            ]
        );
        assert_eq!(wishes.faults(), []);
    }

    #[test]
    fn wish_with_a_fault_is_left_out_and_named() {
        let long = format!("GET https://{}.org", "a".repeat(limits::WISH));
        for (wishes, part) in [
            (json!("everything"), "no object"),
            (json!({"files": ["/"]}), "`files` is none of"),
            (json!({"net": "GET https://a.org"}), "`net` is no list"),
            (json!({"net": [7]}), "a network rule is a text"),
            (json!({"net": ["GET https://*"]}), "GET https://*"),
            (json!({"net": [long]}), "at most 512 bytes"),
            (json!({"env": ["A B"]}), "A B"),
            (json!({"secret": ["KEY"]}), "`name`, `host` and `header`"),
            (json!({"secret": [{"name": "K", "host": "a.org"}]}), "`name`, `host` and `header`"),
            (json!({"secret": [{"name": "K", "host": "a.org", "header": "host"}]}), "host"),
        ] {
            let read = read(&wishes);
            assert_eq!(read.grants(), [], "{wishes}");
            let [fault] = read.faults() else { panic!("{wishes}: {read:?}") };
            assert!(fault.reason.contains(part) && fault.tool == "probe", "{fault:?}");
        }
    }

    #[test]
    fn words_of_a_fault_cannot_control_a_terminal() {
        let hostile = "GET\u{1b}[2J,\n https://a.org";
        for wishes in [json!({ hostile: [] }), json!({"net": [hostile]}), json!({"env": [hostile]})]
        {
            let read = read(&wishes);
            let reason = &read.faults()[0].reason;
            assert!(!reason.contains(['\u{1b}', '\n']), "{reason:?}");
        }
    }

    #[test]
    fn number_of_wishes_and_of_faults_is_bounded() {
        let many: Vec<String> = (0..1000).map(|index| format!("V{index}")).collect();
        let read_many = read(&json!({ "env": many }));
        assert_eq!(read_many.grants().len(), limits::WISHES);
        assert_eq!(read_many.faults().len(), 1, "the same fault is named once");
        let wrong: Vec<String> = (0..1000).map(|index| format!("{index}")).collect();
        assert_eq!(read(&json!({ "env": wrong })).faults().len(), limits::WISHES);
    }
}
