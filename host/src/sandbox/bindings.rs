//! What wasmtime generates from `wit/`, and nothing else.

#![allow(missing_docs, unreachable_pub, unused_qualifications, reason = "generated")]
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::semicolon_if_nothing_returned,
    reason = "generated"
)]

wasmtime::component::bindgen!({
    path: "wit",
    world: "plugin",
    ownership: Borrowing { duplicate_if_necessary: true },
    exports: { default: async },
});
