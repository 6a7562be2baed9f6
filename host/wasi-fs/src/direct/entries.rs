//! Operations on directory entries: create, remove, rename, link.

use std::ffi::OsStr;

use rustix::fs::{AtFlags, FileType, Mode, linkat, mkdirat, readlinkat, renameat, unlinkat};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::height::check_tree;
use super::locate::{Follow, Located, is_directory, locate};
use super::mount::OpenDir;
use super::permissions;
use crate::errors::{Fault, Refusal};
use crate::path::GuestPath;
use crate::usage::Usage;

/// Creates a directory.
pub(super) fn create_directory(dir: &OpenDir, path: &str, usage: &Usage) -> Result<(), Fault> {
    let place = locate(dir, &to_change(path, usage)?, usage)?;
    if place.is_here() {
        return Err(ErrorCode::Exist.into());
    }
    usage.check_depth(place.check_protected(usage)?)?;
    let _admission = place.admit(usage)?;
    // The default of ordinary programs; the user's umask restricts it.
    let permissions = Mode::from_raw_mode(0o777);
    usage.charge_entry()?;
    mkdirat(place.handle(), &*place.name, permissions).inspect_err(|_| usage.refund_entry())?;
    usage.note_created(&place.real_name());
    Ok(())
}

/// Removes an empty directory.
pub(super) fn remove_directory(dir: &OpenDir, path: &str, usage: &Usage) -> Result<(), Fault> {
    let (place, _) = named(dir, path, usage)?;
    check_moved(&place, usage)?;
    unlinkat(place.handle(), &*place.name, AtFlags::REMOVEDIR)?;
    usage.note_gone(&place.real_name());
    Ok(())
}

/// Removes an entry that is not a directory. A symbolic link itself is removed, not its target.
pub(crate) fn unlink(dir: &OpenDir, path: &str, usage: &Usage) -> Result<(), Fault> {
    let place = locate(dir, &to_change(path, usage)?, usage)?;
    if place.is_here() {
        return Err(ErrorCode::IsDirectory.into());
    }
    place.check_change(usage)?;
    // POSIX: a trailing slash names a directory, which `unlink` never removes.
    if place.slash {
        let directory = place.stat()?.is_some_and(|stat| is_directory(&stat));
        return Err(if directory { ErrorCode::IsDirectory } else { ErrorCode::NotDirectory }.into());
    }
    let removed = if usage.new_files().is_empty() { None } else { place.stat()? };
    unlinkat(place.handle(), &*place.name, AtFlags::empty())?;
    if let Some(stat) = removed.filter(|stat| stat.st_nlink == 1) {
        usage.new_files().forget(&stat);
    }
    usage.note_gone(&place.real_name());
    Ok(())
}

/// Removes a file that the call has created under a name that is not final. Another file that has
/// come to stand there stays.
pub(crate) fn remove_new(dir: &OpenDir, path: &str, usage: &Usage) -> Result<(), Fault> {
    let place = locate(dir, &to_change(path, usage)?, usage)?;
    let Some(stat) = place.stat()? else { return Ok(()) };
    let made = usage.new_files().find(&stat);
    match made.is_some_and(|made| made.is((place.handle(), &place.name), &stat)) {
        true => unlink(dir, path, usage),
        false => Ok(()),
    }
}

/// Renames an entry and replaces an existing target. A symbolic link itself is moved.
pub(super) async fn rename(
    from: (&OpenDir, &str),
    to: (&OpenDir, &str),
    usage: &Usage,
) -> Result<(), Fault> {
    let ((old, above), (new, depth)) = (named(from.0, from.1, usage)?, named(to.0, to.1, usage)?);
    check_moved(&old, usage)?;
    check_moved(&new, usage)?;
    usage.check_depth(depth)?;
    // A tree that does not go deeper is not walked, unless path rules may deny a part of it.
    let walks = depth > above || usage.denies_paths();
    if walks && old.stat()?.is_some_and(|stat| is_directory(&stat)) {
        check_tree(&old, (&new, depth), usage).await?;
        // Other calls may have moved the directories of both places meanwhile.
        old.check_change(usage)?;
        usage.check_depth(new.check_change(usage)?)?;
        check_moved(&old, usage)?;
        check_moved(&new, usage)?;
    }
    if (old.slash || new.slash) && !old.stat()?.is_some_and(|stat| is_directory(&stat)) {
        return Err(ErrorCode::NotDirectory.into());
    }
    let _admission = new.admit(usage)?;
    let replaced = new.stat()?;
    let settled = permissions::settle(&old, (&new, replaced.as_ref()), usage)?;
    match renameat(old.handle(), &*old.name, new.handle(), &*new.name) {
        Ok(()) => settled.keep(usage),
        Err(errno) => {
            settled.undo();
            return Err(errno.into());
        }
    }
    usage.note_moved(&old.real_name(), &new.real_name(), replaced.is_some());
    Ok(())
}

