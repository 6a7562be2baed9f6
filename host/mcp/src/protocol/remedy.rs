//! The remedies of a failed call: for the reader of its result, and for the operator of the server.
//!
//! Many clients show only the first block of a result, and pass every block to the model, also one
//! for another audience. So the first block has the remedy for its readers, and a setting that
//! allows a call is named only in the log: a model could otherwise talk a user into changing it.

use palisade::{ErrorClass, ErrorKind, PermissionReason, ToolError, ToolResult};
use rmcp::model::{CallToolResult, ContentBlock};

/// Whether the user of a client can be asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elicitation {
    Declared,
    Undeclared,
    /// The server lets only its operator answer, whatever the client has declared.
    Unused,
}

impl Elicitation {
    fn is_possible(self) -> bool {
        match self {
            Self::Declared => true,
            Self::Undeclared | Self::Unused => false,
        }
    }
}

/// The party that starts the server, and so gives it its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartedBy {
    /// Its client, as configured there. The operator may know nothing else.
    Client,
    /// The operator.
    Operator,
}

impl StartedBy {
    /// Returns the place for options.
    fn options(self) -> &'static str {
        match self {
            Self::Client => "options go among the server's arguments in the client's configuration",
            Self::Operator => "options go among the arguments that this server is started with",
        }
    }
}

/// Returns the remedy for the readers of the result, the model and its user. It follows the error's
/// text.
pub(super) fn for_reader(error: &ToolError, elicitation: Elicitation) -> Option<String> {
    match error.kind() {
        ErrorKind::PermissionDenied { advice: Some(_), .. }
        | ErrorKind::Execution { advice: Some(_), .. } => Some(
            "ask the user: the person who runs this server can allow it, and the server's log \
             (its standard error) says how"
                .to_owned(),
        ),
        ErrorKind::UserDenied | ErrorKind::NoAnswer if !elicitation.is_possible() => {
            Some("do not repeat it unasked".to_owned())
        }
        ErrorKind::ConfirmationTimeout { .. } if !elicitation.is_possible() => {
            Some("make the call again when the operator of the server can answer".to_owned())
        }
        ErrorKind::UserDenied | ErrorKind::NoAnswer => Some(
            "do not repeat it unasked. If the user saw no question, the client shows none; then \
             the server's log (its standard error) says how to allow such calls"
                .to_owned(),
        ),
        ErrorKind::ConfirmationTimeout { .. } => Some(
            "make the call again when the user can answer. If the user saw no question, the \
             client shows none; then the server's log (its standard error) says how to allow \
             such calls"
                .to_owned(),
        ),
        ErrorKind::Timeout { input: Some(_), .. } => error.advice(),
        _ => None,
    }
}

/// Returns the remedy for the operator of the server, if only the operator has one.
pub(crate) fn for_operator(
    error: &ToolError,
    started: StartedBy,
    elicitation: Elicitation,
) -> Option<String> {
    let options = started.options();
    match error.kind() {
        ErrorKind::PermissionDenied { .. } => Some(format!("{}; {options}", error.advice()?)),
        // An operator has answered, or has missed the question, and knows it.
        ErrorKind::UserDenied | ErrorKind::NoAnswer | ErrorKind::ConfirmationTimeout { .. }
            if !elicitation.is_possible() =>
        {
            None
        }
        ErrorKind::UserDenied | ErrorKind::NoAnswer | ErrorKind::ConfirmationTimeout { .. } => {
            Some(format!(
                "if the client shows no questions, `--allow CLASS` lets a class of tools run unasked; \
             {options}"
            ))
        }
        ErrorKind::Timeout { input: Some(_), .. } => None,
        _ if error.class() == ErrorClass::NotFound => None,
        _ => error.advice(),
    }
}

