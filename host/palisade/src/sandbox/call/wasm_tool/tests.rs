//! The memory of a guest that has touched much of it is cleared after the answer, and the large
//! stack of quickly compiled code counts as memory.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use crate::execution::account::MemoryLimits;
use crate::execution::deferred_drop::ALONE;
use crate::execution::share::Pool;
use crate::execution::{Caller, OwnerShares, Silent, Times};
use crate::sandbox::limits::BASELINE_STACK;
use crate::sandbox::{Cache, CompileStrategy, Sandbox, Trust};
use crate::tool::{CallId, Limit};
use crate::workspace::Workspace;
use palisade_tests::Wat;
use palisade_tests::wat::Told;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns a plugin whose guest grows by 16 MiB and computes forever, with shares of its own: two
/// sandboxes and one turn.
fn looping() -> Arc<Prepared> {
    let sandbox = sandbox(CompileStrategy::OptimizedOnly);
    let code = "(drop (memory.grow (i32.const 256))) (loop (br 0)) unreachable";
    let bytes = Wat::new(Told::new("raw")).execute(code).build();
    let mut plugin = Arc::into_inner(sandbox.prepare(&bytes, Trust::Embedded).unwrap()).unwrap();
    let digest = plugin.digest;
    plugin.owner.sandboxes = Pool::new(2).share(digest);
    plugin.owner.turns = Pool::new(1).share(digest);
    Arc::new(plugin)
}

fn sandbox(strategy: CompileStrategy) -> Sandbox {
    Sandbox::new(Cache::off()).unwrap().with_strategy(strategy)
}

fn context(cancel: &CancellationToken, account: &Account) -> ToolContext {
    let caller = Caller {
        call_id: CallId::new("1"),
        session_id: None,
        turn_id: None,
        context: Value::Null,
        metadata: Map::new(),
    };
    let workspace = Arc::new(Workspace::open(&std::env::temp_dir()).unwrap());
    let times = Times { run: MINUTE, queue: MINUTE };
    let mut context = ToolContext::new(caller, workspace, cancel.clone(), times, Arc::new(Silent));
    context.set_account(account.clone());
    context
}

#[test]
fn guest_memory_is_charged_until_cleared() {
    let _alone = ALONE.lock();
    // `prepare` starts a runtime of its own, so it is called outside of a runtime.
    let plugin = looping();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(cleared_in_a_turn(&plugin));
}

async fn cleared_in_a_turn(plugin: &Arc<Prepared>) {
    let (_, factory) = plugin.factories(Limits::default(), None).unwrap().remove(0);
    let account = Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX });
    let cancel = CancellationToken::new();
    let tool = factory();
    let context = context(&cancel, &account);
    let OwnerShares { turns, sandboxes, .. } = &plugin.owner;
    let cancelled = async {
        // The guest waits for its next turn meanwhile, and ends without it.
        let turn = turns.take(1).await;
        cancel.cancel();
        turn
    };
    let (ended, turn) =
        tokio::join!(tool.execute(ValidInput::new(Value::Null), &context), cancelled);
    assert!(matches!(ended, Err(ErrorKind::Cancelled)), "{ended:?}");
    assert_eq!(context.take_report().usage.peak_memory_bytes >> 20, 16);
    assert_eq!(
        (sandboxes.pool().held(), account.held() >> 20),
        (1, 16),
        "its turn to be cleared has not come"
    );
    drop(turn);
    // The turn passes to the clearing, which releases it at its end.
    while turns.pool().held() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!((account.held(), sandboxes.pool().held()), (0, 0));
}

/// Returns the limit that refuses a call of a plugin whose code is of this strategy's first tier,
/// where all calls together may hold `total` bytes.
fn refusal(strategy: CompileStrategy, total: u64) -> Option<Limit> {
    let bytes = Wat::new(Told::new("small")).execute(Wat::DONE).build();
    let plugin = sandbox(strategy).prepare(&bytes, Trust::Embedded).unwrap();
    let (_, factory) = plugin.factories(Limits::default(), None).unwrap().remove(0);
    let account = Account::exactly(MemoryLimits { call: 32 << 20, total });
    let context = context(&CancellationToken::new(), &account);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ended = runtime.block_on(factory().execute(ValidInput::new(Value::Null), &context));
    match ended {
        Ok(_) => None,
        Err(ErrorKind::ResourceExhausted { limit, .. }) => Some(limit),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn stack_of_quickly_compiled_code_counts_as_memory() {
    let _alone = ALONE.lock();
    let others = 1 << 20;
    assert_eq!(refusal(CompileStrategy::OptimizedOnly, others), None);
    assert_eq!(refusal(CompileStrategy::BaselineFirst, others), Some(Limit::TotalMemory));
    assert_eq!(refusal(CompileStrategy::BaselineFirst, BASELINE_STACK + others), None);
}
