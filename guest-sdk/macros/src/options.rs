//! Parses and checks the options of `#[tool(..)]`.

use proc_macro2::{Ident, Span, TokenStream};
use syn::parse::{ParseStream, Parser};
use syn::{Error, LitStr, Result, Token};

const ACCEPTED: &str = "accepted are `side_effects = \"..\"`, `name = \"..\"`, `title = \"..\"`, `idempotent`, `timeout = \"..\"` and \
                        `metadata = \"..\"`";
const CLASSES: &str = "one of \"none\", \"read\", \"write\", \"execute\", \"network\"";
/// The limits of the contract (`wit/types.wit`, record `definition`).
const MAX_TITLE_CHARS: usize = 128;
const MAX_METADATA_BYTES: usize = 64 * 1024;

/// The options of `#[tool(..)]`.
pub(crate) struct Options {
    /// The variant of the enum `SideEffects`.
    pub(crate) side_effects: Ident,
    /// The name, if it is not that of the function.
    pub(crate) name: Option<LitStr>,
    /// The title.
    pub(crate) title: Option<String>,
    /// Whether the flag `idempotent` is set.
    pub(crate) idempotent: bool,
    /// The timeout in milliseconds, never zero.
    pub(crate) timeout_ms: Option<u32>,
    /// A JSON object as text, or an empty string.
    pub(crate) metadata: String,
}

impl Options {
    /// Parses the tokens between the parentheses of the attribute.
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        Parser::parse2(|input: ParseStream<'_>| Draft::parse(input), tokens)?.finish()
    }
}

/// Checks a tool's name against `^[a-z][a-z0-9_]{0,63}$`.
pub(crate) fn check_name(name: &str, span: Span) -> Result<()> {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    let holds = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if starts && holds && name.len() <= 64 {
        return Ok(());
    }
    let message = format!(
        "`{name}` cannot be a tool's name: it must match ^[a-z][a-z0-9_]{{0,63}}$ (give another with `name = \"..\"`)"
    );
    Err(Error::new(span, message))
}

/// The options during parsing; each is given at most once.
#[derive(Default)]
struct Draft {
    seen: Vec<String>,
    side_effects: Option<Ident>,
    name: Option<LitStr>,
    title: Option<String>,
    idempotent: bool,
    timeout_ms: Option<u32>,
    metadata: String,
}

