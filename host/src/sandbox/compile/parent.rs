//! The parent's side: it starts a child, feeds it, reads a bounded answer, and ends it in time.

use super::child::{CODE, FAILED, MAX_WORDS, NO_MEMORY, REFUSED};
use super::error::shown;
use super::{ChildCompiler, CompileError, Order};
use crate::execution::inherited;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Children at once, in the whole process: what they may take together is twice the limits of one.
const CHILDREN: usize = 2;
/// The most compiled code that is taken from a child, in bytes. The largest component that is accepted, if it were nothing but code, makes some 150 MiB.
const MAX_CODE: u64 = 256 << 20;
/// What is kept of a child's complaints, in bytes.
const MAX_COMPLAINT: u64 = 4 << 10;
/// The first byte and the length of an answer.
const HEAD: usize = 9;

static TURNS: Semaphore = Semaphore::const_new(CHILDREN);

/// Compiles in a child. Blocks; must not be called on a thread of a running tokio runtime.
pub(super) fn compile(
    compiler: &ChildCompiler,
    order: Order,
    bytes: &[u8],
    given_up: &CancellationToken,
) -> Result<Vec<u8>, CompileError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CompileError::start(&error))?.block_on(async {
        tokio::select! {
            biased;
            () = cancelled(compiler, given_up) => Err(CompileError::Cancelled),
            turn = TURNS.acquire() => {
                let compiled = run(compiler, order, bytes, given_up).await;
                drop(turn);
                compiled
            }
        }
    })
}

/// One child, from its start to its end. It is gone when this returns, whatever came of it.
async fn run(
    compiler: &ChildCompiler,
    order: Order,
    bytes: &[u8],
    given_up: &CancellationToken,
) -> Result<Vec<u8>, CompileError> {
    let mut child = spawn(compiler, order).map_err(|error| CompileError::start(&error))?;
    // As long as for the time that the child keeps: it would be said not to have had it otherwise.
    let wall = compiler.limits.in_whole_seconds().wall();
    let answered = tokio::select! {
        biased;
        () = cancelled(compiler, given_up) => Err(CompileError::Cancelled),
        () = tokio::time::sleep(wall) => Err(CompileError::Wall { max: wall }),
        answered = converse(&mut child, bytes) => Ok(answered),
    };
    // One that has ended needs none; the status says how it ended.
    let _ = child.start_kill();
    let status = child.wait().await;
    judge(answered?, status.ok(), compiler)
}

/// Ends when nothing is to be compiled any more, or this.
async fn cancelled(compiler: &ChildCompiler, given_up: &CancellationToken) {
    tokio::select! {
        () = compiler.cancelled.cancelled() => {}
        () = given_up.cancelled() => {}
    }
}

fn spawn(compiler: &ChildCompiler, order: Order) -> std::io::Result<Child> {
    let arguments = compiler.arguments.iter().cloned().chain(order.arguments().map(Into::into));
    let mut command = Command::from(inherited::without_inherited(&compiler.program, arguments));
    command.env_clear().current_dir(std::path::MAIN_SEPARATOR_STR).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// What a child said.
struct Said {
    answer: Vec<u8>,
    complaint: Vec<u8>,
    /// How it ended, where it ended by itself.
    status: Option<ExitStatus>,
}

async fn converse(child: &mut Child, bytes: &[u8]) -> Said {
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let send = async {
        if let Some(mut input) = input {
            // A child that ends early has said why, or its status has.
            let _ = input.write_all(bytes).await;
        }
    };
    let ((), answer, complaint) =
        tokio::join!(send, read(output, MAX_CODE + HEAD as u64 + 1), read(errors, MAX_COMPLAINT));
    // More than it may say, or no end of its output: it is ended in place of being waited for.
    let whole = answer.len() as u64 <= MAX_CODE + HEAD as u64;
    let status = if whole { child.wait().await.ok() } else { None };
    Said { answer, complaint, status }
}

async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut read = Vec::new();
    if let Some(from) = from {
        let _ = from.take(most).read_to_end(&mut read).await;
    }
    read
}

fn judge(said: Said, killed: Option<ExitStatus>, compiler: &ChildCompiler) -> Result<Vec<u8>, CompileError> {
    let limits = compiler.limits;
    if said.answer.len() as u64 > MAX_CODE + HEAD as u64 {
        return Err(CompileError::Code { max: MAX_CODE });
    }
    if said.status.is_some_and(|status| status.success())
        && let Some((kind, body)) = unwrapped(said.answer)
    {
        let words = |body: &[u8]| shown(&String::from_utf8_lossy(body.get(..MAX_WORDS).unwrap_or(body)));
        return match kind {
            CODE => Ok(body),
            REFUSED => Err(CompileError::Invalid(words(&body))),
            FAILED => Err(CompileError::Crashed(words(&body))),
            NO_MEMORY => Err(CompileError::Memory { max: limits.memory }),
            _ => Err(CompileError::crashed("its answer makes no sense")),
        };
    }
    let complaint = String::from_utf8_lossy(&said.complaint);
    tracing::debug!("the compiler ended with {:?} and said {:?}", said.status.or(killed), shown(&complaint));
    Err(ended(said.status.or(killed), &complaint, compiler))
}

/// An answer without its head, if it is as long as that says.
fn unwrapped(mut answer: Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let body = answer.len().checked_sub(HEAD)?;
    let (kind, length) = answer.get(..HEAD)?.split_first()?;
    let (kind, length) = (*kind, u64::from_le_bytes(length.try_into().ok()?));
    (length == body as u64).then(|| (kind, answer.split_off(HEAD)))
}

/// Why a child ended that gave no answer. What it complains about only chooses among refusals.
fn ended(status: Option<ExitStatus>, complaint: &str, compiler: &ChildCompiler) -> CompileError {
    let limits = compiler.limits;
    match status.map(signal) {
        Some(Some(CPU)) => CompileError::Time { max: limits.time },
        // What Rust says before it aborts.
        _ if complaint.contains("memory allocation of") => CompileError::Memory { max: limits.memory },
        Some(Some(number)) => CompileError::crashed(&format!("it was ended by signal {number}")),
        // The shell that closes descriptors did not find the program, or may not run it.
        _ if matches!(status.and_then(|status| status.code()), Some(126 | 127)) => {
            CompileError::Start(shown(complaint))
        }
        _ => CompileError::crashed(complaint.lines().next().unwrap_or("it ended without an answer")),
    }
}

/// The number of SIGXCPU: the limit on time of the processor.
#[cfg(unix)]
const CPU: i32 = rustix::process::Signal::XCPU.as_raw();
#[cfg(not(unix))]
const CPU: i32 = -1;

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

#[cfg(all(test, unix))]
mod tests;
