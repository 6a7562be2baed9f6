//! What wit-bindgen makes of `wit/`. Users never see this module; what they need of it the crate re-exports.

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    pub_export_macro: true,
    default_bindings_module: "palisade_guest::bindings",
    additional_derives: [PartialEq],
});
