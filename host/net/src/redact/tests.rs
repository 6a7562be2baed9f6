//! Texts with secrets in many forms, and texts that nearly have one.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::cell::Cell;
use std::time::{Duration, Instant};

const SECRET: &str = "s3cr/t \"key\"+\u{e4}!";

fn of_the_secret() -> Redaction {
    Redaction::new([SECRET]).unwrap()
}

/// Returns what a guest gets of a text in pieces of `size` bytes.
fn streamed(redaction: &Redaction, text: &[u8], size: usize) -> String {
    let mut stream = redaction.stream();
    let mut out = Vec::new();
    for piece in text.chunks(size) {
        out.extend_from_slice(&stream.push(piece));
    }
    out.extend_from_slice(&stream.finish());
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn every_form_is_removed_wherever_the_pieces_end() {
    let forms = [
        SECRET.to_owned(),
        "s3cr/t \\\"key\\\"+\u{e4}!".to_owned(),
        "s3cr\\/t \\\"key\\\"+\\u00e4!".to_owned(),
        "s3cr%2Ft%20%22key%22%2B%C3%A4%21".to_owned(),
        "s3cr%2ft%20%22key%22%2b%c3%a4!".to_owned(),
        "s3cr%2Ft+%22key%22%2B%C3%A4%21".to_owned(),
        // As Python's `quote` leaves the slash, .NET escapes the plus, Go an ampersand, and a
        // page in HTML the quotes; a text in JSON inside of JSON; an address inside another.
        "s3cr/t%20%22key%22%2B%C3%A4%21".to_owned(),
        "s3cr/t \\u0022key\\u0022\\u002B\\u00E4!".to_owned(),
        "s3cr&#x2F;t &quot;key&#34;&#43;\u{e4}!".to_owned(),
        r#"s3cr/t \\\"key\\\"+\\u00e4!"#.to_owned(),
        "s3cr%252Ft%2520%2522key%2522%252B%25C3%25A4%2521".to_owned(),
        "s3cr&sol;t &quot;key&#34&plus;\u{e4}&excl;".to_owned(),
    ];
    let redaction = of_the_secret();
    for form in forms {
        let text = format!("before {form} after");
        for size in 1..text.len() {
            let got = streamed(&redaction, text.as_bytes(), size);
            assert_eq!(got, "before [redacted] after", "{form} in pieces of {size}");
        }
    }
}

#[test]
fn base64_is_removed_at_every_offset() {
    let redaction = of_the_secret();
    for before in ["", "u", "us", "user:", "user::"] {
        let encoded = STANDARD_NO_PAD.encode(format!("{before}{SECRET}{before}"));
        let got = streamed(&redaction, encoded.as_bytes(), 7);
        assert!(got.contains(REDACTED), "{before}: {got}");
        // At most the characters that mix the secret with its neighbours stay.
        let rest: usize = got.replace(REDACTED, "").len();
        assert!(rest <= (before.len() * 2 * 8).div_ceil(6) + 2, "{before}: {got}");
    }
}

#[test]
fn base64_is_removed_over_the_ends_of_lines() {
    let redaction = of_the_secret();
    let text = format!("{}{SECRET}", "before ".repeat(9));
    for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
        for end in ["\n", "\r\n", "\\n", "\\r\\n", "\n  ", "%0A", "%0d%0a", "&#10;"] {
            for width in [1, 60, 64, 76] {
                let lines: Vec<&[u8]> = encoded.as_bytes().chunks(width).collect();
                let lines = lines.join(end.as_bytes());
                let got = streamed(&redaction, &lines, 11);
                assert!(got.contains(REDACTED), "{width} {end:?}: {got}");
            }
        }
    }
}

#[test]
fn longest_spelling_is_removed_wherever_the_pieces_end() {
    // Of the three in Base64, this one has the most characters.
    let redaction = Redaction::new(["secret999"]).unwrap();
    let letters: Vec<String> = STANDARD.encode("secret999").chars().map(String::from).collect();
    let spelled = letters.join("&#13;&#10; \t \t");
    for before in 0..redaction.spellings.longest {
        let before = ".".repeat(before);
        let got = streamed(&redaction, format!("{before}{spelled}").as_bytes(), 1);
        assert_eq!(got, format!("{before}{REDACTED}"));
    }
}

#[test]
fn longer_secret_is_removed_whole() {
    let redaction = Redaction::new(["beginning", "beginning and end"]).unwrap();
    let got = redaction.redact(b"a beginning and end.").unwrap();
    assert_eq!(got, b"a [redacted].");
}

#[test]
fn removal_begins_with_the_first_of_what_overlaps() {
    let redaction = Redaction::new(["abcdefgh", "efghijklmnop"]).unwrap();
    let got = redaction.redact(b"abcdefghijklmnop").unwrap();
    assert!(got.starts_with(REDACTED.as_bytes()), "{}", String::from_utf8_lossy(&got));
    // A line ends inside of Base64, not before it.
    let text = format!("%0A{}", STANDARD_NO_PAD.encode("abcdefghi"));
    assert!(redaction.redact(text.as_bytes()).unwrap().starts_with(b"%0A[redacted]"));
}

