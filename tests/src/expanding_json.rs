//! Texts that are small but need much memory or time once they are parsed: results, inputs and
//! schemas.

use crate::Wat;
use crate::wat::Told;

/// The discriminant of a block of JSON in the canonical ABI.
const JSON: u32 = 1;
/// The address of a long answer, beyond the plugin's own data.
const FAR: u32 = 131_072;
/// An object with one member, and a comma: seven bytes, which take some 90 times as much memory as
/// a tree of values.
const MEMBER: &str = "{\"\":0},";

/// Returns a list of `members` small objects as JSON text.
#[must_use]
pub fn list(members: usize) -> String {
    format!("[{}{{\"\":0}}]", MEMBER.repeat(members.saturating_sub(1)))
}

/// Returns the length of such a list, in bytes.
fn length(members: u32) -> u32 {
    1 + 7 * members
}

/// Returns a plugin that writes a list of `members` small objects, and returns the list as its
/// result.
#[must_use]
pub fn answering(tool: &str, members: u32) -> Wat {
    let (end, last) = (FAR + 1 + 7 * members, FAR + length(members) - 1);
    // Write the seven bytes of a member as one word: the eighth byte is overwritten by the next
    // member.
    let write = format!(
        "(local $at i32) (drop (memory.grow (i32.const {pages}))) (i32.store8 (i32.const {FAR}) (i32.const 91))
         (local.set $at (i32.const {first}))
         (loop (i64.store (local.get $at) (i64.const 0x2c7d303a22227b))
           (br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 7))) (i32.const {end}))))
         (i32.store8 (i32.const {last}) (i32.const 93))",
        pages = length(members) / 65_536 + 3,
        first = FAR + 1,
    );
    Wat::new(Told::new(tool)).answering_block(&write, JSON, FAR, length(members))
}

/// Returns a plugin whose result is this JSON, with the output schema `output`.
///
/// # Panics
///
/// If the text does not fit into the plugin's memory.
#[must_use]
pub fn described(tool: &str, output: &str, json: &str) -> Wat {
    let escaped: String = json.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let length = u32::try_from(json.len()).expect("a text of a test is small");
    let told = Told { output: Some(output.to_owned()), ..Told::new(tool) };
    // Copy the text to an address beyond the plugin's own data.
    let data = format!("(data $json \"{escaped}\")");
    let copy = format!(
        "(drop (memory.grow (i32.const {}))) (memory.init $json (i32.const 1048576) (i32.const 0) (i32.const {length}))",
        17 + length / 65_536 + 1
    );
    Wat::new(told).extra(&data).answering_block(&copy, JSON, 1_048_576, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_its_declared_length() {
        for members in [1, 2, 1000] {
            let text = list(members as usize);
            assert_eq!(text.len(), length(members) as usize);
            let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(read.as_array().map(Vec::len), Some(members as usize));
        }
    }
}
