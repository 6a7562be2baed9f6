//! The border `settings`: see `tests/src/fuzz/settings.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palisade_tests::fuzz::settings(bytes));
