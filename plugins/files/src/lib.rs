//! The shipped plugin `files`: reads, lists, writes, patches and deletes files of the workspace.

mod atomic;
mod delete;
mod diff;
mod list;
mod occurrence;
mod patch;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod workspace;
mod write;

use delete::delete_file;
use list::list_dir;
use patch::patch_file;
use read::read_file;
use write::write_file;

palisade_guest::export!(read_file, list_dir, write_file, patch_file, delete_file);
