//! Cuts an expression into numbers, names and signs.

use crate::problem::Problem;

/// One piece of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A number; finite.
    Number(f64),
    /// A function or a constant, known or not.
    Name(String),
    /// Any other character, legal or not.
    Sign(char),
    /// There is no more.
    End,
}

/// A piece and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// What it is.
    pub(crate) token: Token,
    /// Where it begins: characters, counted from 1.
    pub(crate) at: usize,
}

/// Reads an expression piece by piece.
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// Begins at the start of an expression.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, at: 1 }
    }

    /// Reads the next piece; at the end it gives `End` for ever.
    pub(crate) fn next(&mut self) -> Result<Piece, Problem> {
        self.take(char::is_whitespace);
        let at = self.at;
        let token = match self.rest.chars().next() {
            None => Token::End,
            Some(c) if c.is_ascii_digit() || c == '.' => Token::Number(self.number(at)?),
            Some(c) if c.is_alphabetic() || c == '_' => {
                Token::Name(self.take(|c| c.is_alphanumeric() || c == '_').to_owned())
            }
            Some(c) => {
                self.skip(c.len_utf8());
                Token::Sign(c)
            }
        };
        Ok(Piece { token, at })
    }

    fn number(&mut self, at: usize) -> Result<f64, Problem> {
        let text = self.skip(number_len(self.rest));
        let bad = || Problem::BadNumber { at, text: text.to_owned() };
        if !separators_stand_between_digits(text) {
            return Err(bad());
        }
        let value: f64 = text.replace('_', "").parse().map_err(|_| bad())?;
        if value.is_finite() { Ok(value) } else { Err(bad()) }
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        self.skip(self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len()))
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        self.at = self.at.saturating_add(taken.chars().count());
        taken
    }
}

/// How many bytes at the start of `text` look like a number. An `e` belongs to it only with digits behind, since `e`
/// alone is a constant.
fn number_len(text: &str) -> usize {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '_' && c != '.').unwrap_or(text.len());
    let mantissa = digits(text);
    let Some(exponent) = text.get(mantissa..).and_then(|rest| rest.strip_prefix(['e', 'E'])) else { return mantissa };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let len = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    if len == 0 { mantissa } else { text.len().saturating_sub(unsigned.len()).saturating_add(len) }
}

fn separators_stand_between_digits(text: &str) -> bool {
    text.split('.')
        .all(|part| !part.starts_with('_') && !part.ends_with('_') && !part.contains("_e") && !part.contains("_E"))
}
