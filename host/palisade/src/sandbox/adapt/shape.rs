//! The shape of a function's values: a component type without the engine's indices.

use super::unfit::{MAX_DEPTH, MAX_PARTS, Unfit};
use wasmtime::component::types::Type;

/// The shape of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Bool,
    Integer(Integer),
    F32,
    F64,
    Char,
    String,
    /// `list<u8>`, which is Base64 in JSON.
    Bytes,
    List(Box<Self>),
    Tuple(Vec<Self>),
    Record(Vec<Field>),
    Choice(ChoiceKind, Cases),
    Option(Box<Self>),
    Flags(Vec<String>),
}

/// A kind of integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integer {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
}

/// A type whose value is one of several cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChoiceKind {
    Variant,
    Enum,
    /// `result`, whose cases are `ok` and `err`, in this order.
    Result,
}

/// A field of a record, or a parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

/// A case of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) payload: Option<Shape>,
}

/// The cases of a choice. They are found by name in few steps: a list of values may have a hundred
/// thousand of them, of a type with a thousand cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cases {
    list: Vec<Case>,
    /// The positions of the cases, sorted by name.
    sorted: Vec<usize>,
}

impl Cases {
    fn new(list: Vec<Case>) -> Self {
        let mut sorted: Vec<usize> = (0..list.len()).collect();
        let name = |index: &usize| list.get(*index).map(|case| case.name.as_str());
        sorted.sort_by(|one, other| name(one).cmp(&name(other)));
        Self { list, sorted }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Case> {
        self.list.iter()
    }

    /// Returns the case of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Case> {
        let case = |index: &usize| self.list.get(*index);
        let found = self
            .sorted
            .binary_search_by(|index| case(index).map(|case| case.name.as_str()).cmp(&Some(name)));
        found.ok().and_then(|position| self.sorted.get(position)).and_then(case)
    }
}

impl Integer {
    /// Returns the least and the greatest value.
    pub(super) fn range(self) -> (i128, i128) {
        match self {
            Self::U8 => (u8::MIN.into(), u8::MAX.into()),
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U16 => (u16::MIN.into(), u16::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U32 => (u32::MIN.into(), u32::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U64 => (u64::MIN.into(), u64::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
        }
    }

    /// Returns true for 64-bit integers, which JSON numbers cannot hold everywhere.
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Self::U64 | Self::S64)
    }
}

/// The parts that the types of a function may still have.
pub(super) struct Room(usize);

impl Room {
    pub(super) fn new() -> Self {
        Self(MAX_PARTS)
    }

    fn take(&mut self, depth: usize) -> Result<(), Unfit> {
        self.0 = self.0.checked_sub(1).filter(|_| depth <= MAX_DEPTH).ok_or(Unfit::Size)?;
        Ok(())
    }
}

impl Shape {
    /// Returns the shape of a type, unless its values have no form in JSON. A type may use another
    /// one many times over, so the parts are counted while they are made.
    pub(super) fn new(ty: &Type, room: &mut Room) -> Result<Self, Unfit> {
        Self::at(ty, room, 1)
    }

    fn at(ty: &Type, room: &mut Room, depth: usize) -> Result<Self, Unfit> {
        room.take(depth)?;
        let mut inner = |ty: Type| Self::at(&ty, room, depth + 1);
        Ok(match ty {
            Type::Bool => Self::Bool,
            Type::U8 => Self::Integer(Integer::U8),
            Type::S8 => Self::Integer(Integer::S8),
            Type::U16 => Self::Integer(Integer::U16),
            Type::S16 => Self::Integer(Integer::S16),
            Type::U32 => Self::Integer(Integer::U32),
            Type::S32 => Self::Integer(Integer::S32),
            Type::U64 => Self::Integer(Integer::U64),
            Type::S64 => Self::Integer(Integer::S64),
            Type::Float32 => Self::F32,
            Type::Float64 => Self::F64,
            Type::Char => Self::Char,
            Type::String => Self::String,
            Type::List(list) => match list.ty() {
                Type::U8 => Self::Bytes,
                element => Self::List(Box::new(inner(element)?)),
            },
            Type::Tuple(tuple) => Self::Tuple(tuple.types().map(inner).collect::<Result<_, _>>()?),
            Type::Record(record) => {
                let field = |field: wasmtime::component::types::Field<'_>| {
                    Ok(Field { name: field.name.to_owned(), shape: inner(field.ty)? })
                };
                Self::Record(record.fields().map(field).collect::<Result<_, Unfit>>()?)
            }
            Type::Variant(variant) => {
                let case = |case: wasmtime::component::types::Case<'_>| {
                    Ok(Case {
                        name: case.name.to_owned(),
                        payload: case.ty.map(&mut inner).transpose()?,
                    })
                };
                let cases = variant.cases().map(case).collect::<Result<_, Unfit>>()?;
                Self::Choice(ChoiceKind::Variant, Cases::new(cases))
            }
            Type::Enum(names) => {
                let case = |name: &str| Case { name: name.to_owned(), payload: None };
                Self::Choice(ChoiceKind::Enum, Cases::new(names.names().map(case).collect()))
            }
            Type::Result(result) => {
                let ok = result.ok().map(&mut inner).transpose()?;
                let err = result.err().map(&mut inner).transpose()?;
                let case = |name: &str, payload| Case { name: name.to_owned(), payload };
                let cases = vec![case("ok", ok), case("err", err)];
                Self::Choice(ChoiceKind::Result, Cases::new(cases))
            }
            Type::Option(option) => Self::Option(Box::new(inner(option.ty())?)),
            Type::Flags(flags) => Self::Flags(flags.names().map(str::to_owned).collect()),
            Type::Own(_) | Type::Borrow(_) => return Err(Unfit::Resource),
            Type::Future(_) | Type::Stream(_) | Type::ErrorContext => {
                return Err(Unfit::Asynchronous);
            }
            Type::Map(_) => return Err(Unfit::Type("map")),
            Type::FixedLengthList(_) => return Err(Unfit::Type("list of fixed length")),
        })
    }
}
