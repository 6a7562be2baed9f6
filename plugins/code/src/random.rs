//! Random numbers that depend on the program alone, so that the same program runs in the same way.

use boa_engine::{Context, JsResult, JsValue};
use std::cell::Cell;

thread_local! {
    /// The state of a generator of the kind xorshift64*. Source: S. Vigna, "An experimental
    /// exploration of Marsaglia's xorshift generators, scrambled", 2014.
    static STATE: Cell<u64> = const { Cell::new(1) };
}

/// Seeds the generator with the text of a program, by the hash FNV-1a.
pub(crate) fn seed(program: &str) {
    let hash = program.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The state must not be zero.
    STATE.set(hash | 1);
}

/// `Math.random` of programs: a number from 0 up to and without 1.
pub(crate) fn random(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<JsValue> {
    let mut state = STATE.get();
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    STATE.set(state);
    let bits = u32::try_from(state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32).unwrap_or_default();
    Ok((f64::from(bits) / 4_294_967_296.0).into())
}
