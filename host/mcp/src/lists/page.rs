//! The pages of a list, which bound each response, whatever plugins list.

use crate::clients::known_lists::ListDigest;
use crate::state::list_cache::ListItem;
use rmcp::model::{ErrorData, PaginatedRequestParams};

/// The length of a page, as JSON, to which no further item is added, in bytes. Ordinary lists are
/// far shorter, since some clients read only the first page.
const PAGE: usize = 1 << 20;

/// A page of a list.
#[derive(Debug, PartialEq)]
pub(crate) struct Page<T> {
    /// The items.
    pub(crate) items: Vec<T>,
    /// The cursor of the next page. `None` if this is the last one.
    pub(crate) next: Option<String>,
    /// The length of the items as JSON, in bytes.
    pub(crate) length: usize,
}

/// Returns the page of a list that begins at the cursor of this request, or the first one.
///
/// # Errors
///
/// The error response for a cursor that is not one of this list as it is now.
pub(crate) fn page<'a, T: Clone + 'a>(
    items: impl Iterator<Item = &'a ListItem<T>>,
    digest: ListDigest,
    request: Option<PaginatedRequestParams>,
) -> Result<Page<T>, ErrorData> {
    page_of(items, digest, request.and_then(|request| request.cursor).as_deref(), PAGE)
}

fn page_of<'a, T: Clone + 'a>(
    items: impl Iterator<Item = &'a ListItem<T>>,
    digest: ListDigest,
    cursor: Option<&str>,
    most: usize,
) -> Result<Page<T>, ErrorData> {
    let begin = match cursor {
        None => 0,
        Some(cursor) => index(cursor, digest).ok_or_else(foreign_cursor)?,
    };
    let mut page = Page { items: Vec::new(), next: None, length: 0 };
    for (index, item) in items.enumerate().skip(begin) {
        if page.length >= most {
            page.next = Some(cursor_of(index, digest));
            break;
        }
        page.length += item.length + 1;
        page.items.push(item.item.clone());
    }
    if page.items.is_empty() && cursor.is_some() { Err(foreign_cursor()) } else { Ok(page) }
}

/// Returns the cursor of the page of this list that begins at an index. It is not valid for the
/// list after a change, which may have moved the items.
fn cursor_of(index: usize, digest: ListDigest) -> String {
    format!("{index}-{}", digest.short())
}

fn index(cursor: &str, digest: ListDigest) -> Option<usize> {
    let (index, of) = cursor.split_once('-')?;
    index.parse().ok().filter(|_| of == digest.short())
}

fn foreign_cursor() -> ErrorData {
    let text = "the cursor is none of this list, or the list has changed: begin without one";
    ErrorData::invalid_params(text, None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn items(lengths: &[usize]) -> Vec<ListItem<usize>> {
        let item = |(item, length): (usize, &usize)| {
            let hash = blake3::hash(&item.to_ne_bytes());
            ListItem { item, length: *length, hash }
        };
        lengths.iter().enumerate().map(item).collect()
    }

    fn digest(items: &[ListItem<usize>]) -> ListDigest {
        ListDigest::of_hashes(items.iter().map(|item| &item.hash))
    }

    #[test]
    fn pages_have_each_item_once_and_a_bounded_length() {
        let all = items(&[40, 70, 200, 10, 10, 10, 99, 1]);
        let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, None);
        loop {
            let page = page_of(all.iter(), digest(&all), cursor.as_deref(), 100).unwrap();
            assert!(page.items.len() == 1 || page.length < 100 + 200, "{page:?}");
            seen.extend(page.items);
            pages += 1;
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((seen, pages), ((0..8).collect(), 4));
    }

    #[test]
    fn short_list_is_one_page() {
        for all in [items(&[]), items(&[1, 2, 3])] {
            let page = page(all.iter(), digest(&all), None).unwrap();
            assert_eq!((page.items.len(), page.next), (all.len(), None));
        }
    }

    #[test]
    fn cursor_of_another_list_is_refused() {
        let (all, other) = (items(&[60, 60, 60]), items(&[60, 60]));
        let first = page_of(all.iter(), digest(&all), None, 60).unwrap();
        let cursor = first.next.unwrap();
        assert!(page_of(all.iter(), digest(&all), Some(&cursor), 60).is_ok());
        assert!(page_of(other.iter(), digest(&other), Some(&cursor), 60).is_err());
        let past = cursor_of(3, digest(&all));
        for foreign in ["", "1", "made up", "x-y", &past] {
            let refused = page_of(all.iter(), digest(&all), Some(foreign), 60).unwrap_err();
            assert_eq!(refused.code.0, -32602, "{foreign}");
        }
    }
}
