//! The fuzz target `schema`, implemented in `tests/src/fuzz/schema.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palisade_tests::fuzz::schema(bytes));
