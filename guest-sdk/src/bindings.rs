//! What wit-bindgen makes of `wit/`. Users never see this module; what they need of it the crate re-exports.

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    pub_export_macro: true,
    default_bindings_module: "palisade_guest::bindings",
    additional_derives: [PartialEq],
});

/// What a plugin may import beside its world; nothing of it is in a plugin that asks nothing.
pub mod asking {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package palisade:guest; world asking { import palisade:tool/client@0.1.0; }",
        world: "palisade:guest/asking",
        generate_all,
        additional_derives: [PartialEq],
    });
}

/// What a plugin may export beside its tools; only where it does, anything of it is in the plugin.
pub mod resourceful {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package palisade:guest; world resourceful { export palisade:tool/resources@0.1.0; }",
        world: "palisade:guest/resourceful",
        pub_export_macro: true,
        default_bindings_module: "palisade_guest::bindings::resourceful",
        with: { "palisade:tool/types@0.1.0": crate::bindings::palisade::tool::types },
        generate_all,
        additional_derives: [PartialEq],
    });
}

/// What a plugin may export beside its tools; only where it does, anything of it is in the plugin.
pub mod prompting {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package palisade:guest; world prompting { export palisade:tool/prompts@0.1.0; }",
        world: "palisade:guest/prompting",
        pub_export_macro: true,
        default_bindings_module: "palisade_guest::bindings::prompting",
        with: { "palisade:tool/types@0.1.0": crate::bindings::palisade::tool::types },
        generate_all,
        additional_derives: [PartialEq],
    });
}