/// Creates a hard link to a regular file. A hard link to a symbolic link is refused: it would
/// create a symbolic link in another directory, where its target resolves differently.
pub(super) fn link(
    from: (&OpenDir, &str),
    follow: Follow,
    to: (&OpenDir, &str),
    usage: &Usage,
) -> Result<(), Fault> {
    usage.check_linking()?;
    // As wasmtime-wasi: `link-at` does not follow links.
    if follow == Follow::Yes {
        return Err(ErrorCode::Invalid.into());
    }
    let ((old, _), (new, depth)) = (named(from.0, from.1, usage)?, named(to.0, to.1, usage)?);
    let stat = old.stat()?.ok_or(ErrorCode::NoEntry)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if old.slash => return Err(ErrorCode::NotDirectory.into()),
        // As on Linux: the directory that the trailing slash requires does not exist.
        FileType::RegularFile if new.slash && new.stat()?.is_none() => {
            return Err(ErrorCode::NoEntry.into());
        }
        FileType::RegularFile if new.slash => return Err(ErrorCode::NotDirectory.into()),
        FileType::RegularFile => {}
        FileType::Directory => return Err(ErrorCode::NotPermitted.into()),
        FileType::Symlink => return Err(Refusal::Symlink.into()),
        _ => return Err(Refusal::SpecialFile.into()),
    }
    usage.check_depth(depth)?;
    let _admission = new.admit(usage)?;
    usage.charge_entry()?;
    let made = linkat(old.handle(), &*old.name, new.handle(), &*new.name, AtFlags::empty());
    made.inspect_err(|_| usage.refund_entry())?;
    usage.note_created(&new.real_name());
    Ok(())
}

/// Returns the target of a symbolic link. An absolute target would disclose host paths.
pub(super) fn read_link(dir: &OpenDir, path: &str, usage: &Usage) -> Result<String, Fault> {
    let place = locate(dir, &GuestPath::parse(path)?, usage)?;
    // A link is no directory.
    place.check_standing(None)?;
    let target = readlinkat(place.handle(), &*place.name, Vec::new())?;
    let target = target.into_string().map_err(|_| ErrorCode::IllegalByteSequence)?;
    if target.starts_with('/') {
        return Err(Refusal::Escape.into());
    }
    Ok(target)
}

/// Locates a path that names a directory entry, and checks that it may be changed. Also returns its
/// depth.
fn named<'a>(
    dir: &'a OpenDir,
    path: &'a str,
    usage: &'a Usage,
) -> Result<(Located<'a>, u64), Fault> {
    let place = locate(dir, &to_change(path, usage)?, usage)?;
    if place.is_here() {
        return Err(ErrorCode::Invalid.into());
    }
    let depth = place.check_change(usage)?;
    Ok((place, depth))
}

/// Parses a path that is to be changed. The written path is checked in addition to the resolved
/// one: a link called `.git` is as dangerous as the repository itself.
pub(super) fn to_change<'p>(path: &'p str, usage: &Usage) -> Result<GuestPath<'p>, Fault> {
    let path = GuestPath::parse(path)?;
    usage.protected()?.check_names(path.whole)?;
    Ok(path)
}

fn check_moved(place: &Located<'_>, usage: &Usage) -> Result<(), Fault> {
    Ok(usage.protected()?.check_moved(place.handle(), OsStr::new(&*place.name))?)
}
