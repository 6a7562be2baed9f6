//! Splits an expression into numbers, names and symbols.

use crate::problem::Problem;

/// One token of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A finite number.
    Number(f64),
    /// A function or a constant, known or not.
    Name(String),
    /// Any other character, valid or not.
    Sign(char),
    /// The end of the expression.
    End,
}

/// A token with its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// The token.
    pub(crate) token: Token,
    /// The position of its first character, counted from 1.
    pub(crate) at: usize,
}

/// Reads an expression token by token.
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// Starts at the beginning of an expression.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, at: 1 }
    }

    /// Reads the next token; at the end it returns `End` repeatedly.
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

/// Returns the length in bytes of the number at the start of `text`. An `e` is part of it only if
/// digits follow, since `e` alone is a constant.
fn number_len(text: &str) -> usize {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit() && c != '_' && c != '.').unwrap_or(text.len())
    };
    let mantissa = digits(text);
    let Some(exponent) = text.get(mantissa..).and_then(|rest| rest.strip_prefix(['e', 'E'])) else {
        return mantissa;
    };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let len = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    if len == 0 { mantissa } else { text.len().saturating_sub(unsigned.len()).saturating_add(len) }
}

fn separators_stand_between_digits(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.starts_with('_')
            && !part.ends_with('_')
            && !part.contains("_e")
            && !part.contains("_E")
    })
}
