//! The parent span of a request, as its sender names it.

/// The parent span of a request: the `traceparent` of W3C Trace Context,
/// <https://www.w3.org/TR/trace-context/>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceParent<'a> {
    pub(super) trace: &'a str,
    pub(super) span: &'a str,
    pub(super) flags: &'a str,
}

impl<'a> TraceParent<'a> {
    /// Parses version 00, and the fields that later versions share with it. Returns `None` for a
    /// malformed value, which the standard treats as absent.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(5, '-');
        let version = hex(parts.next()?, 2).filter(|version| *version != "ff")?;
        let trace = hex(parts.next()?, 32).filter(|id| !is_zero(id))?;
        let span = hex(parts.next()?, 16).filter(|id| !is_zero(id))?;
        let flags = hex(parts.next()?, 2)?;
        let is_whole = version != "00" || parts.next().is_none();
        is_whole.then_some(Self { trace, span, flags })
    }
}

fn hex(text: &str, length: usize) -> Option<&str> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == length && text.bytes().all(is_digit)).then_some(text)
}

fn is_zero(id: &str) -> bool {
    id.bytes().all(|byte| byte == b'0')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn trace_parent_follows_the_standard() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let span = "00f067aa0ba902b7";
        let parent = Some(TraceParent { trace, span, flags: "01" });
        assert_eq!(TraceParent::parse(&format!("00-{trace}-{span}-01")), parent);
        assert_eq!(TraceParent::parse(&format!("cc-{trace}-{span}-01-what-comes-later")), parent);
    }

    #[test]
    fn invalid_trace_parent_is_ignored() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let span = "00f067aa0ba902b7";
        let zeros = |count: usize| "0".repeat(count);
        for text in [
            String::new(),
            "00".to_owned(),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("0-{trace}-{span}-01"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{}-{span}-01", zeros(32)),
            format!("00-{trace}-{}-01", zeros(16)),
            format!("00-{trace}x-{span}-01"),
            format!("00-{trace}-{span}-zz"),
            format!("00-{trace}-{span}-01\n"),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text:?}");
        }
    }
}
