//! The pipeline of every call, native or WebAssembly: look up, validate, resolve paths, decide,
//! confirm, queue, run, bound, report.

mod admission;
pub(crate) mod approve;
mod call;
mod call_recorder;
mod call_threads;
mod conversation;
mod dispatcher;
mod errors;
mod explain;
mod input;
mod late_rules;
mod message;
mod nested;
mod panics;
mod parent_call;
mod pipeline;
mod program_record;
mod question_order;
mod queue;
mod requester;
mod run;
mod settlement;
mod stages;
mod stops;
mod terminal;
#[cfg(test)]
mod tests;
mod transcript;
mod unused_input;

pub use admission::Admission;
pub(crate) use approve::question::{CONFIRMATION_TIMEOUT, MAX_CONFIRMATION_TIMEOUT};
pub use call_recorder::{CallEnd, CallRecorder, CallStart, NotRecorded};
pub use call_threads::CallMode;
pub(crate) use call_threads::CallThreads;
pub use conversation::Conversation;
pub(crate) use dispatcher::Dispatcher;
pub use explain::Explanation;
pub(crate) use late_rules::LateRules;
pub use program_record::ProgramRecord;
pub use requester::Requester;
pub(crate) use transcript::ReplyAnswers;
pub use transcript::{Execution, Transcript};
