//! The tokenizer of patterns: reads ECMA-262, and writes the same pattern in the syntax of the
//! engine.
//!
//! Everything else reads only what it writes: the measure of the compiled size, the engine of
//! `pattern`, and the engine of `patternProperties`. So no two parts can understand a pattern in
//! two ways. The text consists of constructs that mean the same to every parser behind it:
//! literals, classes in brackets without Perl classes and without nesting, groups, alternatives,
//! repetitions, `^`, `$` and ASCII word boundaries.
//!
//! A pattern means what it means with the flag `u`, as JSON Schema 2020-12 recommends. A pattern
//! that is only valid without that flag, such as `a{` or `[\w-.]`, means what it means without it,
//! except for octal escapes and superfluous escapes of letters.

mod class;
mod escape;

use class::Class;
use escape::Escape;

/// Every character except for the line terminators of ECMA-262.
const DOT: &str = r"[^\n\r\x{2028}\x{2029}]";

const BACK_REFERENCE: &str = "it has a back-reference";
const LOOK_AROUND: &str = "it has a look-around";
const INLINE_FLAGS: &str = "it has inline flags, which are not part of JSON Schema; for both cases of a \
     letter write `[aA]`";

/// Returns the pattern in the syntax of the engine, or the reason why it has none.
pub(super) fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut translator = Translator::new(pattern);
    while let Some(next) = translator.rest.next() {
        translator.token(next)?;
    }
    translator.finish()
}

/// The kind of the part before a token, which decides whether that part can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Atom,
    Assertion,
    Quantifier,
}

struct Translator<'p> {
    rest: Rest<'p>,
    text: String,
    before: Before,
    /// The number of open groups.
    open: usize,
}

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Self {
        let text = String::with_capacity(pattern.len());
        Self { rest: Rest(pattern), text, before: Before::Nothing, open: 0 }
    }

    fn token(&mut self, next: char) -> Result<(), &'static str> {
        match next {
            '\\' => return self.escape(),
            '[' => {
                Class::read(&mut self.rest)?.write(&mut self.text);
                self.before = Before::Atom;
            }
            '(' => return self.open_group(),
            ')' => return self.close_group(),
            '|' => self.write("|", Before::Nothing),
            '^' => self.write("^", Before::Assertion),
            '$' => self.write("$", Before::Assertion),
            '.' => self.write(DOT, Before::Atom),
            '*' | '+' | '?' => return self.quantifier(&next.to_string()),
            '{' => match self.rest.braces()? {
                Some(braces) => return self.quantifier(&braces),
                None => self.literal('{'),
            },
            literal => self.literal(literal),
        }
        Ok(())
    }

    fn finish(self) -> Result<String, &'static str> {
        if self.open > 0 { Err("a `(` has no `)`") } else { Ok(self.text) }
    }

    fn write(&mut self, text: &str, before: Before) {
        self.text.push_str(text);
        self.before = before;
    }

    fn literal(&mut self, literal: char) {
        push_literal(&mut self.text, literal);
        self.before = Before::Atom;
    }

    fn escape(&mut self) -> Result<(), &'static str> {
        match Escape::read(&mut self.rest)? {
            Escape::Boundary => self.write(r"(?-u:\b)", Before::Assertion),
            Escape::NoBoundary => self.write(r"(?-u:\B)", Before::Assertion),
            Escape::Character(code) => match char::from_u32(code) {
                Some(literal) => self.literal(literal),
                // Half of a surrogate pair. No text contains it.
                None => self.write(class::NEVER, Before::Atom),
            },
            Escape::Class(class) => {
                class.write(&mut self.text);
                self.before = Before::Atom;
            }
        }
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), &'static str> {
        let opening = self.rest.group()?;
        self.open += 1;
        self.write(opening, Before::Nothing);
        Ok(())
    }

    fn close_group(&mut self) -> Result<(), &'static str> {
        self.open = self.open.checked_sub(1).ok_or("a `)` has no `(`")?;
        self.write(")", Before::Atom);
        Ok(())
    }

    fn quantifier(&mut self, quantifier: &str) -> Result<(), &'static str> {
        if self.before != Before::Atom {
            return Err("a repetition such as `*` stands where there is nothing to repeat");
        }
        self.write(quantifier, Before::Quantifier);
        if self.rest.take('?') {
            self.text.push('?');
        }
        Ok(())
    }
}

/// Writes a character that means itself, also in brackets.
fn push_literal(text: &mut String, literal: char) {
    if regex_syntax::is_meta_character(literal) {
        text.push('\\');
    }
    text.push(literal);
}

/// The part of a pattern that has not been read.
#[derive(Clone, Copy)]
struct Rest<'p>(&'p str);

impl<'p> Rest<'p> {
    fn next(&mut self) -> Option<char> {
        let mut rest = self.0.chars();
        let next = rest.next();
        self.0 = rest.as_str();
        next
    }

    fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    /// Reads a character if it is the next one.
    fn take(&mut self, wanted: char) -> bool {
        match self.0.strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// Reads up to a delimiter, and the delimiter. Reads nothing if there is none.
    fn until(&mut self, delimiter: char) -> Option<&'p str> {
        let (inside, rest) = self.0.split_once(delimiter)?;
        self.0 = rest;
        Some(inside)
    }

    /// Reads the inside of `{n}`, `{n,}` or `{n,m}`. Reads nothing if the brace means itself.
    fn braces(&mut self) -> Result<Option<String>, &'static str> {
        let mut ahead = *self;
        let Some(inside) = ahead.until('}') else { return Ok(None) };
        let (min, max) =
            inside.split_once(',').map_or((inside, None), |(min, max)| (min, Some(max)));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(min) || !max.is_none_or(|max| max.is_empty() || is_number(max)) {
            return Ok(None);
        }
        *self = ahead;
        // More repetitions than fit into the number are refused for their size.
        let number = |text: &str| text.parse().unwrap_or(u32::MAX);
        let from = number(min);
        Ok(Some(match max {
            None => format!("{{{from}}}"),
            Some("") => format!("{{{from},}}"),
            Some(max) if number(max) < from => {
                return Err("a repetition such as `{3,2}` has its bounds in the wrong order");
            }
            Some(max) => format!("{{{from},{}}}", number(max)),
        }))
    }

    /// Reads what follows the parenthesis of a group. Returns the beginning of the group.
    fn group(&mut self) -> Result<&'static str, &'static str> {
        if !self.take('?') {
            return Ok("(");
        }
        match self.next() {
            Some(':') => Ok("(?:"),
            Some('=' | '!') => Err(LOOK_AROUND),
            Some('<') if matches!(self.peek(), Some('=' | '!')) => Err(LOOK_AROUND),
            Some('<') => self.group_name(),
            // The syntax of Python.
            Some('P') if self.take('<') => self.group_name(),
            Some('P') if self.peek() == Some('=') => Err(BACK_REFERENCE),
            Some(first) if first == '-' || first.is_alphabetic() => Err(INLINE_FLAGS),
            _ => Err("it has a group of an unknown kind"),
        }
    }

    /// Reads the name of a group. Nothing can refer to it, so it is dropped.
    fn group_name(&mut self) -> Result<&'static str, &'static str> {
        let is_name = |name: &&str| {
            let mut characters = name.chars();
            let is_first = |c: char| c.is_alphabetic() || matches!(c, '_' | '$');
            characters.next().is_some_and(is_first)
                && characters.all(|c| is_first(c) || c.is_alphanumeric())
        };
        self.until('>').filter(is_name).map(|_| "(").ok_or("the name of a group is not valid")
    }
}
