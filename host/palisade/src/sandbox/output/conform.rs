//! Validation of a tool's output against the schema that the tool declares.

use super::convert::Terms;
use crate::execution::account::CallBudget;
use crate::execution::offload::{is_short, offload};
use crate::execution::{Outcome, ToolOutput};
use crate::tool::budget::{Budget, Exhausted};
use crate::tool::json::Json;
use crate::tool::schema::Violations;
use crate::tool::{Content, Definition, ErrorKind, Schema};
use std::sync::Arc;

/// Returns the output if it conforms to the schema of its tool. The parsed value is dropped after
/// its validation. A long validation runs off the runtime's threads, until the deadline of the call
/// or its cancellation.
pub(crate) async fn conforming(
    output: ToolOutput,
    definition: &Definition,
    terms: &Terms<'_>,
) -> Result<ToolOutput, ErrorKind> {
    let Some(schema) = definition.output_schema().filter(|_| output.outcome == Outcome::Success)
    else {
        return Ok(output);
    };
    let [Content::Json(json)] = output.content.as_slice() else {
        return Err(terms
            .promiser
            .breach("it has an output schema, so a successful output is exactly one json block"));
    };
    let exhausted = |why| terms.exhausted(why);
    if let Some(verdict) = judge_in_place(json, schema, terms.budget).map_err(exhausted)? {
        return verdict.map(|()| output).map_err(|wrong| schema_breach(&wrong, terms));
    }
    let judged =
        Box::pin(judge_offloaded(output, schema.clone(), terms)).await.map_err(exhausted)?;
    judged.map_err(|wrong| schema_breach(&wrong, terms))
}

/// Returns the verdict on a short output, or `None` if its validation would take too long here.
fn judge_in_place(
    json: &Json,
    schema: &Schema,
    budget: &CallBudget,
) -> Result<Option<Result<(), Violations>>, Exhausted> {
    if !is_short(json.as_str().len(), json.footprint()) {
        return Ok(None);
    }
    let (value, kept) = json.to_value_within(budget)?;
    let verdict = schema.validate_at_once(&value);
    drop(value);
    budget.release(kept);
    Ok(verdict)
}

async fn judge_offloaded(
    output: ToolOutput,
    schema: Schema,
    terms: &Terms<'_>,
) -> Result<Result<ToolOutput, Violations>, Exhausted> {
    let judge = move |budget: Arc<dyn Budget>| {
        let [Content::Json(json)] = output.content.as_slice() else { return Ok(Ok(output)) };
        let (value, kept) = json.to_value_within(&*budget)?;
        let verdict = schema.validate_within(&value, &budget);
        drop(value);
        budget.release(kept);
        Ok(verdict?.map(|()| output))
    };
    offload(terms.budget, terms.turns, judge).await
}

fn schema_breach(wrong: &Violations, terms: &Terms<'_>) -> ErrorKind {
    terms.promiser.breach(&format!("its output breaks its own schema: {wrong}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its call has failed")]
    use super::*;
    use crate::execution::account::Account;
    use crate::execution::account::budget_checks::wait_until_exhausted;
    use crate::execution::share::Pool;
    use crate::sandbox::Limits;
    use crate::sandbox::output::Promiser;
    use crate::tool::{Digest, SideEffects};
    use serde_json::{Value, json};
    use std::time::{Duration, Instant};
    use tokio_util::sync::CancellationToken;

    const LONG: Duration = Duration::from_secs(60);
    /// The timeout of a judgement that waits for its deadline.
    const SHORT: Duration = Duration::from_secs(1);

    fn account() -> Account {
        Limits::default().account()
    }

    /// Judges an output by the schema of its elements.
    async fn judge(
        output: Value,
        elements: &Value,
        account: &Account,
        time: Duration,
        cancel: CancellationToken,
    ) -> Result<ToolOutput, ErrorKind> {
        let schema = json!({"type": "array", "items": elements});
        let definition =
            Definition::new("t", "A tool.", SideEffects::None, json!({"type": "object"})).unwrap();
        let definition = definition.with_checked_output(Schema::output(schema).unwrap());
        let output =
            ToolOutput { content: vec![Content::Json(output.into())], ..ToolOutput::default() };
        let budget = CallBudget::new(account.clone(), Instant::now() + time, cancel);
        let turns = Pool::new(1).share(Digest::of(b"a plugin"));
        let (class, promiser) = (SideEffects::None, Promiser::Plugin);
        let terms = Terms { budget: &budget, turns: &turns, time, class, promiser };
        conforming(output, &definition, &terms).await
    }

    /// Judges a long output that ends its budget, once `end` was called, within the given budget
    /// check. Returns the error and the number of checks.
    async fn judge_until(
        check: usize,
        time: Duration,
        cancel: CancellationToken,
        elements: &Value,
        end: impl Fn() + Send + Sync + 'static,
    ) -> (Option<ErrorKind>, usize) {
        let account = account();
        account.on_budget_check(move |number, budget| {
            if number == check {
                end();
                wait_until_exhausted(budget);
            }
        });
        let long = (0..20_000).collect();
        let error = judge(long, elements, &account, time, cancel).await.err();
        (error, account.count_budget_checks().await)
    }

    #[tokio::test]
    async fn long_output_check_ends_at_deadline_or_cancellation() {
        let cancel = CancellationToken::new();
        let costly = json!({"allOf": vec![json!({"minimum": -1}); 20]});
        let unhindered =
            async |elements| judge_until(0, LONG, CancellationToken::new(), elements, || {}).await;
        let cheap = json!({});
        let (_, parsing) = unhindered(&cheap).await;
        let (fine, whole) = unhindered(&costly).await;
        let midway = 2 * parsing;
        assert!(fine.is_none() && whole > 2 * midway, "{fine:?}, {parsing} of {whole}");

        let (late, checks) =
            judge_until(midway, SHORT, CancellationToken::new(), &costly, || {}).await;
        assert!(
            matches!(late, Some(ErrorKind::Timeout { limit: SHORT, class: SideEffects::None, .. })),
            "{late:?}"
        );
        assert_eq!(checks, midway);

        let own = cancel.clone();
        let (cancelled, checks) =
            judge_until(midway, LONG, cancel, &costly, move || own.cancel()).await;
        assert!(matches!(cancelled, Some(ErrorKind::Cancelled)), "{cancelled:?}");
        assert_eq!(checks, midway);
    }

    #[tokio::test]
    async fn short_output_is_checked_at_once() {
        let integers = json!({"type": "integer"});
        let judge = async |output| {
            let cancel = CancellationToken::new();
            judge(output, &integers, &account(), Duration::ZERO, cancel).await
        };
        assert!(judge(json!([1, 2])).await.is_ok());
        let wrong = judge(json!([1, "2"])).await.unwrap_err();
        assert!(wrong.to_string().contains("`/1`: want integer, got string"), "{wrong}");
    }
}
