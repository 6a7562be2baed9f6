//! Preparation of a plugin: the pre-compilation check, compilation, linking and description.

use super::compilation::CompiledPlugin;
use super::describe::{Described, checked, memory, of_functions};
use super::error::PluginRefused;
use super::imports::{self, Import};
use super::lazy_code::{ByteSource, LazyCode};
use super::prepared::Prepared;
use super::provenance::{Freshness, Trust};
use crate::execution::OwnerShares;
use crate::execution::account::{DescriptionPart, DescriptionTerms, HeldDescription};
use crate::sandbox::adapt::{World, package_docs};
use crate::sandbox::description::Description;
use crate::sandbox::guest_files::GuestFiles;
use crate::sandbox::handle::Sandbox;
use crate::sandbox::precheck;
use crate::sandbox::stored_description::StoredDescription;
use crate::tool::offer::{DocumentIndex, Offer};
use crate::tool::schema::Building;
use crate::tool::{Definition, Digest};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The interface through which a plugin with a grant sends requests.
const SENDS_REQUESTS: &str = "wasi:http/outgoing-handler";

impl Sandbox {
    /// Compiles, links and describes a plugin. Blocks meanwhile: for seconds where a large plugin
    /// is not in the cache. Must not be called on a thread of a running tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns [`PluginRefused`] with the reason. Compiled code may remain in the cache.
    pub fn prepare(&self, bytes: &[u8], trust: Trust) -> Result<Arc<Prepared>, PluginRefused> {
        // The code is linked from now on, so that nothing asks for the bytes again.
        let kept = || Err("its bytes were not kept".into());
        let source = ByteSource { bytes: Box::new(kept), trust, world: World::Tool };
        let terms = DescriptionTerms::of_approved();
        self.prepare_hashed(bytes, Digest::of(bytes), source, terms, &CancellationToken::new())
    }

    /// Prepares a plugin as [`prepare`](Self::prepare) does, from bytes that have just been hashed,
    /// until `cancel` is cancelled. The source returns them again for a later compilation.
    pub(crate) fn prepare_hashed(
        &self,
        bytes: &[u8],
        digest: Digest,
        source: ByteSource,
        terms: DescriptionTerms,
        cancel: &CancellationToken,
    ) -> Result<Arc<Prepared>, PluginRefused> {
        precheck::check(bytes)?;
        let compiled = self.compile(bytes, digest, source.trust, self.strategy.first(), cancel)?;
        let CompiledPlugin { component, tier, freshness } = &compiled;
        let engine = component.engine();
        let world = source.world.clone();
        let names = match &world {
            World::Tool => imports::names(engine, component),
            World::Functions(_) => imports::names_of_functions(engine, component),
        };
        let powers = self.powers_of(digest);
        let imports = imports::check(names.clone(), powers.as_deref())?;
        let linked = self.link(&compiled, &world, powers.as_deref())?;
        let Described { description, definitions } = match &world {
            World::Tool => self.describe(&linked, digest, names, powers.as_deref())?,
            World::Functions(adaptation) => {
                let own = package_docs(bytes);
                let description = of_functions(engine, component, adaptation, &own, names)?;
                let definitions = checked(&description, Building::Now)?;
                Described { description, definitions }
            }
        };
        let described = world.description_digest(digest);
        self.cache.keep_description(&self.runtime.engine, described, &description);
        let held = self.held(source.trust, terms, &definitions, &description.offer)?;
        let owner = OwnerShares::new(digest);
        let code = match terms.part {
            DescriptionPart::Approved => {
                LazyCode::from_linked(linked, *tier, self.clone(), source, powers)
            }
            // It may never be called, so that its code takes no memory until then.
            DescriptionPart::Unapproved => LazyCode::unloaded(self.clone(), source, powers),
        };
        Ok(Arc::new(Prepared {
            code,
            digest,
            description: held,
            definitions: with_reach(definitions, &imports),
            imports,
            documents: DocumentIndex::of(&description.offer),
            offer: description.offer,
            left_out: description.left_out,
            freshness: *freshness,
            files: GuestFiles::new(&owner),
            owner,
        }))
    }

