//! The engine that the subcommands for authors share.

use super::setup;
use crate::config::Settings;
use palisade_author::Engine;
use palisade_net::Unconnected;
use std::sync::Arc;

/// Returns how plugins are compiled: as everywhere in this program.
pub(super) fn engine(settings: &Settings) -> Engine {
    Engine {
        compiler: setup::compiler(settings),
        cache: setup::cache_mode(),
        // A plugin is tried with random inputs, so that none of its requests is sent.
        powers: Some(Arc::new(Unconnected)),
    }
}
