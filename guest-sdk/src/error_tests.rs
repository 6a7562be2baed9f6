//! Tests of the error conversion.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;

/// An error with a source, as libraries define them.
#[derive(Debug)]
struct Outer<E>(&'static str, E);

impl<E: fmt::Debug> fmt::Display for Outer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<E: StdError + 'static> StdError for Outer<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.1)
    }
}

fn question_mark<T, E>(result: Result<T, E>) -> Error
where
    Error: From<E>,
{
    let run = || -> Result<T> { Ok(result?) };
    run().err().unwrap()
}

fn not_found() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no such file")
}

#[test]
fn question_mark_converts_usual_errors() {
    assert_eq!(question_mark("x".parse::<u8>()).message(), "invalid digit found in string");
    assert_eq!(question_mark(serde_json::from_str::<u8>("")).kind(), ErrorKind::Failed);
    assert_eq!(question_mark(Err::<(), _>("text")), Error::failed("text"));
    assert_eq!(question_mark(Err::<(), _>("text".to_owned())), Error::failed("text"));
    assert_eq!(question_mark(Err::<(), _>(Error::cancelled())), Error::cancelled());
    let boxed: Box<dyn StdError + Send + Sync> = not_found().into();
    assert_eq!(question_mark(Err::<(), _>(boxed)), Error::not_found("no such file"));
}

#[test]
fn anyhow_keeps_its_chain_and_its_kind() {
    let error = anyhow::Error::from(not_found()).context("opening a.txt");
    assert_eq!(question_mark(Err::<(), _>(error)), Error::not_found("opening a.txt: no such file"));
    assert_eq!(question_mark(Err::<(), _>(anyhow::anyhow!("plain"))), Error::failed("plain"));
}

#[test]
fn io_errors_keep_known_kinds() {
    let of = |kind| Error::from(io::Error::new(kind, "it")).kind();
    assert_eq!(of(io::ErrorKind::NotFound), ErrorKind::NotFound);
    assert_eq!(of(io::ErrorKind::PermissionDenied), ErrorKind::PermissionDenied);
    assert_eq!(of(io::ErrorKind::InvalidData), ErrorKind::Failed);
}

#[test]
fn os_error_message_omits_its_number() {
    let error = std::fs::read("no/such/file").unwrap_err();
    let (full, code) = (error.to_string(), error.raw_os_error().unwrap());
    let error = Error::from(error);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(format!("{} (os error {code})", error.message()), full);
}

#[test]
fn kind_is_found_in_sources_and_nested_io_errors() {
    let outer = Outer("loading the list", Outer("reading", not_found()));
    assert_eq!(Error::from(outer), Error::not_found("loading the list: reading: no such file"));
    let denied = io::Error::new(io::ErrorKind::PermissionDenied, "not permitted");
    assert_eq!(Error::from(io::Error::other(denied)), Error::permission_denied("not permitted"));
}

#[test]
fn source_repeated_by_message_is_omitted() {
    assert_eq!(
        Error::from(Outer("reading: no such file", not_found())).message(),
        "reading: no such file"
    );
}

#[test]
fn context_precedes_the_message_and_keeps_the_kind() {
    let error = Error::not_found("a.txt").context("reading");
    assert_eq!((error.kind(), error.message()), (ErrorKind::NotFound, "reading: a.txt"));
    let error = Error::invalid_input("/path", "is empty").context("checking");
    assert_eq!((error.field(), error.message()), (Some("/path"), "checking: is empty"));
    assert_eq!(Error::cancelled().context("anything"), Error::cancelled());
}

#[test]
fn results_of_any_error_take_context() {
    let failed: Result<(), io::Error> = Err(not_found());
    assert_eq!(failed.context("reading").unwrap_err(), Error::not_found("reading: no such file"));
    let failed: Result<()> = Err(Error::failed("b"));
    assert_eq!(failed.with_context(|| format!("{}", 1)).unwrap_err(), Error::failed("1: b"));
    let fine: Result<u8, io::Error> = Ok(1);
    let never = || -> &str { unreachable!("there is no error to describe") };
    assert_eq!(fine.with_context(never), Ok(1));
}

#[test]
fn every_kind_maps_to_its_contract_variant() {
    let text = || "m".to_owned();
    assert_eq!(ToolError::from(Error::not_found("m")), ToolError::NotFound(text()));
    assert_eq!(ToolError::from(Error::permission_denied("m")), ToolError::PermissionDenied(text()));
    assert_eq!(ToolError::from(Error::failed("m")), ToolError::Failed(text()));
    assert_eq!(ToolError::from(Error::cancelled()), ToolError::Cancelled);
    let invalid = InvalidInput { field: "f".to_owned(), reason: text() };
    assert_eq!(ToolError::from(Error::invalid_input("f", "m")), ToolError::InvalidInput(invalid));
}

#[test]
fn display_shows_message_and_field() {
    assert_eq!(Error::failed("broke").to_string(), "broke");
    assert_eq!(Error::invalid_input("/a", "is odd").to_string(), "/a: is odd");
    assert_eq!(Error::invalid_input("", "is odd").to_string(), "is odd");
    assert_eq!(Error::cancelled().to_string(), "the call was cancelled");
    assert_eq!(format!("{:?}", Error::failed("broke")), "Failed(\"broke\")");
}
