//! The sections of a core module: counts, and a scan for disabled features. Of a function body only
//! the size and the locals are read.

use super::cap::Cap;
use super::error::PrecheckError;
use super::feature::Feature;
use super::feature_check;
use super::instances::CoreCost;
use super::tally::Tally;
use wasmparser::{
    CompositeInnerType, CoreType, CustomSectionReader, Element, ElementItems, ElementKind,
    FunctionBody, KnownCustom, ModuleTypeDeclaration, Name, Payload, RecGroup, SubType, TypeRef,
};

pub(super) fn take(payload: &Payload<'_>, tally: &mut Tally) -> Result<(), PrecheckError> {
    match payload {
        Payload::TypeSection(section) => {
            tally.add(Cap::Types, section.count())?;
            section.clone().into_iter().try_for_each(|group| self::group(&group?, tally))
        }
        Payload::ImportSection(section) => {
            tally.add(Cap::Imports, section.count())?;
            section.clone().into_imports().try_for_each(|import| external(import?.ty))
        }
        Payload::FunctionSection(section) => tally.add(Cap::Functions, section.count()),
        Payload::ExportSection(section) => tally.add(Cap::Exports, section.count()),
        Payload::TableSection(section) => {
            tally.add(Cap::Globals, section.count())?;
            Cap::Tables.check(section.count())?;
            section.clone().into_iter().try_for_each(|table| {
                let ty = table?.ty;
                feature_check::table(&ty)?;
                Cap::Elements.check(ty.initial)
            })
        }
        Payload::MemorySection(section) => {
            tally.add(Cap::Globals, section.count())?;
            Cap::Memories.check(section.count())?;
            section.clone().into_iter().try_for_each(|memory| {
                let ty = memory?;
                feature_check::memory(&ty)?;
                Cap::Pages.check(ty.initial)
            })
        }
        Payload::GlobalSection(section) => {
            tally.add(Cap::Globals, section.count())?;
            section.clone().into_iter().try_for_each(|global| external(TypeRef::Global(global?.ty)))
        }
        Payload::TagSection(_) => Err(PrecheckError::Feature(Feature::Exceptions)),
        Payload::ElementSection(section) => {
            tally.add(Cap::Segments, section.count())?;
            section.clone().into_iter().try_for_each(|segment| passive(&segment?, tally))
        }
        Payload::DataSection(section) => tally.add(Cap::Segments, section.count()),
        Payload::CodeSectionEntry(body) => self::body(body),
        _ => Ok(()),
    }
}

/// Checks a core type that a component declares.
pub(super) fn declared(ty: &CoreType<'_>, tally: &mut Tally) -> Result<(), PrecheckError> {
    match ty {
        CoreType::Rec(group) => self::group(group, tally),
        CoreType::Module(declarations) => {
            tally.add(Cap::Types, declarations.len())?;
            declarations.iter().try_for_each(|declaration| match declaration {
                ModuleTypeDeclaration::Type(group) => self::group(group, tally),
                ModuleTypeDeclaration::Import(import) => external(import.ty),
                ModuleTypeDeclaration::Export { ty, .. } => external(*ty),
                ModuleTypeDeclaration::OuterAlias { .. } => Ok(()),
            })
        }
    }
}

fn group(group: &RecGroup, tally: &mut Tally) -> Result<(), PrecheckError> {
    if group.is_explicit_rec_group() {
        return Err(PrecheckError::Feature(Feature::Gc));
    }
    tally.add(Cap::Types, group.types().len())?;
    group.types().try_for_each(function)
}

/// Checks a core type. Without garbage collection only plain function types are valid.
fn function(ty: &SubType) -> Result<(), PrecheckError> {
    let disabled = |feature| Err(PrecheckError::Feature(feature));
    match &ty.composite_type.inner {
        _ if ty.composite_type.shared => disabled(Feature::Threads),
        _ if !ty.is_final || ty.supertype_idx.is_some() => disabled(Feature::Gc),
        CompositeInnerType::Func(ty) => {
            ty.params().iter().chain(ty.results()).copied().try_for_each(feature_check::value)
        }
        CompositeInnerType::Array(_) | CompositeInnerType::Struct(_) => disabled(Feature::Gc),
        CompositeInnerType::Cont(_) => disabled(Feature::StackSwitching),
    }
}

fn external(ty: TypeRef) -> Result<(), PrecheckError> {
    match ty {
        TypeRef::Memory(ty) => feature_check::memory(&ty),
        TypeRef::Table(ty) => feature_check::table(&ty),
        TypeRef::Global(ty) if ty.shared => Err(PrecheckError::Feature(Feature::Threads)),
        TypeRef::Global(ty) => feature_check::value(ty.content_type),
        TypeRef::Tag(_) => Err(PrecheckError::Feature(Feature::Exceptions)),
        _ => Ok(()),
    }
}

/// Returns what the engine makes at least of a section in each instance.
pub(super) fn core_cost(payload: &Payload<'_>) -> CoreCost {
    let data = |items: u32| CoreCost { data: 16 * u64::from(items), ..CoreCost::default() };
    match payload {
        Payload::ImportSection(section) => data(section.count()),
        Payload::GlobalSection(section) => data(section.count()),
        Payload::MemorySection(section) => {
            CoreCost { memories: section.count().into(), ..CoreCost::default() }
        }
        Payload::TableSection(section) => {
            CoreCost { tables: section.count().into(), ..CoreCost::default() }
        }
        _ => CoreCost::default(),
    }
}

/// Checks the names of functions and modules that the engine keeps. It ignores the rest of a
/// malformed section.
pub(super) fn names(section: &CustomSectionReader<'_>) -> Result<(), PrecheckError> {
    let KnownCustom::Name(parts) = section.as_known() else { return Ok(()) };
    for part in parts.into_iter().map_while(Result::ok) {
        match part {
            Name::Module { name, .. } => Cap::Name.check(name.len())?,
            Name::Function(names) => {
                let mut names = names.into_iter().map_while(Result::ok);
                names.try_for_each(|naming| Cap::Name.check(naming.name.len()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Counts the elements that the engine keeps of a segment.
fn passive(segment: &Element<'_>, tally: &mut Tally) -> Result<(), PrecheckError> {
    let elements = match &segment.items {
        ElementItems::Functions(functions) => functions.count(),
        ElementItems::Expressions(_, expressions) => expressions.count(),
    };
    match segment.kind {
        ElementKind::Passive => tally.add(Cap::PassiveElements, u64::from(elements) + 2),
        ElementKind::Active { .. } | ElementKind::Declared => Ok(()),
    }
}

fn body(body: &FunctionBody<'_>) -> Result<(), PrecheckError> {
    Cap::Function.check(body.range().len())?;
    let mut locals = 0u64;
    for declared in body.get_locals_reader()? {
        let (count, ty) = declared?;
        feature_check::value(ty)?;
        locals = locals.saturating_add(count.into());
        Cap::Locals.check(locals)?;
    }
    Ok(())
}
