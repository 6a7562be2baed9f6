//! The `palisade:tool/tools` interface: the calls that a running guest makes of other tools.

use super::called_content::to_wit;
use super::client_requests::ClientExit;
use super::denied::Denied;
use super::guest_signals::GuestSignals;
use super::interrupt::Interrupted;
use crate::execution::account::{Account, Charge};
use crate::execution::clock::CallClock;
use crate::execution::{NestedCall, ToolCaller, ToolContext};
use crate::sandbox::bindings::calling::palisade::tool::tools::{Failure, Listed, Reply, Request};
use crate::sandbox::bindings::palisade::tool::types::SideEffects as WitClass;
use crate::tool::text::{cut, elided, visible};
use crate::tool::{Definition, ErrorKind, SideEffects, ToolError, ToolPattern, ToolResult};
use std::sync::Arc;
use std::time::Instant;

/// The most characters of a place in a program.
const PLACE: usize = 200;

/// The tools that a guest may call, and the memory of the latest answer.
pub(crate) struct ToolCalls {
    caller: Arc<dyn ToolCaller>,
    granted: Arc<[ToolPattern]>,
    clock: Arc<CallClock>,
    account: Account,
    /// The memory of the latest answer, which counts until the next one: the engine copies the
    /// answer into the guest after the host has returned it.
    answer: Option<Charge>,
}

impl ToolCalls {
    /// Creates the state of a call, if its plugin may call other tools.
    pub(crate) fn of(context: &ToolContext, granted: Arc<[ToolPattern]>) -> Option<Self> {
        let caller = context.tools().filter(|_| !granted.is_empty())?.clone();
        let (clock, account) = (context.clock().clone(), context.account());
        Some(Self { caller, granted, clock, account, answer: None })
    }

    pub(super) fn list(&mut self) -> wasmtime::Result<Vec<Listed>> {
        self.answer = None;
        let mut charge = self.charge(0)?;
        let mut tools = Vec::new();
        for definition in self.caller.list(&self.granted) {
            let tool = listed(&definition);
            charge.grow(size_of_listed(&tool) as u64).map_err(Denied)?;
            tools.push(tool);
        }
        self.answer = Some(charge);
        Ok(tools)
    }

    pub(super) async fn call(
        &mut self,
        requests: Vec<Request>,
        signals: &GuestSignals,
    ) -> wasmtime::Result<Vec<Result<Reply, Failure>>> {
        self.answer = None;
        let calls = requests.into_iter().map(nested).collect();
        let (caller, granted) = (self.caller.clone(), self.granted.clone());
        let running = signals.run_calls(async move { caller.call(&granted, calls).await });
        let results = running.await.ok_or(Interrupted::Cancelled)?.map_err(ClientExit::from)?;
        if self.clock.left().is_zero() {
            // The guest gets no results any more, which may be long.
            return Err(Interrupted::Deadline.into());
        }
        self.answer = Some(self.charge(results.iter().map(ToolResult::footprint).sum())?);
        Ok(results.into_iter().map(answer).collect())
    }

    /// Returns the deadline of the guest.
    pub(super) fn deadline(&self) -> Instant {
        self.clock.deadline().into_std()
    }

    fn charge(&self, bytes: usize) -> Result<Charge, Denied> {
        self.account.charge(bytes as u64).map_err(Denied)
    }
}

fn nested(Request { tool, input, place }: Request) -> NestedCall {
    let place = place.map(|place| elided(&visible(cut(&place, 4 * PLACE)), PLACE));
    NestedCall { tool, input, place: place.filter(|place| !place.trim().is_empty()) }
}

fn answer(result: ToolResult) -> Result<Reply, Failure> {
    let failure = result.error().map(|error| (error.class(), reason(error)));
    let content: Vec<_> = result.into_content().into_iter().map(to_wit).collect();
    match failure {
        None => Ok(Reply { content }),
        Some((class, message)) => {
            Err(Failure { class: class.as_str().to_owned(), message, content })
        }
    }
}

/// Returns the reason of a failure, and for a refusal that a setting lifts, the way out. Only the
/// operator is told the setting itself: a program is not to talk a user into changing it.
fn reason(error: &ToolError) -> String {
    let reason = error.reason();
    match error.kind() {
        ErrorKind::PermissionDenied { advice: Some(_), .. } => {
            format!("{reason}; ask the user: the person who runs palisade can allow it")
        }
        _ => reason,
    }
}

fn listed(definition: &Definition) -> Listed {
    Listed {
        name: definition.name().to_string(),
        title: definition.title().map(str::to_owned),
        description: definition.description().to_owned(),
        input_schema: definition.parameters().to_string(),
        output_schema: definition.output_schema().map(|schema| schema.as_value().to_string()),
        side_effects: class(definition.side_effects()),
    }
}

/// Returns the memory of a listed tool, in bytes.
fn size_of_listed(tool: &Listed) -> usize {
    let Listed { name, title, description, input_schema, output_schema, side_effects: _ } = tool;
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = name.len() + description.len() + input_schema.len();
    size_of::<Listed>() + texts + optional(title) + optional(output_schema)
}

fn class(class: SideEffects) -> WitClass {
    match class {
        SideEffects::None => WitClass::None,
        SideEffects::Read => WitClass::Read,
        SideEffects::Write => WitClass::Write,
        SideEffects::Execute => WitClass::Execute,
        SideEffects::Network => WitClass::Network,
    }
}
