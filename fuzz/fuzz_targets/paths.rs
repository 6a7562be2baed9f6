//! The border `paths`: see `tests/src/fuzz/paths.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palisade_tests::fuzz::paths(bytes));
