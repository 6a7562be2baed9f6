//! Plugins that are cheap to describe and expensive to compile.

use std::fmt::Write as _;

use crate::Wat;
use crate::wat::Told;

/// Returns a valid plugin that takes about a minute to compile: one function of it has many
/// branches to many targets, with different locals on each path.
#[must_use]
pub fn costly_to_compile(tool: &str) -> Vec<u8> {
    Wat::new(Told::new(tool)).extra(&knot(800, 64)).build()
}

/// Returns a plugin like [`costly_to_compile`] that takes a second or a few to compile.
#[must_use]
pub fn seconds_to_compile(tool: &str) -> Vec<u8> {
    Wat::new(Told::new(tool)).extra(&knot(200, 64)).build()
}

/// Returns a small plugin that differs from [`costly_to_compile`] in size only.
#[must_use]
pub fn cheap_to_compile(tool: &str) -> Vec<u8> {
    Wat::new(Told::new(tool)).extra(&knot(4, 4)).build()
}

/// Returns a plugin with an unused module that holds `bytes` bytes of data.
///
/// # Panics
///
/// If the module exceeds the size limit of a section.
#[must_use]
pub fn large_to_compile(tool: &str, bytes: usize) -> Vec<u8> {
    let segment = [vec![1, 1], number(bytes), vec![0; bytes]].concat();
    let module = [b"\0asm\x01\0\0\0".to_vec(), vec![11], number(segment.len()), segment].concat();
    [Wat::new(Told::new(tool)).build(), vec![1], number(module.len()), module].concat()
}

/// Encodes a number as LEB128, padded to five bytes.
fn number(value: usize) -> Vec<u8> {
    let value = u32::try_from(value).expect("a section of a test is small");
    (0..5).map(|n| (value >> (7 * n)) as u8 & 0x7f | if n < 4 { 0x80 } else { 0 }).collect()
}

/// Returns a function of nested blocks, each of which ends in a branch to any enclosing block.
fn knot(blocks: usize, locals: usize) -> String {
    let mut text =
        format!("(func (export \"knot\") (param i32) (local {}) ", "i32 ".repeat(locals));
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
