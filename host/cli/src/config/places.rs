//! Returns where each setting can be changed, for the advice in refusals: a file that may only
//! tighten cannot grant a permission.

use super::{Origin, Settings, Value};
use palisade::Places;
use std::collections::BTreeSet;
use std::path::Path;

impl Settings {
    /// Returns the places of the settings that refusals mention. `own` describes the user's own
    /// file, where settings without another origin are changed; `shown` formats a path.
    #[must_use]
    pub fn places(&self, own: String, shown: impl Fn(&Path) -> String) -> Places {
        let place = |origin: &Origin| match origin {
            Origin::Default => None,
            Origin::File(path) => Some(format!("in {}", shown(path))),
            Origin::Environment(name) | Origin::Flag(name) => Some(format!("with {name}")),
        };
        let set = self.set().into_iter().filter_map(|(key, origin)| Some((key, place(origin)?)));
        let paths = self.places_of_path_rules(place).map(|places| ("paths".to_owned(), places));
        set.chain(paths).fold(Places::new(own), |places, (key, place)| places.with(key, place))
    }

    /// Returns the files that have path rules, for all plugins or for one.
    fn places_of_path_rules(&self, place: impl Fn(&Origin) -> Option<String>) -> Option<String> {
        let mut of_plugins = self.plugins.values().flat_map(|plugin| &plugin.paths).peekable();
        let table = match of_plugins.peek() {
            Some(_) => " (under `[plugins.NAME]` for one plugin)",
            None => "",
        };
        let lists = self.paths.lists.iter().chain(of_plugins);
        let files: BTreeSet<String> = lists.filter_map(|lists| place(&lists.origin)).collect();
        let files: Vec<String> = files.into_iter().collect();
        (!files.is_empty()).then(|| format!("{}{table}", files.join(" or ")))
    }

    fn set(&self) -> Vec<(String, &Origin)> {
        fn origin<'a, T>(key: &str, value: &'a Value<T>) -> (String, &'a Origin) {
            (key.to_owned(), &value.origin)
        }
        let classes =
            self.classes.iter().map(|(class, mode)| (format!("confirm.{class}"), &mode.origin));
        let single = [
            origin("limits.memory", &self.memory),
            origin("limits.total_memory", &self.total_memory),
            origin("tools.only", &self.only),
            origin("shell.unconfined", &self.shell_unconfined),
            origin("shell.processes", &self.shell_processes),
            origin("shell.memory", &self.shell_memory),
            origin("workspace.hard_links", &self.hard_links),
            origin("paths.commands", &self.paths.commands),
        ];
        let tools = self.of_tools().map(|rule| (rule.key(), rule.origin));
        classes.chain(single).chain(tools).collect()
    }
}
