//! The grammar: a Pratt parser that evaluates while it parses.

#[cfg(test)]
mod tests;

use crate::function::{self, Function};
use crate::lexer::{Lexer, Piece, Token};
use crate::number;
use crate::problem::Problem;

/// Maximum length of an expression, in bytes.
const MAX_BYTES: usize = 4096;

/// Maximum nesting depth of parentheses, functions, signs and powers: no useful expression is
/// deeper, and the recursion fits easily into a stack of 128 KiB.
const MAX_DEPTH: usize = 64;

const SIGN_POWER: u8 = 3;

/// Evaluates an expression. The result is finite.
pub(crate) fn evaluate(expression: &str) -> Result<f64, Problem> {
    if expression.len() > MAX_BYTES {
        return Err(Problem::TooLong { bytes: expression.len(), limit: MAX_BYTES });
    }
    let mut parser = Parser::new(expression)?;
    if parser.next.token == Token::End {
        return Err(Problem::Empty);
    }
    let value = parser.expression(0)?;
    match parser.next.token {
        Token::End => Ok(value),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

/// A binary operator.
#[derive(Clone, Copy)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Piece,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(expression: &'a str) -> Result<Self, Problem> {
        let mut lexer = Lexer::new(expression);
        let next = lexer.next()?;
        Ok(Self { lexer, next, depth: 0 })
    }

    /// Parses operands and operators while these bind at least as strongly as `weakest`.
    fn expression(&mut self, weakest: u8) -> Result<f64, Problem> {
        let mut left = self.operand()?;
        while let Some(operator) =
            Operator::of(&self.next.token).filter(|operator| operator.power() >= weakest)
        {
            let at = self.advance()?.at;
            let right = match operator {
                Operator::Power => self.nested(at, operator.power())?,
                _ => self.expression(operator.power().saturating_add(1))?,
            };
            left = operator.apply(at, left, right)?;
        }
        Ok(left)
    }

    /// Parses an expression one level deeper. All unbounded recursion passes through this function.
    fn nested(&mut self, at: usize, weakest: u8) -> Result<f64, Problem> {
        if self.depth >= MAX_DEPTH {
            return Err(Problem::TooDeep { at, limit: MAX_DEPTH });
        }
        self.depth = self.depth.saturating_add(1);
        let value = self.expression(weakest)?;
        self.depth = self.depth.saturating_sub(1);
        Ok(value)
    }

    fn operand(&mut self) -> Result<f64, Problem> {
        let Piece { token, at } = self.next.clone();
        match token {
            Token::Number(value) => self.advance().map(|_| value),
            Token::Name(name) => self.named(&name),
            Token::Sign('(') => self.parenthesised(),
            Token::Sign(sign @ ('-' | '+')) => {
                self.advance()?;
                let value = self.nested(at, SIGN_POWER)?;
                Ok(if sign == '-' { -value } else { value })
            }
            Token::Sign(_) | Token::End => Err(self.unexpected("a number, a name, a sign or `(`")),
        }
    }

    fn parenthesised(&mut self) -> Result<f64, Problem> {
        let at = self.advance()?.at;
        let value = self.nested(at, 0)?;
        self.expect(')', "an operator or `)`")?;
        Ok(value)
    }

    fn named(&mut self, name: &str) -> Result<f64, Problem> {
        let at = self.advance()?.at;
        if let Some(value) = function::constant(name) {
            return Ok(value);
        }
        match function::find(name) {
            Some(function) => self.call(at, function),
            None => Err(Problem::UnknownName { at, name: name.to_owned() }),
        }
    }

    fn call(&mut self, at: usize, function: &Function) -> Result<f64, Problem> {
        self.expect('(', "`(` and the function's arguments")?;
        let mut arguments = Vec::new();
        if self.next.token != Token::Sign(')') {
            arguments.push(self.nested(at, 0)?);
            while self.next.token == Token::Sign(',') {
                self.advance()?;
                arguments.push(self.nested(at, 0)?);
            }
        }
        self.expect(')', "an operator, `,` or `)`")?;
        function.call(at, &arguments)
    }

    fn expect(&mut self, sign: char, wanted: &'static str) -> Result<(), Problem> {
        if self.next.token != Token::Sign(sign) {
            return Err(self.unexpected(wanted));
        }
        self.advance().map(|_| ())
    }

    fn advance(&mut self) -> Result<Piece, Problem> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn unexpected(&self, wanted: &'static str) -> Problem {
        let found = match &self.next.token {
            Token::Number(value) => number::show(*value),
            Token::Name(name) => format!("`{name}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        };
        Problem::Unexpected { at: self.next.at, found, wanted }
    }
}

impl Operator {
    fn of(token: &Token) -> Option<Self> {
        let Token::Sign(sign) = token else { return None };
        [Self::Add, Self::Subtract, Self::Multiply, Self::Divide, Self::Remainder, Self::Power]
            .into_iter()
            .find(|operator| operator.sign() == *sign)
    }

    fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Remainder => '%',
            Self::Power => '^',
        }
    }

    fn power(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide | Self::Remainder => 2,
            Self::Power => 4,
        }
    }

    fn apply(self, at: usize, left: f64, right: f64) -> Result<f64, Problem> {
        if self.divides_by_zero(left, right) {
            return Err(Problem::DivisionByZero { at, operator: self.sign() });
        }
        let value = match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left % right,
            Self::Power => left.powf(right),
        };
        let what = || format!("{} {} {}", number::show(left), self.sign(), number::show(right));
        if value.is_nan() {
            Err(Problem::NoValue { at, what: what() })
        } else if value.is_infinite() {
            Err(Problem::Overflow { at, what: what() })
        } else {
            Ok(value)
        }
    }

    fn divides_by_zero(self, left: f64, right: f64) -> bool {
        match self {
            Self::Divide | Self::Remainder => right == 0.0,
            Self::Power => left == 0.0 && right < 0.0,
            _ => false,
        }
    }
}
