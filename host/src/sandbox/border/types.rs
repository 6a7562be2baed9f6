//! The types of components. They nest without end in the binary form, and a reader that follows them by recursion is at the mercy of the file; so does this
//! one not.

use super::cap::Tally;
use super::{BorderRefused, Cap, Feature, module};
use wasmparser::{
    BinaryReader, ComponentAlias, ComponentDefinedType, ComponentExternName, ComponentExternalKind, ComponentImport,
    ComponentOuterAliasKind, ComponentType, ComponentTypeRef, ComponentValType, CoreType, PrimitiveValType, TypeBounds,
};

/// The first byte of the type of a component.
const COMPONENT: u8 = 0x41;
/// The first byte of the type of an instance.
const INSTANCE: u8 = 0x42;

/// How deep the types go that each open component, and each open type of one, has declared so far; innermost last.
///
/// A type that comes out of an instance counts as flat: what is inside it was counted where it was written. The engine has a bound of its own over all.
#[derive(Default)]
pub(super) struct Scopes(Vec<Vec<u32>>);

impl Scopes {
    pub(super) fn enter(&mut self) {
        self.0.push(Vec::new());
    }

    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// A second name for a type of the scope so many levels further out.
    pub(super) fn again(&mut self, outward: u32, index: u32) {
        let depth = self.depth(outward, index);
        self.push(depth);
    }

    /// A type of which nothing is known.
    pub(super) fn opaque(&mut self) {
        self.push(0);
    }

    fn push(&mut self, depth: u32) {
        if let Some(scope) = self.0.last_mut() {
            scope.push(depth);
        }
    }

    fn depth(&self, outward: u32, index: u32) -> u32 {
        let scope = self.0.iter().rev().nth(outward as usize);
        scope.and_then(|scope| scope.get(index as usize)).copied().unwrap_or(0)
    }

    fn of(&self, ty: ComponentValType) -> u32 {
        match ty {
            ComponentValType::Primitive(_) => 0,
            ComponentValType::Type(index) => self.depth(0, index),
        }
    }
}

/// A list of types or declarations that is not at its end.
struct List {
    left: u32,
    holds: Holds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A section of types.
    Types,
    /// What a component or an instance is said to have.
    Declarations,
}

/// Goes through a section of `count` types.
pub(super) fn scan(
    mut reader: BinaryReader<'_>,
    count: u32,
    scopes: &mut Scopes,
    tally: &mut Tally,
) -> Result<(), BorderRefused> {
    tally.add(Cap::Types, count)?;
    let mut open = vec![List { left: count, holds: Holds::Types }];
    while let Some(list) = open.last_mut() {
        if list.left == 0 {
            if list.holds == Holds::Declarations {
                scopes.leave();
                scopes.push(0);
            }
            open.pop();
            continue;
        }
        list.left -= 1;
        let inner = match list.holds {
            Holds::Types => ty(&mut reader, scopes)?,
            Holds::Declarations => declaration(&mut reader, scopes, tally)?,
        };
        if let Some(inner) = inner {
            tally.add(Cap::Types, inner.left)?;
            scopes.enter();
            open.push(inner);
            Cap::TypeNesting.holds(open.len() - 1)?;
        }
    }
    Ok(())
}

/// Reads one type. That of a component or an instance is only begun.
fn ty(reader: &mut BinaryReader<'_>, scopes: &mut Scopes) -> Result<Option<List>, BorderRefused> {
    let first = reader.clone().read_u8()?;
    if first == COMPONENT || first == INSTANCE {
        reader.read_u8()?;
        return Ok(Some(List { left: reader.read_var_u32()?, holds: Holds::Declarations }));
    }
    let depth = match reader.read::<ComponentType<'_>>()? {
        ComponentType::Defined(ty) => defined(&ty, scopes)?,
        ComponentType::Func(ty) => {
            if ty.async_ {
                return Err(BorderRefused::Feature(Feature::ComponentModelAsync));
            }
            Cap::TypeWidth.holds(ty.params.len())?;
            let values = ty.params.iter().map(|(_, ty)| *ty).chain(ty.result);
            checked(values, scopes)?
        }
        _ => 0,
    };
    scopes.push(depth);
    Ok(None)
}

fn declaration(
    reader: &mut BinaryReader<'_>,
    scopes: &mut Scopes,
    tally: &mut Tally,
) -> Result<Option<List>, BorderRefused> {
    let at = reader.original_position();
    match reader.read_u8()? {
        0x00 => module::declared(&reader.read::<CoreType<'_>>()?, tally)?,
        0x01 => return ty(reader, scopes),
        0x02 => alias(&reader.read()?, scopes),
        0x03 => named(reader.read::<ComponentImport<'_>>()?.ty, scopes),
        0x04 => {
            reader.read::<ComponentExternName<'_>>()?;
            named(reader.read()?, scopes);
        }
        _ => return Err(BorderRefused::malformed(at, "a declaration has an unknown kind")),
    }
    Ok(None)
}

fn alias(alias: &ComponentAlias<'_>, scopes: &mut Scopes) {
    match *alias {
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Type, .. } => scopes.opaque(),
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, count, index } => scopes.again(count, index),
        _ => {}
    }
}

fn named(ty: ComponentTypeRef, scopes: &mut Scopes) {
    match ty {
        ComponentTypeRef::Type(TypeBounds::Eq(index)) => scopes.again(0, index),
        ComponentTypeRef::Type(TypeBounds::SubResource) => scopes.opaque(),
        _ => {}
    }
}

/// How deep a type of values is, and whether it is acceptable.
fn defined(ty: &ComponentDefinedType<'_>, scopes: &Scopes) -> Result<u32, BorderRefused> {
    use ComponentDefinedType as D;
    let async_only = || Err(BorderRefused::Feature(Feature::ComponentModelAsync));
    let values: Vec<ComponentValType> = match ty {
        D::Primitive(PrimitiveValType::ErrorContext) | D::Future(_) | D::Stream(_) => return async_only(),
        D::Record(fields) => fields.iter().map(|(_, ty)| *ty).collect(),
        D::Variant(cases) => {
            Cap::TypeWidth.holds(cases.len())?;
            cases.iter().filter_map(|case| case.ty).collect()
        }
        D::Tuple(values) => values.to_vec(),
        D::Flags(names) | D::Enum(names) => {
            Cap::TypeWidth.holds(names.len())?;
            Vec::new()
        }
        D::List(ty) | D::Option(ty) | D::FixedLengthList(ty, _) => vec![*ty],
        D::Map(key, value) => vec![*key, *value],
        D::Result { ok, err } => ok.iter().chain(err).copied().collect(),
        D::Primitive(_) | D::Own(_) | D::Borrow(_) => return Ok(0),
    };
    Cap::TypeWidth.holds(values.len())?;
    checked(values.into_iter(), scopes)
}

/// One level more than the deepest of these.
fn checked(values: impl Iterator<Item = ComponentValType>, scopes: &Scopes) -> Result<u32, BorderRefused> {
    let mut deepest = 0;
    for value in values {
        if value == ComponentValType::Primitive(PrimitiveValType::ErrorContext) {
            return Err(BorderRefused::Feature(Feature::ComponentModelAsync));
        }
        deepest = deepest.max(scopes.of(value));
    }
    Cap::TypeNesting.holds(deepest + 1)?;
    Ok(deepest + 1)
}
