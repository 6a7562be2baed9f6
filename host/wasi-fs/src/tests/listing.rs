//! Directory listings.

use std::fs;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorType, DirectoryEntry, DirectoryEntryStream, HostDirectoryEntryStream,
};

use super::{Access, Call, ErrorCode, HostDescriptor, Quotas, code, everywhere, now, resolvers};
use crate::Exhausted;

fn start(call: &mut Call, path: &str) -> Resource<DirectoryEntryStream> {
    let dir = call.open_to_read(path).unwrap();
    code(now(call.view().read_directory(dir))).unwrap()
}

fn next(
    call: &mut Call,
    stream: &Resource<DirectoryEntryStream>,
) -> Result<Option<DirectoryEntry>, ErrorCode> {
    code(now(call.view().read_directory_entry(Resource::new_borrow(stream.rep()))))
}

fn list(call: &mut Call, path: &str) -> Result<Vec<(String, DescriptorType)>, ErrorCode> {
    let stream = start(call, path);
    let mut all = Vec::new();
    while let Some(entry) = next(call, &stream)? {
        all.push((entry.name, entry.type_));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

#[test]
fn listing_has_every_entry_once_with_its_type() {
    everywhere(|call| {
        call.link("link", "file.txt");
        let expected = [
            ("dir".to_owned(), DescriptorType::Directory),
            ("file.txt".to_owned(), DescriptorType::RegularFile),
            ("link".to_owned(), DescriptorType::SymbolicLink),
        ];
        assert_eq!(list(call, ".").unwrap(), expected);
        assert_eq!(list(call, "dir/sub").unwrap(), []);
    });
}

#[test]
fn large_directory_is_listed_completely() {
    everywhere(|call| {
        for i in 0..3_000 {
            fs::write(call.host(&format!("dir/sub/a-rather-long-file-name-{i}")), "").unwrap();
        }
        assert_eq!(list(call, "dir/sub").unwrap().len(), 3_000);
    });
}

/// Other systems reject such names.
#[cfg(target_os = "linux")]
#[test]
fn invalid_utf8_name_hides_no_other_entry() {
    use std::os::unix::ffi::OsStrExt;

    everywhere(|call| {
        fs::write(call.host("dir").join(std::ffi::OsStr::from_bytes(b"odd\xff")), "").unwrap();
        let names: Vec<String> =
            list(call, "dir").unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["deep.txt", "sub"]);
    });
}

#[test]
fn concurrent_listings_are_independent() {
    everywhere(|call| {
        let (a, b) = (start(call, "dir"), start(call, "dir"));
        let first = next(call, &a).unwrap().unwrap().name;
        assert_eq!(next(call, &b).unwrap().unwrap().name, first);
        assert_ne!(next(call, &a).unwrap().unwrap().name, first);
        assert!(next(call, &a).unwrap().is_none());
        let ended = a.rep();
        HostDirectoryEntryStream::drop(&mut call.view(), a).unwrap();
        assert!(next(call, &b).unwrap().is_some());
        let gone = now(call.view().read_directory_entry(Resource::new_borrow(ended)));
        assert!(gone.unwrap_err().downcast().is_err(), "its descriptor is given back");
    });
}

#[test]
fn listing_beyond_the_quota_is_refused() {
    for resolver in resolvers() {
        let quotas = Quotas { listed_entries: 4, ..Quotas::default() };
        let mut call = Call::new(resolver, Access::ReadOnly, quotas);
        assert_eq!(list(&mut call, ".").unwrap().len(), 2);
        assert_eq!(list(&mut call, "dir").unwrap().len(), 2);
        assert_eq!(call.fs.exhausted(), None);
        assert_eq!(list(&mut call, "dir"), Err(ErrorCode::Quota));
        assert_eq!(call.fs.exhausted(), Some(Exhausted::ListedEntries(4)));
        assert!(!call.fs.refused());
    }
}

#[test]
fn dropped_listing_leaves_the_table() {
    everywhere(|call| {
        let stream = start(call, ".");
        let before = call.table.iter_mut().count();
        HostDirectoryEntryStream::drop(&mut call.view(), stream).unwrap();
        assert_eq!(call.table.iter_mut().count(), before - 1);
    });
}

#[test]
fn only_directories_can_be_listed() {
    everywhere(|call| {
        let file: Resource<Descriptor> = call.open_to_read("file.txt").unwrap();
        assert_eq!(
            code(now(call.view().read_directory(file))).map(drop),
            Err(ErrorCode::NotDirectory)
        );
    });
}
