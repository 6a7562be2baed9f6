//! Reads the plugins that were loaded.

use super::{listing, texts, time};
use crate::journal::filters::Page;
use crate::journal::rows::{Listing, PluginRow};
use rusqlite::{Connection, Result, Row};

/// Returns a page of plugins, the one that was new last first.
pub(in crate::journal) fn page(conn: &Connection, page: Page) -> Result<Listing<PluginRow>> {
    let mut select = conn.prepare_cached(
        "SELECT key, name, digest, first_seen, last_seen, tools FROM plugins
         WHERE key < ?1 ORDER BY key DESC",
    )?;
    listing(select.query([page.below()])?, page, |row| plugin(row).map(Some))
}

fn plugin(row: &Row<'_>) -> Result<PluginRow> {
    let tools: String = row.get(5)?;
    Ok(PluginRow {
        name: row.get(1)?,
        digest: row.get(2)?,
        first_seen: time(row.get(3)?),
        last_seen: time(row.get(4)?),
        tools: texts(&tools),
    })
}
