//! The fuzz target `paths`, implemented in `tests/src/fuzz/paths.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palisade_tests::fuzz::paths(bytes));
