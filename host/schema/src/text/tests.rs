//! Text for display: which characters are escaped, and how a long text is cut.

use super::*;

#[test]
fn deceptive_characters_are_escaped() {
    assert_eq!(visible("a\u{1b}[2Jb\u{202e}c\nd"), "a\\u{1b}[2Jb\\u{202e}c\nd");
}

#[test]
fn invisible_characters_are_escaped() {
    let blank = [
        "\u{ad}\u{34f}\u{115f}\u{1160}\u{17b4}\u{180b}\u{200b}\u{206a}\u{2800}\u{3164}",
        "\u{fe0d}\u{feff}\u{ffa0}\u{fff0}\u{1bca0}\u{1d173}\u{e0041}\u{e0100}",
    ];
    for c in blank.concat().chars() {
        assert_eq!(visible(&format!("a{c}b")), format!("a{}b", c.escape_unicode()));
    }
}

#[test]
fn variation_selector_requires_a_symbol() {
    for seen in [
        "⚠\u{fe0f}",
        "☎\u{fe0e}!",
        "a ©\u{fe0f}❤\u{fe0f}",
        "🅰\u{fe0e}",
        "1\u{fe0f}\u{20e3}",
        "#\u{fe0f}\u{20e3}",
    ] {
        assert_eq!(first_deceptive(seen), None, "{seen:?}");
    }
    let hidden = [
        "\u{fe0f}",
        "a\u{fe0f}",
        "1\u{fe0e}",
        " \u{fe0f}",
        "漢\u{fe0f}",
        "é\u{fe0e}",
        "\n\u{fe0f}",
        "\u{200b}\u{fe0f}",
    ];
    for hidden in
        hidden.into_iter().chain(["⚠\u{fe0f}\u{fe0e}", "⚠\u{fe0f}\u{fe0f}", "1\u{fe0f}x\u{20e3}"])
    {
        assert!(first_deceptive(hidden).is_some(), "{hidden:?}");
    }
    assert_eq!(visible("⚠\u{fe0f}\u{fe0e}a\u{fe0f}"), "⚠\u{fe0f}\\u{fe0e}a\\u{fe0f}");
    assert_eq!(visible_json("\"\u{fe0f}⚠\u{fe0f}\""), "\"\\ufe0f⚠\u{fe0f}\"");
}

#[test]
fn visible_characters_are_unchanged() {
    let text = "\tgrün 한글 ﾊﾝ ⠃⠗ 漢字 עברית ไทย 🦀 ⚠\u{fe0f}\n";
    assert_eq!(visible(text), text);
}

