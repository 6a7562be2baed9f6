//! The fuzz target `settings`, implemented in `tests/src/fuzz/settings.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palisade_tests::fuzz::settings(bytes));
