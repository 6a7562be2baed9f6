//! The fuzz target `output`, implemented in `tests/src/fuzz/output.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| palisade_tests::fuzz::output(bytes));
