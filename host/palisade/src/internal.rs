//! Parts that the other crates of this repository share with this one: the shell tool, the MCP
//! server and the program. They may change in any release, so that programs which embed the host
//! use the other modules.

pub use crate::confirm::call_confirmer::{AnswerTime, CallAnswer, CallConfirmer};
pub use crate::dispatch::approve::question::{CONFIRMATION_TIMEOUT, MAX_CONFIRMATION_TIMEOUT};
pub use crate::dispatch::{Admission, ProgramRecord};
pub use crate::execution::account::{
    Account, CallBudget, Charge, ClientShares, MemoryLimits, Owed, address_space_limit,
    fits_address_space,
};
pub use crate::execution::blocking::{BlockingError, is_thread_limit, run_blocking};
pub use crate::execution::catch_panic::catch_panic;
pub use crate::execution::inherited::{
    closes as closing_redirections, inherited as inherited_descriptors, without_inherited,
};
pub use crate::execution::offload::{IN_PLACE, InPlaceBudget, exhaustion_error, is_short, offload};
pub use crate::execution::owner::{
    answer_turns, client_shares, expect_one_call, guest_descriptors, input_turns_of,
    input_turns_within,
};
pub use crate::execution::runtime::{multi_thread_runtime, runtime_of};
pub use crate::execution::share::{Full, Grant, Pool, Share};
pub use crate::execution::{NESTED_CALLS, ToolTime};
pub use crate::host::cache::{default_cache, is_unwritable, open_cache};
pub use crate::host::recorded::{Recorded, recorded_settings, remember};
pub use crate::host::state::{state_directories, usual_state_directory};
pub use crate::plugins::reserved::{owner as shipped_owner, tools_of as shipped_tools};
pub use crate::registry::origin::NATIVE;
pub use crate::sandbox::call::{Offered, ROLES};
pub use crate::sandbox::engine::system_check::check as check_system;
pub use crate::sandbox::limits::memory::usable as usable_memory;
pub use crate::sandbox::powers::{CallState, PluginPowers, PoweredCall, Powers, Refusals};
pub use crate::session::CONCURRENCY;
pub use crate::tool::result::{millis, named_file};
pub use crate::tool::sandbox_contents::{Power, sandbox_contents};
pub use crate::workspace::private::{
    Missing, open_deciding_file, open_private_directory, open_turn_file, open_unreplaceable_file,
};
pub use crate::workspace::within;
pub use palisade_schema::json::footprint;
pub use palisade_schema::schema::hidden_in;
pub use palisade_wasi_fs::PRIVATE_PREFIX;
pub use palisade_wasi_fs::internal::{
    FormerPermissions, Mounts, may_be_planted, open_regular, open_regular_at, take_permissions,
};

/// The contract, as the names and the texts of its files.
pub const CONTRACT: [(&str, &str); 8] = [
    ("client.wit", include_str!("../wit/client.wit")),
    ("host.wit", include_str!("../wit/host.wit")),
    ("prompts.wit", include_str!("../wit/prompts.wit")),
    ("resources.wit", include_str!("../wit/resources.wit")),
    ("tool.wit", include_str!("../wit/tool.wit")),
    ("tools.wit", include_str!("../wit/tools.wit")),
    ("types.wit", include_str!("../wit/types.wit")),
    ("world.wit", include_str!("../wit/world.wit")),
];
