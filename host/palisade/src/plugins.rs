//! Plugins: found in directories, loaded in parallel, registered in a fixed order. A bad file
//! affects no other plugin.

mod approval;
mod approvals;
mod candidate;
mod changes;
mod file_name;
mod loaded;
mod loading;
mod observer;
mod pinned_dirs;
mod plugin;
mod rejected;
pub(crate) mod reserved;
mod scan;
mod sources;
mod watch;

pub use approval::{NotApproved, PluginApproval};
pub(crate) use approvals::AllApproved;
pub use approvals::{Approvals, PluginBytes};
pub(crate) use changes::PluginChange;
pub use changes::Rescan;
pub use file_name::name_of_file;
pub use loaded::{BytesApproval, Compiling, LoadError, Loaded};
pub use loading::LoadProgress;
pub(crate) use loading::{Loading, Task, Unapproved};
pub use observer::{LoadObserver, LoadStep};
pub use plugin::Plugin;
pub use rejected::{Cause, Rejected};
pub use scan::DirectoryError;
pub use sources::{AdaptedFile, Shipped, Sources};
pub use watch::{Watch, WatchError};