#[test]
fn name_without_its_case_is_recognised() {
    let redaction = Redaction::new(["AbCdEf-GhI"]).unwrap();
    assert!(redaction.is_in_name("x-abcdef-ghi") && !redaction.is_in_name("x-abcdef"));
    let redaction = Redaction::new(["AB.cd_EF/gh"]).unwrap();
    assert!(redaction.is_in_name("x-ab.cd_ef%2fgh"));
}

/// Returns a secret of letters, digits and punctuation that does not repeat itself.
fn long_secret(numbers: &Numbers, length: usize) -> String {
    (0..length).map(|_| char::from(b'!' + numbers.below(94) as u8)).collect()
}

#[test]
fn largest_secrets_are_accepted_and_what_is_too_large_is_refused() {
    let numbers = Numbers::from(1);
    let secrets: Vec<String> = (0..4).map(|_| long_secret(&numbers, 4096)).collect();
    let redaction = Redaction::new(secrets.iter().map(String::as_str)).unwrap();
    // Text that nearly matches takes less than a second, unoptimised. If each byte were compared
    // with all characters of the secrets, it would take more than a minute.
    let start = Instant::now();
    for secret in &secrets {
        let nearly = format!("{} ", &secret[..4095]).repeat(20);
        assert_eq!(redaction.redact(nearly.as_bytes()), None);
        assert_eq!(redaction.redact(secret.as_bytes()).unwrap(), REDACTED.as_bytes());
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let too_large = secrets.iter().map(String::as_str).chain(["x"]);
    assert_eq!(Redaction::new(too_large).err(), Some(TooLarge));
}

#[test]
fn text_that_reads_in_many_ways_is_searched_once() {
    // Each backslash begins forms of four lengths, so that there are millions of ways to read it.
    let redaction = Redaction::new([r"\\\\\\\\\\\\x"]).unwrap();
    let mut search = Search::new(&redaction.spellings.sorted, Case::Kept);
    let text = r"\".repeat(40);
    for at in 0..text.len() {
        search.step(text.as_bytes(), at, true);
        // Each of 12 beginnings of the secret waits for the offsets after the last four bytes.
        assert!(search.waiting <= 12 * (4 + 3 + 2 + 1), "{} at {at}", search.waiting);
    }
    assert_eq!(search.found, None);
}

#[test]
fn text_without_a_secret_is_unchanged() {
    let text = "s3cr/t is not the whole one, and neither is key. ".repeat(50);
    let redaction = of_the_secret();
    for size in [1, 7, 64, 5_000] {
        assert_eq!(streamed(&redaction, text.as_bytes(), size), text);
    }
    assert_eq!(redaction.redact(text.as_bytes()), None);
}

#[test]
fn small_pieces_take_about_as_long_as_one() {
    let redaction = Redaction::new([&*"s3cret".repeat(160)]).unwrap();
    let text = "&#0".repeat(30_000);
    let start = Instant::now();
    assert_eq!(streamed(&redaction, text.as_bytes(), text.len()), text);
    let at_once = start.elapsed();
    let start = Instant::now();
    assert_eq!(streamed(&redaction, text.as_bytes(), 1), text);
    let in_pieces = start.elapsed();
    assert!(in_pieces < at_once * 20 + Duration::from_millis(500), "{at_once:?} {in_pieces:?}");
}

#[test]
fn held_back_text_is_bounded_by_twice_the_longest_spelling() {
    let redaction = of_the_secret();
    let mut stream = redaction.stream();
    for _ in 0..1_000 {
        stream.push(b"text without anything to hide. ");
        assert!(stream.held.len() < 2 * redaction.spellings.longest);
    }
}

/// Numbers that look random, the same in each run.
struct Numbers(Cell<u64>);

impl Numbers {
    fn from(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    fn below(&self, end: usize) -> usize {
        // SplitMix64.
        self.0.set(self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
        let mixed = (self.0.get() ^ (self.0.get() >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Returns a number in hexadecimal digits, each in either case.
    fn hexadecimal(&self, number: u32, width: usize) -> String {
        let digits = format!("{number:0width$x}");
        let in_a_case = |digit: char| match self.below(2) {
            0 => digit.to_ascii_uppercase(),
            _ => digit,
        };
        digits.chars().map(in_a_case).collect()
    }

    /// Returns a character in one of its forms.
    fn escaped(&self, character: char) -> String {
        let backslashes = || self.pick(&[r"\", r"\\", r"\\\"]).to_owned();
        let mut utf8 = [0; 4];
        let utf8 = character.encode_utf8(&mut utf8).bytes();
        let mut utf16 = [0; 2];
        let utf16 = character.encode_utf16(&mut utf16).iter();
        let zeros = "0".repeat(self.below(5));
        let semicolon = self.pick(&["", ";"]);
        let code = u32::from(character);
        match (self.below(8), character) {
            (0, _) => utf8
                .map(|byte| self.pick(&["%", "%25"]).to_owned() + &self.hexadecimal(byte.into(), 2))
                .collect(),
            (1, _) => utf16
                .map(|unit| backslashes() + "u" + &self.hexadecimal((*unit).into(), 4))
                .collect(),
            (2, _) => format!("&#{zeros}{code}{semicolon}"),
            (3, _) => {
                format!(
                    "&#{}{zeros}{}{semicolon}",
                    self.pick(&["x", "X"]),
                    self.hexadecimal(code, 1)
                )
            }
            (4, '\t') => backslashes() + "t",
            (4, '&') => format!("&{}{semicolon}", self.pick(&["amp", "AMP"])),
            (4, '_') => format!("&{}{semicolon}", self.pick(&["lowbar", "UnderBar"])),
            (4, '/') => format!("&sol{semicolon}"),
            (4, '+') => format!("&plus{semicolon}"),
            (4, ' ') => "+".to_owned(),
            (5, _) if character.is_ascii_punctuation() => format!("{}{character}", backslashes()),
            _ => character.to_string(),
        }
    }

    /// Returns text that may hide what follows it, or be read together with it.
    fn hostile(&self, secret: &str) -> String {
        let beginning = secret.chars().take(self.below(secret.chars().count()));
        let fragments = [
            "%", "%25", "%2525", "\\", r"\\", r"\\\", r"\u00", "&", "&#", "&#x000", "&#0", "+",
            "\n",
        ];
        let fragment = self.pick(&fragments);
        match self.below(3) {
            0 => beginning.map(|character| self.escaped(character)).collect::<String>() + fragment,
            1 => STANDARD_NO_PAD.encode(beginning.collect::<String>()) + fragment,
            _ => fragment.to_owned(),
        }
    }

    /// Returns a text in Base64: what is left of the neighbours of the secret around the characters
    /// that spell it.
    fn base64(&self, secret: &str) -> [String; 3] {
        let (before, after) = (self.pick(&["", "a", "ab", "abc"]), self.pick(&["", "~", "~~"]));
        let engine: &GeneralPurpose = self.pick(&[&STANDARD_NO_PAD, &URL_SAFE_NO_PAD]);
        let text = engine.encode(format!("{before}{secret}{after}"));
        let begin = (before.len() * 8).div_ceil(6);
        let end = (before.len() + secret.len()) * 8 / 6;
        let lines = 1 + self.below(80);
        let line_ends =
            ["\n", "\r\n", r"\n", r"\r\n", r"\\n", "%0A", "%0d%0a", "&#13;&#10;", "\n \t  "];
        let line_end = self.pick(&line_ends);
        let mut spelled = String::new();
        for (index, character) in text[begin..end].chars().enumerate() {
            if index > 0 && index % lines == 0 {
                spelled.push_str(line_end);
            }
            match character {
                '+' | '/' => spelled.push_str(&self.escaped(character)),
                _ => spelled.push(character),
            }
        }
        [text[..begin].to_owned(), spelled, text[end..].to_owned()]
    }
}

#[test]
fn nothing_of_a_secret_survives_any_encoder_among_hostile_text() {
    const CHARACTERS: [char; 24] = [
        'a',
        'A',
        'z',
        'n',
        'u',
        '0',
        '2',
        '4',
        '5',
        '9',
        '%',
        '\\',
        '&',
        '#',
        ';',
        '/',
        '+',
        '_',
        '~',
        ' ',
        '\t',
        '\u{e4}',
        '\u{20ad}',
        '\u{1f511}',
    ];
    for seed in 0..3_000 {
        let numbers = Numbers::from(seed);
        let of_characters = |_| CHARACTERS[numbers.below(CHARACTERS.len())];
        // Its ends are found nowhere else, so that the text around it does not complete another.
        let inner: String = (0..10 + numbers.below(20)).map(of_characters).collect();
        let [first, last] =
            [["Q", "?", "\u{e9}"], ["X", "!", "\u{20ac}"]].map(|of| numbers.pick(&of));
        let secret = format!("{first}{inner}{last}");
        let redaction = Redaction::new([secret.as_str()]).unwrap();
        let mut before = numbers.hostile(&secret);
        let mut after = numbers.hostile(&secret);
        let spelled = match numbers.below(2) {
            0 => secret.chars().map(|character| numbers.escaped(character)).collect(),
            _ => {
                let [left, spelled, right] = numbers.base64(&secret);
                before += &left;
                after = right + &after;
                spelled
            }
        };
        let text = format!("{before}{spelled}{after}");
        let got = streamed(&redaction, text.as_bytes(), 1 + numbers.below(text.len()));
        // A form may reach into the text around it.
        let is_clean = got.split_once(REDACTED).is_some_and(|(left, right)| {
            before.starts_with(left) && after.ends_with(right) && !right.contains(REDACTED)
        });
        assert!(is_clean, "{seed}: {secret:?} in {text:?} as {got:?}");
    }
}
