//! What the subcommands for authors share.

use super::setup;
use crate::config::Settings;
use palisade_author::Engine;

/// Returns how plugins are compiled: as everywhere in this program.
pub(super) fn engine(settings: &Settings) -> Engine {
    Engine { compiler: setup::compiler(settings), cache: setup::cache_mode() }
}
