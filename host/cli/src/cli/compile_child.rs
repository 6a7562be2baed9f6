//! `palisade compile-child` (hidden): compiles one plugin for the parent process.

use super::args::CompileChild;
use super::exit::{Exit, Failure};
use palisade::sandbox::answer_compilation;
use std::io;

pub(super) fn run(args: &CompileChild) -> Result<Exit, Failure> {
    let answered =
        answer_compilation(&args.order, &mut io::stdin().lock(), &mut io::stdout().lock());
    answered.map(|()| Exit::Ok).map_err(|error| Failure::usage(error.to_string()))
}
