//! The bound on the memory of the values that a function returns.
//!
//! The engine lifts a result into a tree of values at once, before the host sees it. The engine
//! counts the data from the guest in *fuel*: one unit for each byte of a text, and the size of a
//! value for each element, field and payload. The tree takes more memory than that, by a factor
//! that depends on the types: a list grows by doubling, and each name is a string of its own. So
//! each function gets as much fuel as keeps its largest result within [`MEMORY`].

use super::shape::{Field, Shape};
use crate::sandbox::limits;
use wasmtime::component::Val;

/// The memory of the values of one result, in bytes: as much as the engine may copy out of a guest
/// for a plugin of the contract.
const MEMORY: i64 = limits::HOSTCALL_DATA as i64;
/// The size of a value, in bytes.
const VALUE: i64 = size_of::<Val>() as i64;
/// The size of a string or a vector without its content, in bytes.
const HEADER: i64 = size_of::<String>() as i64;
/// The growth of a vector: its capacity doubles, and both halves exist while one is copied.
const GROWTH: i64 = 3;
/// The elements of the smallest vector.
const FIRST: i64 = 4;
/// The bytes of memory for one unit of fuel, from which the least sufficient number is taken. A
/// text takes up to two, a list at least three.
const FACTORS: [i64; 13] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64];
/// A number that suffices for every type. The most is taken by names of one byte: a string, which
/// has grown with its vector, and an allocation.
const MAX_FACTOR: i64 = 2 * HEADER + 64;

/// Returns the fuel for a result.
pub(super) fn fuel(result: Option<&Shape>) -> usize {
    let suffices = |factor: &i64| result.is_none_or(|shape| lists_fit(shape, *factor));
    let factor = FACTORS.into_iter().find(suffices).unwrap_or(MAX_FACTOR);
    usize::try_from(MEMORY / factor).unwrap_or(0)
}

/// Returns true if every list in a value of this shape takes at most `factor` bytes of memory for
/// each unit of fuel. All other parts exist once for each element.
fn lists_fit(shape: &Shape, factor: i64) -> bool {
    let fits = |shape: &Shape| lists_fit(shape, factor);
    match shape {
        Shape::List(element) => element_excess(element, factor) <= 0 && fits(element),
        Shape::Bytes => element_excess(&Shape::Bool, factor) <= 0,
        Shape::Tuple(elements) => elements.iter().all(fits),
        Shape::Record(fields) => fields.iter().all(|field| fits(&field.shape)),
        Shape::Choice(_, cases) => cases.iter().all(|case| case.payload.as_ref().is_none_or(fits)),
        Shape::Option(inner) => fits(inner),
        Shape::Bool
        | Shape::Integer(_)
        | Shape::F32
        | Shape::F64
        | Shape::Char
        | Shape::String
        | Shape::Flags(_) => true,
    }
}

/// Returns the most memory of one element of a list beyond `factor` times its fuel.
fn element_excess(element: &Shape, factor: i64) -> i64 {
    GROWTH * VALUE - factor * VALUE + excess(element, factor)
}

/// Returns the most memory of a value beyond `factor` times its fuel, without the place that holds
/// it, and without the elements of its lists.
fn excess(shape: &Shape, factor: i64) -> i64 {
    match shape {
        Shape::Bool | Shape::Integer(_) | Shape::F32 | Shape::F64 | Shape::Char => 0,
        // The bytes of a text take less than the factor.
        Shape::String => allocation(0),
        // The first elements of a list take more than later ones.
        Shape::Bytes | Shape::List(_) => allocation(VALUE),
        Shape::Tuple(elements) => {
            let own = vector(elements.len(), VALUE) - factor * VALUE * count(elements.len());
            own + elements.iter().map(|element| excess(element, factor)).sum::<i64>()
        }
        Shape::Record(fields) => {
            let own = vector(fields.len(), HEADER + VALUE) - factor * VALUE * count(fields.len());
            let field = |field: &Field| name(&field.name, factor) + excess(&field.shape, factor);
            own + fields.iter().map(field).sum::<i64>()
        }
        Shape::Choice(_, cases) => {
            let payload = |shape: &Option<Shape>| {
                shape.as_ref().map_or(0, |shape| boxed(factor) + excess(shape, factor))
            };
            let cases = cases.iter().map(|case| name(&case.name, factor) + payload(&case.payload));
            cases.max().unwrap_or(0)
        }
        Shape::Option(inner) => (boxed(factor) + excess(inner, factor)).max(0),
        Shape::Flags(names) => {
            // A set of flags that would not raise the sum is left out of it.
            let each = |name: &String| 2 * HEADER + self::name(name, factor);
            let flags = names.iter().map(each).filter(|excess| *excess > 0).sum::<i64>();
            if names.is_empty() { 0 } else { flags + allocation(FIRST * HEADER) }
        }
    }
}

/// Returns the excess of a name, which has one unit of fuel for each byte.
fn name(name: &str, factor: i64) -> i64 {
    allocation(count(name.len())) - factor * count(name.len())
}

/// Returns the excess of the box of a payload.
fn boxed(factor: i64) -> i64 {
    allocation(VALUE) - factor * VALUE
}

/// Returns the memory of a vector that has grown to this many elements, in bytes.
fn vector(elements: usize, size: i64) -> i64 {
    match elements {
        0 => 0,
        _ => allocation(count(elements.next_power_of_two()).max(FIRST) * size),
    }
}

/// Returns the memory of an allocation of this many bytes, with what its allocator adds.
fn allocation(bytes: i64) -> i64 {
    (bytes + bytes / 8 + 16).max(32)
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX / 1_024)
}

#[cfg(test)]
mod tests {
    use super::super::shape::Integer;
    use super::*;

    fn factor(shape: &Shape) -> i64 {
        MEMORY / fuel(Some(shape)) as i64
    }

    fn list(element: Shape) -> Shape {
        Shape::List(Box::new(element))
    }

    fn flags(names: usize, length: usize) -> Shape {
        Shape::Flags((0..names).map(|number| format!("{number:0length$}")).collect())
    }

    fn record(fields: usize, shape: &Shape) -> Shape {
        let field = |number: usize| Field { name: format!("field-{number}"), shape: shape.clone() };
        Shape::Record((0..fields).map(field).collect())
    }

    #[test]
    fn text_gets_the_most_fuel_and_many_small_names_the_least() {
        assert_eq!(factor(&Shape::String), 2, "a result of 4 MiB fits");
        assert_eq!(factor(&Shape::Bytes), 3);
        assert_eq!(factor(&list(Shape::Integer(Integer::U8))), 3);
        assert_eq!(factor(&flags(32, 2)), 2, "a single set is small");
        let long = factor(&list(flags(32, 40)));
        let short = factor(&list(flags(32, 2)));
        assert!(long < short && short <= 48, "{long} {short}");
    }

    #[test]
    fn records_in_a_list_take_little_more_than_numbers() {
        for element in [record(3, &Shape::F64), record(20, &Shape::String)] {
            assert!(factor(&list(element)) <= 6);
        }
        // Fields of options in lists of lists.
        let option = Shape::Option(Box::new(record(2, &list(Shape::String))));
        assert!(factor(&list(list(option))) <= 8);
    }

    #[test]
    fn largest_factor_suffices_for_the_worst_types() {
        let flags = flags(1_000, 1);
        let choice = Shape::Option(Box::new(Shape::Option(Box::new(flags.clone()))));
        for element in [record(1_000, &flags), record(1, &choice), flags] {
            assert!(lists_fit(&list(element), MAX_FACTOR));
        }
    }
}
