//! The bindings that wit-bindgen generates from `wit/`. Internal: the crate re-exports their public
//! parts.

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    pub_export_macro: true,
    default_bindings_module: "palisade_guest::bindings",
    additional_derives: [PartialEq],
});

/// Imports for questions to the client. A plugin only contains them if it uses them.
pub mod asking {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package palisade:guest; world asking { import palisade:tool/client@0.1.0; }",
        world: "palisade:guest/asking",
        generate_all,
        additional_derives: [PartialEq],
    });
}

/// Imports for calls of other tools. A plugin only contains them if it uses them.
pub mod calling {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package palisade:guest; world calling { import palisade:tool/tools@0.1.0; }",
        world: "palisade:guest/calling",
        with: { "palisade:tool/types@0.1.0": crate::bindings::palisade::tool::types },
        generate_all,
        additional_derives: [PartialEq],
    });
}

/// Exports for resources. A plugin only contains them if it offers resources.
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

/// Exports for prompts. A plugin only contains them if it offers prompts.
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
