//! Tests of decoding output chunks to text.

use super::Heard;
use crate::command::output::{MAX_KEPT, MAX_STREAMED, OutputBuffer};

fn pieces(pieces: &[&[u8]]) -> (String, String) {
    let mut output = OutputBuffer::default();
    let heard = Heard::default();
    pieces.iter().for_each(|piece| output.push(piece, &heard));
    output.finish(&heard);
    (output.text(), heard.text())
}

#[test]
fn a_character_that_is_split_over_reads_is_put_together() {
    let crab = "a🦀b".as_bytes();
    for cut in 0..=crab.len() {
        let both = pieces(&[&crab[..cut], &crab[cut..]]);
        assert_eq!(both, ("a🦀b".to_owned(), "a🦀b".to_owned()), "{cut}");
    }
    assert_eq!(pieces(&[&crab[..2], &crab[2..3], &crab[3..]]).0, "a🦀b");
}

#[test]
fn what_is_not_utf_8_becomes_a_replacement_wherever_it_stands() {
    assert_eq!(pieces(&[b"a\xffb"]).0, "a\u{fffd}b");
    assert_eq!(pieces(&[b"a\xf0\x9f", b"b"]).0, "a\u{fffd}b");
    assert_eq!(pieces(&[b"a\xf0\x9f"]).0, "a\u{fffd}");
    assert_eq!(pieces(&[b"\xf0", b"\x9f", b"\xa6", b"\xff"]).0, "\u{fffd}\u{fffd}");
}

#[test]
fn what_fits_is_kept_whole_and_what_does_not_keeps_both_ends() {
    let mut output = OutputBuffer::default();
    let heard = Heard::default();
    output.push("a".repeat(MAX_KEPT).as_bytes(), &heard);
    assert_eq!((output.text(), output.dropped()), ("a".repeat(MAX_KEPT), 0));
    output.push(b"zz", &heard);
    let half = MAX_KEPT / 2;
    let expected = format!(
        "{}\n[… 2 bytes of output are left out here …]\n{}zz",
        "a".repeat(half),
        "a".repeat(half - 2)
    );
    assert_eq!((output.text(), output.dropped()), (expected, 2));
}

#[test]
fn a_cut_goes_through_no_character_and_every_byte_is_counted() {
    let mut output = OutputBuffer::default();
    let heard = Heard::default();
    for _ in 0..MAX_STREAMED {
        output.push("€".as_bytes(), &heard);
    }
    let text = output.text();
    assert!(text.len() <= MAX_KEPT + 100 && text.starts_with('€') && text.ends_with('€'));
    let kept = text.matches('€').count() * 3;
    let untold = 3 * MAX_STREAMED - heard.text().len();
    assert!(heard.text().len() > MAX_STREAMED - 3 && heard.text().len() <= MAX_STREAMED);
    assert_eq!(output.dropped() as usize, 3 * MAX_STREAMED - kept + untold);
}
