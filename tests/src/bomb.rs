//! Plugins that are cheap to describe and costly to compile.

use std::fmt::Write as _;

use crate::Wat;
use crate::wat::Told;

/// A plugin without fault, one function of which joins so many ways to so many places, with locals that differ on each, that compiling it takes a minute.
#[must_use]
pub fn costly_to_compile(tool: &str) -> Vec<u8> {
    Wat::new(Told::new(tool)).extra(&knot(800, 64)).build()
}

/// The same shape, of a size that takes a second or some.
#[must_use]
pub fn seconds_to_compile(tool: &str) -> Vec<u8> {
    Wat::new(Told::new(tool)).extra(&knot(200, 64)).build()
}

/// The same shape, small: what the costly one differs from in nothing but size.
#[must_use]
pub fn cheap_to_compile(tool: &str) -> Vec<u8> {
    Wat::new(Told::new(tool)).extra(&knot(4, 4)).build()
}

/// A plugin with a module that is never used, and that holds so many bytes of data.
///
/// # Panics
///
/// Where it would not fit into a component.
#[must_use]
pub fn large_to_compile(tool: &str, bytes: usize) -> Vec<u8> {
    let segment = [vec![1, 1], number(bytes), vec![0; bytes]].concat();
    let module = [b"\0asm\x01\0\0\0".to_vec(), vec![11], number(segment.len()), segment].concat();
    [Wat::new(Told::new(tool)).build(), vec![1], number(module.len()), module].concat()
}

/// A number as the binary form writes it, in five bytes.
fn number(value: usize) -> Vec<u8> {
    let value = u32::try_from(value).expect("a section of a test is small");
    (0..5).map(|n| (value >> (7 * n)) as u8 & 0x7f | if n < 4 { 0x80 } else { 0 }).collect()
}

/// A function of nested blocks, each of which ends in a jump to any of those around it.
fn knot(blocks: usize, locals: usize) -> String {
    let mut text = format!("(func (export \"knot\") (param i32) (local {}) ", "i32 ".repeat(locals));
    text.push_str(&"block ".repeat(blocks));
    for level in (1..blocks).rev() {
        let (local, other) = (1 + level % locals, 1 + (level * 7 + 3) % locals);
        let targets: Vec<String> = (0..=level).map(|target| target.to_string()).collect();
        let _ = write!(
            text,
            "local.get {other} i32.const {level} i32.add local.set {local} local.get 0 br_table {} end ",
            targets.join(" ")
        );
    }
    text.push_str("end)");
    text
}