#[test]
fn json_escaping_keeps_the_meaning() {
    let value = serde_json::json!({"a\u{202e}": "b\u{2028}\u{e0041}\u{7f}\u{85}c"});
    let escaped = visible_json(&value.to_string());
    assert_eq!(escaped, r#"{"a\u202e":"b\u2028\udb40\udc41\u007f\u0085c"}"#);
    assert_eq!(serde_json::from_str::<Value>(&escaped).ok(), Some(value));
}

#[test]
fn json_in_parts_is_escaped_like_the_whole() {
    use std::io::Write as _;
    const PIECE: usize = VisibleJson::<Vec<u8>>::PIECE;
    for part in [
        "abc\n",
        "ä漢🦀",
        "a\u{202e}",
        "⚠\u{fe0f}",
        "1\u{fe0f}\u{20e3}",
        "\u{fe0f}",
        "\u{e0001}\u{7f}",
    ] {
        for before in ["", "x", "xy", "xyz"] {
            let text = [before, &part.repeat(2 * PIECE / part.len() + 7)].concat();
            for at_once in [1, 7, PIECE - 1, PIECE, text.len()] {
                let mut out = Vec::new();
                let mut visible = VisibleJson::new(&mut out);
                let written: io::Result<()> =
                    text.as_bytes().chunks(at_once).try_for_each(|bytes| visible.write_all(bytes));
                assert!(written.and_then(|()| visible.finish()).is_ok());
                assert!(
                    out == visible_json(&text).into_bytes(),
                    "{part:?} behind {before:?}, {at_once} at once"
                );
            }
        }
    }
}

#[test]
fn cut_never_splits_a_character() {
    assert_eq!(cut("aé", 2), "a");
    assert_eq!(cut("aé", 3), "aé");
    assert_eq!(cut("a", 9), "a");
}

#[test]
fn each_long_line_is_truncated() {
    assert_eq!(short_lines("abc\naé é\n\n", 3), "abc\naé…\n\n");
    assert_eq!(short_lines("", 0), "");
}

#[test]
fn cutting_before_or_after_escaping_is_the_same() {
    for part in
        ["abc", "a\nb\tc", "ä漢🦀", "a\u{202e}", "⚠\u{fe0f}", "1\u{fe0f}\u{20e3}", "\u{e0001}"]
    {
        let text = part.repeat(100);
        for max in [0, 1, 2, 7, 64, 100, 150] {
            let first = elided(&text, max);
            let last = elided_line(&on_one_line(&text), max);
            let ends = |shown: &str| {
                let (head, rest) = shown.split_once(" … ").unwrap_or_default();
                let (_, tail) = rest.split_once(" … ").unwrap_or_default();
                (head.to_owned(), tail.to_owned())
            };
            assert_eq!(ends(&first), ends(&last), "{part:?} in {max}");
        }
    }
}

#[test]
fn omitted_text_is_counted_unescaped() {
    let text = format!("a{}z", "\u{1b}".repeat(1 << 20));
    assert_eq!(elided(&text, 4), "a\\ … 1048574 characters … }z");
}

#[test]
fn long_value_shows_its_beginning() {
    let value = serde_json::json!({"a": "x".repeat(1 << 20)});
    assert_eq!(elided_json(&value, 8), "{\"a\":\"xx …");
    assert_eq!(elided_json(&serde_json::json!({"a": 1}), 8), "{\"a\":1}");
    let numbers: Vec<u32> = (10..30).collect();
    assert_eq!(elided_json(&serde_json::json!(numbers), 10), "[10,1 … 51 characters … 8,29]");
}

#[test]
fn long_text_keeps_its_ends_and_counts_the_rest() {
    let text = format!("ab{}ij", "c".repeat(19));
    assert_eq!(elided(&text, 4), "ab … 19 characters … ij");
    let text = format!("ab{}ij", "c".repeat(18));
    assert_eq!(elided(&text, 4), text, "the count would be as long as what it replaces");
    assert_eq!(elided("ab\ncd", 10), "ab\\ncd");
}

#[test]
fn key_of_toml_is_quoted_where_it_has_to_be() {
    for (name, key) in [
        ("a_b-1", "a_b-1"),
        ("my.words", "\"my.words\""),
        ("a \"b\"", r#""a \"b\"""#),
        ("", "\"\""),
    ] {
        assert_eq!(toml_key(name), key);
    }
}

#[test]
fn an_id_stays_on_its_line() {
    assert!(sanitize_id("a\n\tb\u{1b}").starts_with("a  b\\u{1b}~"));
    assert!(sanitize_id(&"é".repeat(200)).starts_with(&format!("{}~", "é".repeat(119))));
    assert_eq!(sanitize_id("toolu_01 é"), "toolu_01 é");
    assert!(sanitize_id("..").starts_with("..~") && sanitize_id(".").starts_with(".~"));
}

#[test]
fn ids_stay_different_and_are_changed_once() {
    let parts = [
        "a",
        "b",
        " ",
        "\n",
        "\t",
        "\u{1b}",
        "\\u{1b}",
        "é",
        "漢",
        "🦀",
        "⚠\u{fe0f}",
        "1\u{fe0f}\u{20e3}",
        "\u{fe0f}",
        "\u{202e}",
        "0",
        "~",
    ];
    let mut bits = 1_u32;
    let mut next = |count: usize| {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (bits >> 8) as usize % count
    };
    let mut seen = std::collections::HashMap::new();
    for _ in 0..30_000 {
        let mut id = "x".repeat([0, 0, 0, 230, 236, 250, 256, 300][next(8)]);
        id.extend((0..next(12)).map(|_| parts[next(parts.len())]));
        let shown = sanitize_id(&id);
        assert!(shown.len() <= MAX_ID && first_deceptive(&shown).is_none(), "{id:?}: {shown:?}");
        assert!(!shown.contains(['\n', '\t']), "{id:?}: {shown:?}");
        assert_eq!(sanitize_id(&shown), shown, "{id:?}");
        let first = seen.entry(shown).or_insert_with(|| id.clone());
        assert_eq!(*first, id);
    }
}
