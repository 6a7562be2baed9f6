//! The judgement of a child's answer and exit status.

use super::*;
use crate::sandbox::compile::compiler::CompileLimits;
use std::os::unix::process::ExitStatusExt as _;

const DONE: i32 = 0;

/// Returns the result of a child with this answer, standard error and status.
fn judged(answer: &[u8], complaint: &str, status: i32) -> Result<Vec<u8>, CompileError> {
    let complaint = complaint.as_bytes().to_vec();
    let said = ChildOutput {
        answer: answer.to_vec(),
        complaint,
        status: Some(ExitStatus::from_raw(status)),
    };
    judge(said, None, &ChildCompiler::palisade("/bin/palisade"))
}

fn answer(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u64).to_le_bytes(), body].concat()
}

#[test]
fn only_a_complete_answer_of_a_successful_child_counts() {
    let memory = CompileLimits::MEMORY;
    assert_eq!(judged(&answer(CODE, b"code"), "", DONE), Ok(b"code".to_vec()));
    assert_eq!(judged(&answer(CODE, b""), "", DONE), Ok(Vec::new()));
    assert_eq!(
        judged(&answer(REFUSED, b"no"), "", DONE),
        Err(CompileError::Invalid("no".to_owned()))
    );
    assert_eq!(
        judged(&answer(FAILED, b"why"), "", DONE),
        Err(CompileError::Crashed("why".to_owned()))
    );
    assert_eq!(
        judged(&answer(NO_MEMORY, b""), "", DONE),
        Err(CompileError::Memory { max: memory })
    );
    let crashed =
        |answer: &[u8], status| matches!(judged(answer, "", status), Err(CompileError::Crashed(_)));
    let whole = answer(CODE, b"code");
    assert!(crashed(&whole[..12], DONE) && crashed(&whole[..5], DONE) && crashed(&[], DONE));
    assert!(crashed(&[&whole[..], b"x"].concat(), DONE) && crashed(&answer(9, b""), DONE));
    assert!(crashed(&whole, 1 << 8) && crashed(&whole, 9), "it failed, or was killed");
}

#[test]
fn refusal_is_cut_and_oversized_code_refused() {
    let words = |length: usize| match judged(&answer(REFUSED, &vec![b'x'; length]), "", DONE) {
        Err(CompileError::Invalid(words)) => words,
        other => panic!("{other:?}"),
    };
    assert_eq!(words(MAX_REASON + 1), words(MAX_REASON));
    let whole = MAX_CODE as usize + HEAD;
    let said =
        |length| ChildOutput { answer: vec![0; length], complaint: Vec::new(), status: None };
    let judged = |length| judge(said(length), None, &ChildCompiler::palisade("/bin/palisade"));
    assert!(matches!(judged(whole), Err(CompileError::Crashed(_))));
    assert_eq!(judged(whole + 1), Err(CompileError::Code { max: MAX_CODE }));
}

#[test]
fn silent_child_is_judged_by_exit_and_stderr() {
    let time = CompileLimits::TIME;
    let memory = CompileLimits::MEMORY;
    assert_eq!(judged(b"", "", CPU), Err(CompileError::Time { max: time }));
    let aborted = judged(b"", "memory allocation of 10 bytes failed", 6);
    assert_eq!(aborted, Err(CompileError::Memory { max: memory }));
    let said = |complaint: &str, status| match judged(b"", complaint, status) {
        Err(CompileError::Crashed(said)) => said,
        other => panic!("{other:?}"),
    };
    assert!(said("", 11).contains("signal 11"));
    assert!(said("one\ntwo", 1 << 8).contains("one") && !said("one\ntwo", 1 << 8).contains("two"));
    assert!(said("", 1 << 8).contains("without an answer"));
    for code in [126, 127] {
        assert!(
            matches!(judged(b"", "not found", code << 8), Err(CompileError::Start(_))),
            "{code}"
        );
    }
    assert!(matches!(judged(b"", "not found", 125 << 8), Err(CompileError::Crashed(_))));
}
