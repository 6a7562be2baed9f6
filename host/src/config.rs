//! Configuration: what was written where, and what holds in the end. Flag over environment over project file over user file over default.

mod file;
mod places;
mod resolve;
mod rule;
mod size;
mod time;

pub use file::{ConfigError, FileConfig, Trusted};
pub use resolve::{Origin, Settings, Value};
pub(crate) use time::call_time;
