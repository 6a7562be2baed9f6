//! The bindings that wasmtime generates from `wit/`, and nothing else.

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

/// The interfaces that a plugin may import in addition to its world.
pub(super) mod asking {
    wasmtime::component::bindgen!({
        path: "wit",
        inline: "package palisade:host; world asking { import palisade:tool/client@0.1.0; }",
        world: "palisade:host/asking",
        imports: {
            "palisade:tool/client.ask": async | trappable,
            "palisade:tool/client.need": trappable,
        },
    });
}

/// The interface through which a plugin may call other tools.
pub(super) mod calling {
    wasmtime::component::bindgen!({
        path: "wit",
        inline: "package palisade:host; world calling { import palisade:tool/tools@0.1.0; }",
        world: "palisade:host/calling",
        imports: {
            "palisade:tool/tools.call": async | trappable,
            "palisade:tool/tools.call-all": async | trappable,
            "palisade:tool/tools.list": trappable,
        },
        with: { "palisade:tool/types": crate::sandbox::bindings::palisade::tool::types },
    });
}

/// The interfaces that a plugin may export in addition to its tools. Each has its own world,
/// because a plugin may export one without the other.
pub(super) mod offering {
    pub(in super::super) mod resourceful {
        wasmtime::component::bindgen!({
            path: "wit",
            inline: "package palisade:host; world resourceful { export palisade:tool/resources@0.1.0; }",
            world: "palisade:host/resourceful",
            exports: { default: async },
            with: { "palisade:tool/types": crate::sandbox::bindings::palisade::tool::types },
        });
    }

    pub(in super::super) mod prompting {
        wasmtime::component::bindgen!({
            path: "wit",
            inline: "package palisade:host; world prompting { export palisade:tool/prompts@0.1.0; }",
            world: "palisade:host/prompting",
            exports: { default: async },
            with: { "palisade:tool/types": crate::sandbox::bindings::palisade::tool::types },
        });
    }
}
