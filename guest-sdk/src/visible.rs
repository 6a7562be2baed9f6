//! Names of files in an output.

/// Escapes control and invisible characters, so that a name stays on one line of an output and
/// cannot affect a terminal. The name of a file may hold a line feed.
///
/// ```
/// assert_eq!(palisade_guest::visible("a\nb"), "a\\nb");
/// ```
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match c {
            _ if c.is_control() => shown.extend(c.escape_debug()),
            '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}' => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
        shown
    })
}
