//! The configuration: its files, and the effective settings with their origins. A flag takes
//! precedence over the environment, the project file, the user file and the default, in this order.

mod adapted;
mod file;
mod journal;
mod keys;
mod network;
mod paths;
mod places;
mod plugins;
mod resolve;
mod rule;
mod servers;
mod size;
mod time;

pub use adapted::Adapted;
pub use file::{ConfigError, FileConfig, FileOf, Trusted};
pub use journal::{JournalConfig, JournalSettings, RecordedInputs};
pub use network::{NetworkConfig, NetworkSettings};
pub use paths::{PathLists, PathSettings, PathsConfig};
pub use plugins::{Effect, PluginConfig, PluginLimit, PluginOptions};
pub use resolve::{Origin, Settings, Value};
pub use rule::ToolRule;
pub use servers::{McpCommand, McpPlace, McpServer, McpUrl};
pub(crate) use time::call_time;
