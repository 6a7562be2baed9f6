//! The shipped plugin `search`: finds files of the workspace by name and by content.

mod find;
mod search;
#[cfg(test)]
mod tests;
mod tree;
mod unread;

use find::find_files;
use search::search_files;

palisade_guest::export!(find_files, search_files);
