//! The fuzz target `component`, implemented in `tests/src/fuzz/component.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palisade_tests::fuzz::component(bytes));
