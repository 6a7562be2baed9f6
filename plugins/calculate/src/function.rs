//! The functions and constants of expressions.

use crate::number;
use crate::problem::Problem;

/// A function of expressions.
pub(crate) struct Function {
    /// The name in an expression.
    pub(crate) name: &'static str,
    apply: Apply,
}

/// The number of arguments of a function, and its implementation.
enum Apply {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
    /// One or more, folded from the left.
    Many(fn(f64, f64) -> f64),
}

static FUNCTIONS: [Function; 15] = [
    Function { name: "sqrt", apply: Apply::One(f64::sqrt) },
    Function { name: "abs", apply: Apply::One(f64::abs) },
    Function { name: "floor", apply: Apply::One(f64::floor) },
    Function { name: "ceil", apply: Apply::One(f64::ceil) },
    Function { name: "round", apply: Apply::One(f64::round) },
    Function { name: "min", apply: Apply::Many(f64::min) },
    Function { name: "max", apply: Apply::Many(f64::max) },
    Function { name: "sin", apply: Apply::One(f64::sin) },
    Function { name: "cos", apply: Apply::One(f64::cos) },
    Function { name: "tan", apply: Apply::One(f64::tan) },
    Function { name: "ln", apply: Apply::One(f64::ln) },
    Function { name: "log10", apply: Apply::One(f64::log10) },
    Function { name: "log2", apply: Apply::One(f64::log2) },
    Function { name: "exp", apply: Apply::One(f64::exp) },
    Function { name: "pow", apply: Apply::Two(f64::powf) },
];

/// Finds a function by its exact name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Returns the value of a constant.
pub(crate) fn constant(name: &str) -> Option<f64> {
    match name {
        "pi" => Some(std::f64::consts::PI),
        "e" => Some(std::f64::consts::E),
        _ => None,
    }
}

/// Returns the names of all functions, for messages.
pub(crate) fn names() -> String {
    let names: Vec<_> = FUNCTIONS.iter().map(|function| function.name).collect();
    names.join(", ")
}

impl Function {
    /// Applies the function, which is at character `at`. The result is finite.
    pub(crate) fn call(&self, at: usize, arguments: &[f64]) -> Result<f64, Problem> {
        let value = match (&self.apply, arguments) {
            (Apply::One(apply), [x]) => apply(*x),
            (Apply::Two(apply), [x, y]) => apply(*x, *y),
            (Apply::Many(apply), [first, rest @ ..]) => {
                rest.iter().fold(*first, |x, y| apply(x, *y))
            }
            _ => {
                return Err(Problem::Arguments {
                    at,
                    name: self.name,
                    wanted: self.wanted(),
                    got: arguments.len(),
                });
            }
        };
        if value.is_finite() {
            Ok(value)
        } else {
            Err(Problem::NoValue { at, what: self.written(arguments) })
        }
    }

    fn wanted(&self) -> &'static str {
        match self.apply {
            Apply::One(_) => "1 argument",
            Apply::Two(_) => "2 arguments",
            Apply::Many(_) => "1 argument or more",
        }
    }

    fn written(&self, arguments: &[f64]) -> String {
        let arguments: Vec<_> = arguments.iter().map(|argument| number::show(*argument)).collect();
        format!("{}({})", self.name, arguments.join(", "))
    }
}
