//! The fuzz target `reply`, implemented in `tests/src/fuzz/reply.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palisade_tests::fuzz::reply(bytes));
