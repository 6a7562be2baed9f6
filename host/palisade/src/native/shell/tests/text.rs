//! Tests of decoding output chunks to text.

use super::Heard;
use crate::native::shell::output::{EMITTED, KEPT, Output};

fn pieces(pieces: &[&[u8]]) -> (String, String) {
    let mut output = Output::default();
    let heard = Heard::default();
    pieces.iter().for_each(|piece| output.push(piece, &heard));
    output.finish(&heard);
    (output.text(), heard.text())
}

#[test]
fn split_character_is_joined() {
    let crab = "a🦀b".as_bytes();
    for cut in 0..=crab.len() {
        let both = pieces(&[&crab[..cut], &crab[cut..]]);
        assert_eq!(both, ("a🦀b".to_owned(), "a🦀b".to_owned()), "{cut}");
    }
    assert_eq!(pieces(&[&crab[..2], &crab[2..3], &crab[3..]]).0, "a🦀b");
}

#[test]
fn invalid_utf8_is_replaced() {
    assert_eq!(pieces(&[b"a\xffb"]).0, "a\u{fffd}b");
    assert_eq!(pieces(&[b"a\xf0\x9f", b"b"]).0, "a\u{fffd}b");
    assert_eq!(pieces(&[b"a\xf0\x9f"]).0, "a\u{fffd}");
    assert_eq!(pieces(&[b"\xf0", b"\x9f", b"\xa6", b"\xff"]).0, "\u{fffd}\u{fffd}");
}

#[test]
fn long_output_keeps_both_ends() {
    let mut output = Output::default();
    let heard = Heard::default();
    output.push("a".repeat(KEPT).as_bytes(), &heard);
    assert_eq!((output.text(), output.dropped()), ("a".repeat(KEPT), 0));
    output.push(b"zz", &heard);
    let half = KEPT / 2;
    let expected = format!(
        "{}\n[… 2 bytes of output are left out here …]\n{}zz",
        "a".repeat(half),
        "a".repeat(half - 2)
    );
    assert_eq!((output.text(), output.dropped()), (expected, 2));
}

#[test]
fn cut_respects_characters_and_counts_bytes() {
    let mut output = Output::default();
    let heard = Heard::default();
    for _ in 0..EMITTED {
        output.push("€".as_bytes(), &heard);
    }
    let text = output.text();
    assert!(text.len() <= KEPT + 100 && text.starts_with('€') && text.ends_with('€'));
    let kept = text.matches('€').count() * 3;
    let untold = 3 * EMITTED - heard.text().len();
    assert!(heard.text().len() > EMITTED - 3 && heard.text().len() <= EMITTED);
    assert_eq!(output.dropped() as usize, 3 * EMITTED - kept + untold);
}
