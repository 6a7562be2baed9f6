//! Configuration: what was written where, and what holds in the end. Flag over environment over project file over user file over default.

mod file;
mod resolve;

pub(crate) use file::call_time;
pub use file::{ConfigError, FileConfig, Trusted};
pub use resolve::{Origin, Settings, Value};
