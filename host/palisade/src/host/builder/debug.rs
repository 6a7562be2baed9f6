//! Debug output of the builder.

use super::HostBuilder;
use std::fmt;

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder")
            .field("workspace", &self.workspace)
            .field("sources", &self.sources)
            .field("limits", &self.limits)
            .field("cache", &self.cache)
            .field("compiler", &self.compiler)
            .field("compile_strategy", &self.compile_strategy)
            .field("call_mode", &self.call_mode)
            .field("hard_links", &self.hard_links)
            .finish_non_exhaustive()
    }
}
