//! Tests that every item of `wit/` behaves as documented, through the library and through the
//! program.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![allow(clippy::needless_pass_by_value, reason = "a literal reads better than a reference to one")]

#[path = "contract/compat.rs"]
mod compat;
#[path = "contract/client.rs"]
mod contract_client;
#[path = "contract/content.rs"]
mod contract_content;
#[path = "contract/context.rs"]
mod contract_context;
#[path = "contract/definitions.rs"]
mod contract_definitions;
#[path = "contract/end.rs"]
mod contract_end;
#[path = "contract/errors.rs"]
mod contract_errors;
#[path = "contract/host.rs"]
mod contract_host;
#[path = "contract/offers.rs"]
mod contract_offers;
#[path = "contract/outcome.rs"]
mod contract_outcome;
#[path = "contract/paths.rs"]
mod contract_paths;
#[path = "contract/raw.rs"]
mod contract_raw;
#[path = "contract/structured.rs"]
mod contract_structured;
#[path = "contract/world.rs"]
mod contract_world;

use palisade_tests::is_tested;

palisade_tests::foreach_contract!(is_tested);
