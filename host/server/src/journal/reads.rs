//! Reads by resource. Each looks at a bounded number of rows, whatever the journal holds: an index
//! leads to the rows of one condition, and the others are checked row by row.

pub(super) mod calls;
pub(super) mod confirmations;
pub(super) mod events;
pub(super) mod plugins;
pub(super) mod sessions;
pub(super) mod summary;
#[cfg(test)]
mod tests;

use super::filters::Page;
use super::ids::Cursor;
use super::rows::Listing;
use super::time::Timestamp;
use rusqlite::{Result, Row, Rows};

/// The most rows that a page looks at.
pub(super) const SCAN: usize = 4_096;

/// Fills a page from rows whose first column is their number, largest first.
fn listing<T>(
    mut rows: Rows<'_>,
    page: Page,
    mut take: impl FnMut(&Row<'_>) -> Result<Option<T>>,
) -> Result<Listing<T>> {
    let mut listing = Listing { rows: Vec::new(), next: None };
    let mut scanned = 0;
    let mut last = None;
    while let Some(row) = rows.next()? {
        if listing.rows.len() == page.rows() || scanned == SCAN {
            listing.next = last;
            break;
        }
        scanned += 1;
        last = Some(Cursor::from_stored(row.get(0)?));
        listing.rows.extend(take(row)?);
    }
    Ok(listing)
}

/// Returns true if there is no condition, or the value meets it.
fn meets(wanted: Option<&str>, is: Option<&str>) -> bool {
    wanted.is_none() || wanted == is
}

fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn count(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or_default()
}

/// Reads a JSON array of texts that the journal wrote.
fn texts(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_default()
}
