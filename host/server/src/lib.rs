//! The HTTP API, the journal and the console of a host.
//!
//! A program makes a [`Wiring`], builds its host with it, and mounts the [`Server`]'s router. It
//! authenticates requests itself, and inserts a [`Role`] into each: operators see everything and
//! answer confirmation requests, clients open sessions and make calls.
//!
//! Each module uses only modules before it in this order: `role`, `journal`, `recorder`,
//! `confirmations`, `metrics`, `settings`, `wiring`, `live`, `console`, `api`, `server`.

mod api;
mod confirmations;
mod console;
pub mod journal;
mod live;
mod metrics;
pub mod recorder;
mod role;
mod server;
mod settings;
mod wiring;

pub use api::{AttachedSession, is_public, is_stream};
pub use confirmations::{Attached, Attending, FileChange, GRACE, OperatorConfirmer, file_changes};
pub use metrics::Metrics;
pub use recorder::{InputRecording, RecorderSettings};
pub use role::Role;
pub use server::Server;
pub use settings::Settings;
pub use wiring::Wiring;