    /// Returns the plugin with this digest, if the cache has its description and its code. A faulty
    /// entry counts as absent.
    pub(crate) fn prepare_cached(
        &self,
        digest: Digest,
        source: ByteSource,
        terms: DescriptionTerms,
    ) -> Option<Arc<Prepared>> {
        let engine = &self.runtime.engine;
        let described = source.world.description_digest(digest);
        let description = self.cache.description(engine, described)?;
        if !self.cache.has_code(engine, digest, self.strategy.first()) {
            return None;
        }
        self.prepare_described(digest, description, source, terms, Freshness::Cached)
    }

    /// Returns the plugin with this digest, whose description is part of the program. If the cache
    /// does not have its code, it is compiled at the first call. A faulty description counts as
    /// absent.
    pub(crate) fn prepare_embedded(
        &self,
        digest: Digest,
        description: &str,
        source: ByteSource,
    ) -> Option<Arc<Prepared>> {
        let description = StoredDescription::parse(description)?;
        let freshness =
            match self.cache.has_code(&self.runtime.engine, digest, self.strategy.first()) {
                true => Freshness::Cached,
                false => Freshness::Compiled,
            };
        let terms = DescriptionTerms::of_approved();
        self.prepare_described(digest, description, source, terms, freshness)
    }

    fn prepare_described(
        &self,
        digest: Digest,
        description: Description,
        source: ByteSource,
        terms: DescriptionTerms,
        freshness: Freshness,
    ) -> Option<Arc<Prepared>> {
        let definitions = checked(&description, Building::AtFirstUse).ok()?;
        let held = self.held(source.trust, terms, &definitions, &description.offer).ok()?;
        let owner = OwnerShares::new(digest);
        let powers = self.powers_of(digest);
        let imports = imports::check(description.imports, powers.as_deref()).ok()?;
        Some(Arc::new(Prepared {
            code: LazyCode::unloaded(self.clone(), source, powers),
            digest,
            description: held,
            definitions: with_reach(definitions, &imports),
            imports,
            documents: DocumentIndex::of(&description.offer),
            offer: description.offer,
            freshness,
            left_out: description.left_out,
            files: GuestFiles::new(&owner),
            owner,
        }))
    }

    /// Counts the memory of a description.
    fn held(
        &self,
        trust: Trust,
        terms: DescriptionTerms,
        definitions: &[Definition],
        offer: &Offer,
    ) -> Result<HeldDescription, PluginRefused> {
        let memory = memory(definitions, offer);
        match trust {
            Trust::Embedded => Ok(HeldDescription::of_shipped(memory)),
            Trust::Untrusted => self.descriptions.hold(terms, memory).map_err(|no_room| {
                PluginRefused::NoRoom { bytes: no_room.wanted, accepted: no_room.accepted }
            }),
        }
    }
}

/// Notes in the definitions of a plugin that it sends requests or calls other tools, if it imports
/// an interface for that.
fn with_reach(definitions: Vec<Definition>, imports: &[Import]) -> Vec<Definition> {
    let definitions = match imports::call_tools(imports) {
        true => definitions.into_iter().map(Definition::with_tool_calls).collect(),
        false => definitions,
    };
    match imports.iter().any(|import| import.name.starts_with(SENDS_REQUESTS)) {
        true => definitions.into_iter().map(Definition::with_requests).collect(),
        false => definitions,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::sandbox::Cache;
    use palisade_tests::Wat;
    use palisade_tests::wat::Told;

    #[test]
    fn code_of_a_file_without_approval_is_not_kept_in_memory() {
        let sandbox = Sandbox::new(Cache::off()).unwrap();
        let bytes = Wat::new(Told::new("raw")).build();
        for part in [DescriptionPart::Approved, DescriptionPart::Unapproved] {
            let again = bytes.clone();
            let source = ByteSource {
                bytes: Box::new(move || Ok(again.clone())),
                trust: Trust::Untrusted,
                world: World::Tool,
            };
            let terms = DescriptionTerms { part, replaced: 0 };
            let uncancelled = CancellationToken::new();
            let prepared =
                sandbox.prepare_hashed(&bytes, Digest::of(&bytes), source, terms, &uncancelled);
            let prepared = prepared.unwrap();
            let is_approved = part == DescriptionPart::Approved;
            assert_eq!(prepared.code.get().is_some(), is_approved);
            prepared.hold().unwrap();
            assert!(prepared.code.get().is_some(), "a call loads it");
        }
    }
}