impl Draft {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut draft = Self::default();
        while !input.is_empty() {
            draft.option(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(draft)
    }

    fn option(&mut self, input: ParseStream<'_>) -> Result<()> {
        let key = input.parse::<Ident>().map_err(|error| Error::new(error.span(), ACCEPTED))?;
        let name = key.to_string();
        if self.seen.contains(&name) {
            return Err(Error::new(key.span(), format!("`{name}` is given twice; once is enough")));
        }
        match name.as_str() {
            "side_effects" => self.side_effects = Some(side_effects(&value(&key, input)?)?),
            "name" => self.name = Some(checked_name(value(&key, input)?)?),
            "title" => self.title = Some(title(&value(&key, input)?)?),
            "idempotent" => self.idempotent = flag(input)?,
            "timeout" => self.timeout_ms = Some(timeout(&value(&key, input)?)?),
            "metadata" => self.metadata = metadata(&value(&key, input)?)?,
            _ => {
                return Err(Error::new(
                    key.span(),
                    format!("there is no option `{name}`; {ACCEPTED}"),
                ));
            }
        }
        self.seen.push(name);
        Ok(())
    }

    fn finish(self) -> Result<Options> {
        let Some(side_effects) = self.side_effects else {
            let message = format!(
                "a tool must say what it can do to the world: `#[tool(side_effects = \"..\")]` with {CLASSES}"
            );
            return Err(Error::new(Span::call_site(), message));
        };
        let Self { name, title, idempotent, timeout_ms, metadata, .. } = self;
        Ok(Options { side_effects, name, title, idempotent, timeout_ms, metadata })
    }
}

/// Parses the string after `key =`.
fn value(key: &Ident, input: ParseStream<'_>) -> Result<LitStr> {
    let read = || {
        input.parse::<Token![=]>()?;
        input.parse::<LitStr>()
    };
    read().map_err(|error| {
        Error::new(error.span(), format!("`{key}` takes a string: `{key} = \"..\"`"))
    })
}

fn flag(input: ParseStream<'_>) -> Result<bool> {
    if input.peek(Token![=]) {
        return Err(input.error("`idempotent` takes no value: it stands there, or it does not"));
    }
    Ok(true)
}

fn side_effects(value: &LitStr) -> Result<Ident> {
    let variant = match value.value().as_str() {
        "none" => "None",
        "read" => "Read",
        "write" => "Write",
        "execute" => "Execute",
        "network" => "Network",
        other => {
            return Err(Error::new(
                value.span(),
                format!("`{other}` is no class of side effects; it is {CLASSES}"),
            ));
        }
    };
    Ok(Ident::new(variant, Span::call_site()))
}

fn checked_name(value: LitStr) -> Result<LitStr> {
    check_name(&value.value(), value.span())?;
    Ok(value)
}

fn title(value: &LitStr) -> Result<String> {
    let title = value.value();
    if title.trim().is_empty()
        || title.chars().count() > MAX_TITLE_CHARS
        || title.chars().any(char::is_control)
    {
        let message = format!("a title is 1 to {MAX_TITLE_CHARS} characters on one line");
        return Err(Error::new(value.span(), message));
    }
    Ok(title)
}

/// Parses a number with a unit. A bare number is refused, so that it cannot be taken for the wrong
/// unit.
fn timeout(value: &LitStr) -> Result<u32> {
    let text = value.value();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let unit = match text.get(digits.len()..) {
        Some("ms") => Some(1),
        Some("s") => Some(1_000),
        Some("m") => Some(60_000),
        _ => None,
    };
    let number =
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten();
    let ms =
        number.zip(unit).and_then(|(number, unit)| number.checked_mul(unit)).filter(|ms| *ms > 0);
    ms.ok_or_else(|| {
        let message = format!(
            "`{text}` is no timeout: write a whole number above zero and a unit, such as \"500ms\", \"30s\" or \"5m\""
        );
        Error::new(value.span(), message)
    })
}

fn metadata(value: &LitStr) -> Result<String> {
    let text = value.value();
    if text.len() > MAX_METADATA_BYTES {
        return Err(Error::new(
            value.span(),
            format!("metadata is at most {MAX_METADATA_BYTES} bytes"),
        ));
    }
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text) {
        Ok(_) => Ok(text),
        Err(error) => {
            Err(Error::new(value.span(), format!("metadata must be a JSON object: {error}")))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use quote::quote;

    fn refusal(tokens: TokenStream) -> String {
        Options::parse(tokens).err().unwrap().to_string()
    }

    #[test]
    fn all_options_are_read() {
        let options = Options::parse(quote! {
            side_effects = "write", name = "copy_2", title = "Copy", idempotent, timeout = "30s", metadata = r#"{"k": 1}"#,
        })
        .unwrap();
        assert_eq!(options.side_effects, "Write");
        assert_eq!(options.name.unwrap().value(), "copy_2");
        assert_eq!(options.title.unwrap(), "Copy");
        assert!(options.idempotent);
        assert_eq!(options.timeout_ms, Some(30_000));
        assert_eq!(options.metadata, r#"{"k": 1}"#);
    }

    #[test]
    fn options_except_class_are_optional() {
        let options = Options::parse(quote!(side_effects = "none")).unwrap();
        assert_eq!(options.side_effects, "None");
        assert!(options.name.is_none() && options.title.is_none() && options.timeout_ms.is_none());
        assert!(!options.idempotent && options.metadata.is_empty());
    }

    #[test]
    fn unknown_class_is_refused_with_the_list() {
        for class in ["none", "read", "write", "execute", "network"] {
            let options = Options::parse(quote!(side_effects = #class)).unwrap();
            assert_eq!(options.side_effects.to_string().to_lowercase(), class);
        }
        for wrong in ["", "Read", "all", "read,write"] {
            let message = refusal(quote!(side_effects = #wrong));
            assert!(message.ends_with(CLASSES), "{message}");
        }
    }

    #[test]
    fn missing_class_is_refused_with_the_list() {
        let message = refusal(quote!(idempotent));
        assert!(message.contains("side_effects") && message.ends_with(CLASSES), "{message}");
    }

    #[test]
    fn unknown_repeated_and_malformed_options_are_refused() {
        assert!(
            refusal(quote!(side_effect = "none"))
                .contains("there is no option `side_effect`; accepted are")
        );
        assert!(refusal(quote!(name = "a", name = "b")).contains("given twice"));
        assert!(refusal(quote!("none")).contains("accepted are"));
        assert!(refusal(quote!(side_effects = none)).contains("takes a string"));
        assert!(refusal(quote!(side_effects("none"))).contains("takes a string"));
        assert!(refusal(quote!(idempotent = true)).contains("takes no value"));
        assert!(Options::parse(quote!(side_effects = "none" idempotent)).is_err());
    }

    #[test]
    fn names_follow_the_pattern_of_the_contract() {
        let longest = "a".repeat(64);
        for good in ["a", "read_file", "a1_", longest.as_str()] {
            assert!(check_name(good, Span::call_site()).is_ok(), "{good}");
        }
        let too_long = "a".repeat(65);
        for bad in ["", "_a", "1a", "A", "readFile", "a-b", "ä", "a.b", too_long.as_str()] {
            let message = check_name(bad, Span::call_site()).unwrap_err().to_string();
            assert!(message.contains("^[a-z][a-z0-9_]{0,63}$"), "{message}");
        }
        assert!(refusal(quote!(name = "A")).contains("cannot be a tool's name"));
    }

    #[test]
    fn titles_are_short_and_on_one_line() {
        let (longest, too_long) = ("ä".repeat(128), "a".repeat(129));
        assert!(Options::parse(quote!(side_effects = "none", title = #longest)).is_ok());
        for bad in ["", "  ", "a\nb", too_long.as_str()] {
            assert!(refusal(quote!(title = #bad)).contains("1 to 128 characters"));
        }
    }

    #[test]
    fn timeouts_have_a_unit_and_are_never_zero() {
        for (text, ms) in
            [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("4294967295ms", u32::MAX)]
        {
            let options = Options::parse(quote!(side_effects = "none", timeout = #text)).unwrap();
            assert_eq!(options.timeout_ms, Some(ms));
        }
        for bad in
            ["", "30", "s", "0s", "-1s", "+1s", "1.5s", "1h", "30 s", "4294967296ms", "4294968s"]
        {
            assert!(refusal(quote!(timeout = #bad)).contains("is no timeout"), "{bad}");
        }
    }

    #[test]
    fn metadata_is_a_json_object() {
        for bad in ["", "[]", "1", "{", "{\"a\":}", "{} {}"] {
            assert!(refusal(quote!(metadata = #bad)).contains("must be a JSON object"), "{bad}");
        }
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_METADATA_BYTES));
        assert!(refusal(quote!(metadata = #large)).contains("at most 65536 bytes"));
    }
}
