//! The labels of metrics.

use prometheus_client::encoding::EncodeLabelSet;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The number of tools with metrics of their own.
const TOOLS: usize = 256;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct CallLabels {
    pub(super) tool: Arc<str>,
    pub(super) class: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct TimeLabels {
    pub(super) tool: Arc<str>,
    pub(super) class: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ReasonLabels {
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct LimitLabels {
    pub(super) limit: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct PluginLabels {
    pub(super) from: &'static str,
}

/// The tools that have a label: the first [`TOOLS`] that were called. All others share one.
#[derive(Debug)]
pub(super) struct Tools {
    known: RwLock<HashSet<Arc<str>>>,
    other: Arc<str>,
}

impl Default for Tools {
    fn default() -> Self {
        Self { known: RwLock::default(), other: "other".into() }
    }
}

impl Tools {
    pub(super) fn other(&self) -> Arc<str> {
        self.other.clone()
    }

    pub(super) fn label(&self, tool: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(tool) {
            return known.clone();
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TOOLS && !known.contains(tool) {
            return self.other();
        }
        known.insert(tool.clone());
        tool.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_tools_are_bounded() {
        let tools = Tools::default();
        let labels: HashSet<_> =
            (0..1000).map(|n| tools.label(&format!("tool_{n}").into())).collect();
        assert_eq!(labels.len(), TOOLS + 1);
        assert_eq!((&*tools.label(&"tool_7".into()), &*tools.other()), ("tool_7", "other"));
    }
}
