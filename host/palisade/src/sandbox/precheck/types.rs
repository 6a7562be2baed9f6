//! An iterative scan of component types. The binary form allows unlimited nesting, so a recursive
//! reader could overflow the stack.

use super::cap::Cap;
use super::error::PrecheckError;
use super::feature::Feature;
use super::module;
use super::tally::Tally;
use wasmparser::{
    BinaryReader, ComponentAlias, ComponentDefinedType, ComponentExternName, ComponentExternalKind,
    ComponentImport, ComponentOuterAliasKind, ComponentType, ComponentTypeRef, ComponentValType,
    CoreType, PrimitiveValType, TypeBounds,
};

/// The first byte of a component type.
const COMPONENT: u8 = 0x41;
/// The first byte of an instance type.
const INSTANCE: u8 = 0x42;

/// The depth of each type declared so far, for each open component or component type, innermost
/// scope last.
///
/// A type exported by an instance counts as flat, because its content was counted where it was
/// declared. The engine has its own limit on the whole.
#[derive(Default)]
pub(super) struct Scopes(Vec<Vec<u32>>);

impl Scopes {
    pub(super) fn enter(&mut self) {
        self.0.push(Vec::new());
    }

    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// Adds another index for a type of the scope `outward` levels out.
    pub(super) fn again(&mut self, outward: u32, index: u32) {
        let depth = self.depth(outward, index);
        self.push(depth);
    }

    /// Adds a type of unknown content, which counts as flat.
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

    fn value_depth(&self, ty: ComponentValType) -> u32 {
        match ty {
            ComponentValType::Primitive(_) => 0,
            ComponentValType::Type(index) => self.depth(0, index),
        }
    }
}

/// A list of types or declarations with items left to read.
struct List {
    left: u32,
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// A section of types.
    Types,
    /// The declarations of a component type or an instance type.
    Declarations,
}

/// Scans a section of `count` types.
pub(super) fn scan(
    mut reader: BinaryReader<'_>,
    count: u32,
    scopes: &mut Scopes,
    tally: &mut Tally,
) -> Result<(), PrecheckError> {
    tally.add(Cap::Types, count)?;
    let mut open = vec![List { left: count, content: Content::Types }];
    while let Some(list) = open.last_mut() {
        if list.left == 0 {
            if list.content == Content::Declarations {
                scopes.leave();
                scopes.push(0);
            }
            open.pop();
            continue;
        }
        list.left -= 1;
        let inner = match list.content {
            Content::Types => ty(&mut reader, scopes)?,
            Content::Declarations => declaration(&mut reader, scopes, tally)?,
        };
        if let Some(inner) = inner {
            tally.add(Cap::Types, inner.left)?;
            scopes.enter();
            open.push(inner);
            Cap::TypeNesting.check(open.len() - 1)?;
        }
    }
    Ok(())
}

/// Reads one type. Of a component type or an instance type only the header is read, and the list of
/// its declarations is returned.
fn ty(reader: &mut BinaryReader<'_>, scopes: &mut Scopes) -> Result<Option<List>, PrecheckError> {
    let first = reader.clone().read_u8()?;
    if first == COMPONENT || first == INSTANCE {
        reader.read_u8()?;
        return Ok(Some(List { left: reader.read_var_u32()?, content: Content::Declarations }));
    }
    let depth = match reader.read::<ComponentType<'_>>()? {
        ComponentType::Defined(ty) => defined(&ty, scopes)?,
        ComponentType::Func(ty) => {
            if ty.async_ {
                return Err(PrecheckError::Feature(Feature::ComponentModelAsync));
            }
            Cap::TypeWidth.check(ty.params.len())?;
            let values = ty.params.iter().map(|(_, ty)| *ty).chain(ty.result);
            depth_of(values, scopes)?
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
) -> Result<Option<List>, PrecheckError> {
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
        _ => return Err(PrecheckError::malformed(at, "a declaration has an unknown kind")),
    }
    Ok(None)
}

fn alias(alias: &ComponentAlias<'_>, scopes: &mut Scopes) {
    match *alias {
        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Type, .. } => scopes.opaque(),
        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, count, index } => {
            scopes.again(count, index);
        }
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

/// Returns the depth of a value type. Rejects disabled features and types that are too wide.
fn defined(ty: &ComponentDefinedType<'_>, scopes: &Scopes) -> Result<u32, PrecheckError> {
    use ComponentDefinedType as D;
    let async_only = || Err(PrecheckError::Feature(Feature::ComponentModelAsync));
    let values: Vec<ComponentValType> = match ty {
        D::Primitive(PrimitiveValType::ErrorContext) | D::Future(_) | D::Stream(_) => {
            return async_only();
        }
        D::Record(fields) => fields.iter().map(|(_, ty)| *ty).collect(),
        D::Variant(cases) => {
            Cap::TypeWidth.check(cases.len())?;
            cases.iter().filter_map(|case| case.ty).collect()
        }
        D::Tuple(values) => values.to_vec(),
        D::Flags(names) | D::Enum(names) => {
            Cap::TypeWidth.check(names.len())?;
            Vec::new()
        }
        D::List(ty) | D::Option(ty) | D::FixedLengthList(ty, _) => vec![*ty],
        D::Map(key, value) => vec![*key, *value],
        D::Result { ok, err } => ok.iter().chain(err).copied().collect(),
        D::Primitive(_) | D::Own(_) | D::Borrow(_) => return Ok(0),
    };
    Cap::TypeWidth.check(values.len())?;
    depth_of(values.into_iter(), scopes)
}

/// Returns one more than the greatest depth of the given types. Rejects types that are too deep.
fn depth_of(
    values: impl Iterator<Item = ComponentValType>,
    scopes: &Scopes,
) -> Result<u32, PrecheckError> {
    let mut deepest = 0;
    for value in values {
        if value == ComponentValType::Primitive(PrimitiveValType::ErrorContext) {
            return Err(PrecheckError::Feature(Feature::ComponentModelAsync));
        }
        deepest = deepest.max(scopes.value_depth(value));
    }
    Cap::TypeNesting.check(deepest + 1)?;
    Ok(deepest + 1)
}
