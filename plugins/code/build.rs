//! Asks the linker for the stack that a JavaScript engine needs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Programs recurse through the engine, which takes some 2 KiB of stack for each call.
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=-zstack-size=1048576");
    }
}
