//! What is small as text and large once it is read: results, inputs and schemas that make the host hold or compute much.

use crate::Wat;
use crate::wat::Told;

/// The case of a block of JSON.
const JSON: u32 = 1;
/// Where a long answer lies.
const FAR: u32 = 131_072;
/// An object of one member, with a comma: seven bytes, and some 90 times as much as a tree of values.
const MEMBER: &str = "{\"\":0},";

/// So many small objects in a list.
#[must_use]
pub fn list(members: usize) -> String {
    format!("[{}{{\"\":0}}]", MEMBER.repeat(members.saturating_sub(1)))
}

/// The length of such a list.
fn length(members: u32) -> u32 {
    1 + 7 * members
}

/// A plugin that answers with a list of so many small objects, which it writes itself.
#[must_use]
pub fn answering(tool: &str, members: u32) -> Wat {
    let (end, last) = (FAR + 1 + 7 * members, FAR + length(members) - 1);
    // The seven bytes of a member as one word; the eighth is overwritten by the next one.
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

/// A plugin that answers with this JSON, which its own schema describes.
///
/// # Panics
///
/// Where the text is longer than a plugin can hold.
#[must_use]
pub fn described(tool: &str, output: &str, json: &str) -> Wat {
    let escaped: String = json.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let length = u32::try_from(json.len()).expect("a text of a test is small");
    let told = Told { output: Some(output.to_owned()), ..Told::new(tool) };
    // The text is copied to where nothing else lies: the plugin's own data stand before it.
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
    fn a_list_is_as_long_as_it_says() {
        for members in [1, 2, 1000] {
            let text = list(members as usize);
            assert_eq!(text.len(), length(members) as usize);
            let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(read.as_array().map(Vec::len), Some(members as usize));
        }
    }
}