/// Returns what to know about a call that nobody could be asked about: that its client does not
/// ask, and the console.
pub(crate) fn of_unasked(
    result: &ToolResult,
    elicitation: Elicitation,
    console: Option<&str>,
) -> Option<String> {
    let ErrorKind::PermissionDenied { reason: PermissionReason::NoConfirmer, .. } =
        result.error()?.kind()
    else {
        return None;
    };
    let client = match elicitation {
        Elicitation::Declared => None,
        Elicitation::Undeclared => {
            Some("this client has declared no `elicitation`, so it cannot ask its user".to_owned())
        }
        Elicitation::Unused => Some("only the operator of this server answers".to_owned()),
    };
    let console = console.map(|console| {
        format!(
            "while the server's console ({console}) is open, such a call waits there for an answer"
        )
    });
    let all: Vec<String> = client.into_iter().chain(console).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Adds a remedy to the first block of a result, the only one that all clients show.
pub(crate) fn add_remedy(answer: &mut CallToolResult, remedy: &str) {
    if let Some(ContentBlock::Text(first)) = answer.content.first_mut() {
        first.text = format!("{}; {remedy}", first.text);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::{Advice, CallId, Limit, PermissionReason, Places, SideEffects, ToolResult};
    use std::sync::Arc;
    use std::time::Duration;

    fn of(kind: ErrorKind) -> (Option<String>, Option<String>) {
        let result = ToolResult::failure(CallId::new("c"), "t", kind);
        let places = Arc::new(Places::new("in palisade.toml"));
        let error = result.error().unwrap().clone().with_places(places);
        let elicitation = Elicitation::Declared;
        let operator = for_operator(&error, StartedBy::Client, elicitation);
        (for_reader(&error, elicitation), operator)
    }

    #[test]
    fn setting_is_named_to_the_operator_only() {
        let advice = Advice::setting("allow it with `--allow write`", "policy.classes");
        let denied = ErrorKind::denied_with(PermissionReason::NoConfirmer, "no", advice);
        let after = Duration::from_secs(300);
        for kind in [denied, ErrorKind::UserDenied, ErrorKind::ConfirmationTimeout { after }] {
            let (reader, operator) = of(kind);
            let (reader, operator) = (reader.unwrap(), operator.unwrap());
            assert!(!reader.contains("--allow") && reader.contains("the server's log"), "{reader}");
            assert!(operator.contains("--allow"), "{operator}");
            assert!(operator.ends_with("in the client's configuration"), "{operator}");
        }
        let raised = ErrorKind::ResourceExhausted { limit: Limit::Memory, value: 1 };
        let (reader, operator) = of(raised);
        assert!(reader.is_none() && operator.unwrap().contains("`limits.memory`"));
    }

    #[test]
    fn client_over_http_has_no_arguments_of_the_server() {
        let result = ToolResult::failure(CallId::new("c"), "t", ErrorKind::UserDenied);
        let remedy =
            for_operator(result.error().unwrap(), StartedBy::Operator, Elicitation::Declared)
                .unwrap();
        assert!(remedy.ends_with("the arguments that this server is started with"), "{remedy}");
        assert!(!remedy.contains("client's configuration"), "{remedy}");
    }

    #[test]
    fn client_that_does_not_ask_is_named_as_the_cause() {
        let denied = ErrorKind::denied(PermissionReason::NoConfirmer, "no");
        let result = ToolResult::failure(CallId::new("c"), "t", denied);
        let told = of_unasked(&result, Elicitation::Undeclared, None).unwrap();
        assert!(told.contains("declared no `elicitation`"), "{told}");
        let told = of_unasked(&result, Elicitation::Undeclared, Some("there")).unwrap();
        assert!(told.contains("no `elicitation`") && told.contains("(there) is open"), "{told}");
        assert_eq!(of_unasked(&result, Elicitation::Declared, None), None);
        let told = of_unasked(&result, Elicitation::Unused, None).unwrap();
        assert!(told.contains("only the operator"), "{told}");
    }

    #[test]
    fn console_is_named_where_nobody_could_be_asked() {
        let remedy = |kind, console| {
            let result = ToolResult::failure(CallId::new("c"), "t", kind);
            of_unasked(&result, Elicitation::Declared, console)
        };
        let denied = |reason| ErrorKind::denied_with(reason, "no", Advice::new("allow it"));
        let console = Some("http://127.0.0.1:8080");
        let named = remedy(denied(PermissionReason::NoConfirmer), console).unwrap();
        assert!(named.contains("(http://127.0.0.1:8080) is open"), "{named}");
        assert_eq!(remedy(denied(PermissionReason::Policy), console), None);
        assert_eq!(remedy(ErrorKind::UserDenied, console), None);
        assert_eq!(remedy(denied(PermissionReason::NoConfirmer), None), None);
    }

    #[test]
    fn reader_who_can_act_is_told() {
        let limit = Duration::from_secs(1);
        let class = SideEffects::Execute;
        let own = ErrorKind::Timeout { limit, class, input: Some("timeout_ms") };
        let (reader, operator) = of(own);
        assert!(reader.unwrap().contains("`timeout_ms`") && operator.is_none());
        let (reader, operator) = of(ErrorKind::Timeout { limit, class, input: None });
        assert!(reader.is_none() && operator.unwrap().contains("--timeout"));
        assert_eq!(of(ErrorKind::Cancelled), (None, None));
    }
}
