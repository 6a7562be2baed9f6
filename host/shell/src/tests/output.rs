//! Tests of decoding output chunks to text.

use super::RecordingSink;
use crate::command::output::{MAX_KEPT, MAX_STREAMED, OutputBuffer};

fn text_and_stream(pieces: &[&[u8]]) -> (String, String) {
    let mut output = OutputBuffer::default();
    let sink = RecordingSink::default();
    pieces.iter().for_each(|piece| output.push(piece, &sink));
    output.finish(&sink);
    (output.text(), sink.text())
}

#[test]
fn characters_split_over_reads_are_joined() {
    let crab = "a🦀b".as_bytes();
    for cut in 0..=crab.len() {
        let both = text_and_stream(&[&crab[..cut], &crab[cut..]]);
        assert_eq!(both, ("a🦀b".to_owned(), "a🦀b".to_owned()), "{cut}");
    }
    assert_eq!(text_and_stream(&[&crab[..2], &crab[2..3], &crab[3..]]).0, "a🦀b");
}

#[test]
fn invalid_utf_8_becomes_a_replacement_character() {
    assert_eq!(text_and_stream(&[b"a\xffb"]).0, "a\u{fffd}b");
    assert_eq!(text_and_stream(&[b"a\xf0\x9f", b"b"]).0, "a\u{fffd}b");
    assert_eq!(text_and_stream(&[b"a\xf0\x9f"]).0, "a\u{fffd}");
    assert_eq!(text_and_stream(&[b"\xf0", b"\x9f", b"\xa6", b"\xff"]).0, "\u{fffd}\u{fffd}");
}

#[test]
fn long_output_keeps_both_ends() {
    let mut output = OutputBuffer::default();
    let sink = RecordingSink::default();
    output.push("a".repeat(MAX_KEPT).as_bytes(), &sink);
    assert_eq!((output.text(), output.dropped()), ("a".repeat(MAX_KEPT), 0));
    output.push(b"zz", &sink);
    let half = MAX_KEPT / 2;
    let expected = format!(
        "{}\n[… 2 bytes of output are left out here …]\n{}zz",
        "a".repeat(half),
        "a".repeat(half - 2)
    );
    assert_eq!((output.text(), output.dropped()), (expected, 2));
}

#[test]
fn cuts_respect_characters_and_count_every_byte() {
    let mut output = OutputBuffer::default();
    let sink = RecordingSink::default();
    for _ in 0..MAX_STREAMED {
        output.push("€".as_bytes(), &sink);
    }
    let text = output.text();
    assert!(text.len() <= MAX_KEPT + 100 && text.starts_with('€') && text.ends_with('€'));
    let kept = text.matches('€').count() * 3;
    let unstreamed = 3 * MAX_STREAMED - sink.text().len();
    assert!(sink.text().len() > MAX_STREAMED - 3 && sink.text().len() <= MAX_STREAMED);
    assert_eq!(output.dropped() as usize, 3 * MAX_STREAMED - kept + unstreamed);
}
