//! The parent's side of a compilation: it starts a child, sends the component, reads a bounded
//! answer and kills the child in time.

use super::child::{CODE, FAILED, MAX_REASON, NO_MEMORY, REFUSED};
use super::compiler::ChildCompiler;
use super::error::CompileError;
use super::order::Order;
use crate::execution::inherited;
use crate::sandbox::error_text::printable;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Children at once, in the whole process. Together they may take twice the limits of one.
const CHILDREN: usize = 2;
/// The largest compiled code accepted from a child, in bytes. The largest accepted component, if it
/// were pure code, compiles to about 150 MiB.
const MAX_CODE: u64 = 256 << 20;
/// The part of a child's standard error that is kept, in bytes.
const MAX_COMPLAINT: u64 = 4 << 10;
/// The length of an answer's header, its kind and the length of its body, in bytes.
const HEAD: usize = 9;

static PERMITS: Semaphore = Semaphore::const_new(CHILDREN);

/// Compiles in a child. Blocks; must not be called on a thread of a running tokio runtime.
pub(super) fn compile(
    compiler: &ChildCompiler,
    order: Order,
    bytes: &[u8],
    cancel: &CancellationToken,
) -> Result<Vec<u8>, CompileError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CompileError::start(&error))?.block_on(async {
        tokio::select! {
            biased;
            () = cancelled(compiler, cancel) => Err(CompileError::Cancelled),
            permit = PERMITS.acquire() => {
                let compiled = run(compiler, order, bytes, cancel).await;
                drop(permit);
                compiled
            }
        }
    })
}

/// Runs one child from start to end. The child has exited and is reaped when this returns.
async fn run(
    compiler: &ChildCompiler,
    order: Order,
    bytes: &[u8],
    cancel: &CancellationToken,
) -> Result<Vec<u8>, CompileError> {
    let mut child = spawn(compiler, order).map_err(|error| CompileError::start(&error))?;
    // From the rounded CPU time that the child enforces: a shorter wait could report a lack of CPU
    // time before the child has used up its limit.
    let wall = compiler.limits.in_whole_seconds().wall();
    let answered = tokio::select! {
        biased;
        () = cancelled(compiler, cancel) => Err(CompileError::Cancelled),
        () = tokio::time::sleep(wall) => Err(CompileError::Wall { max: wall }),
        answered = converse(&mut child, bytes) => Ok(answered),
    };
    // Without effect on a child that has exited. The status tells how it ended.
    let _ = child.start_kill();
    let status = child.wait().await;
    judge(answered?, status.ok(), compiler)
}

/// Completes when all compilations, or this one, are cancelled.
async fn cancelled(compiler: &ChildCompiler, cancel: &CancellationToken) {
    tokio::select! {
        () = compiler.cancelled.cancelled() => {}
        () = cancel.cancelled() => {}
    }
}

fn spawn(compiler: &ChildCompiler, order: Order) -> std::io::Result<Child> {
    let arguments = compiler.arguments.iter().cloned().chain(order.arguments().map(Into::into));
    let mut command = Command::from(inherited::without_inherited(&compiler.program, arguments));
    command.env_clear().current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// The output of a child.
struct ChildOutput {
    answer: Vec<u8>,
    complaint: Vec<u8>,
    /// The exit status, if the child exited by itself.
    status: Option<ExitStatus>,
}

async fn converse(child: &mut Child, bytes: &[u8]) -> ChildOutput {
    let input = child.stdin.take();
    let output = child.stdout.take();
    let errors = child.stderr.take();
    let send = async {
        if let Some(mut input) = input {
            // A child that exits early gives the reason in its answer or its status.
            let _ = input.write_all(bytes).await;
        }
    };
    let ((), answer, complaint) =
        tokio::join!(send, read(output, MAX_CODE + HEAD as u64 + 1), read(errors, MAX_COMPLAINT));
    // A child that sends too much is killed rather than waited for.
    let is_whole = answer.len() as u64 <= MAX_CODE + HEAD as u64;
    let status = if is_whole { child.wait().await.ok() } else { None };
    ChildOutput { answer, complaint, status }
}

async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut read = Vec::new();
    if let Some(from) = from {
        let _ = from.take(most).read_to_end(&mut read).await;
    }
    read
}

fn judge(
    output: ChildOutput,
    killed: Option<ExitStatus>,
    compiler: &ChildCompiler,
) -> Result<Vec<u8>, CompileError> {
    let limits = compiler.limits;
    if output.answer.len() as u64 > MAX_CODE + HEAD as u64 {
        return Err(CompileError::Code { max: MAX_CODE });
    }
    if output.status.is_some_and(|status| status.success())
        && let Some((kind, body)) = split_answer(output.answer)
    {
        let reason = |body: &[u8]| {
            printable(&String::from_utf8_lossy(body.get(..MAX_REASON).unwrap_or(body)))
        };
        return match kind {
            CODE => Ok(body),
            REFUSED => Err(CompileError::Invalid(reason(&body))),
            FAILED => Err(CompileError::Crashed(reason(&body))),
            NO_MEMORY => Err(CompileError::Memory { max: limits.memory }),
            _ => Err(CompileError::crashed("its answer makes no sense")),
        };
    }
    let complaint = String::from_utf8_lossy(&output.complaint);
    tracing::debug!(
        "the compiler ended with {:?} and said {:?}",
        output.status.or(killed),
        printable(&complaint)
    );
    Err(error_of_status(output.status.or(killed), &complaint, compiler))
}

/// Splits an answer into kind and body, if the length in its header is right.
fn split_answer(mut answer: Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let body = answer.len().checked_sub(HEAD)?;
    let (kind, length) = answer.get(..HEAD)?.split_first()?;
    let kind = *kind;
    let length = u64::from_le_bytes(length.try_into().ok()?);
    (length == body as u64).then(|| (kind, answer.split_off(HEAD)))
}

/// Returns the error of a child that gave no answer. Its complaint only selects among rejections.
fn error_of_status(
    status: Option<ExitStatus>,
    complaint: &str,
    compiler: &ChildCompiler,
) -> CompileError {
    let limits = compiler.limits;
    match status.map(signal) {
        Some(Some(CPU)) => CompileError::Time { max: limits.time },
        // Printed by the Rust runtime before it aborts on a failed allocation.
        _ if complaint.contains("memory allocation of") => {
            CompileError::Memory { max: limits.memory }
        }
        Some(Some(number)) => CompileError::crashed(&format!("it was ended by signal {number}")),
        // From the shell that closes descriptors: it did not find the program, or may not execute
        // it.
        _ if matches!(status.and_then(|status| status.code()), Some(126 | 127)) => {
            CompileError::Start(printable(complaint))
        }
        _ => {
            CompileError::crashed(complaint.lines().next().unwrap_or("it ended without an answer"))
        }
    }
}

/// The number of SIGXCPU, which is sent at the CPU time limit.
const CPU: i32 = rustix::process::Signal::XCPU.as_raw();

fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(test)]
mod tests;
