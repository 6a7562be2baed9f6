//! `palisade grant`: what a plugin may do beyond its class.

use super::args::{Common, Grant as Args, GrantAction};
use super::exit::{Exit, Failure};
use super::{grants, output, setup};
use palisade::Host;
use palisade::internal::open_regular;
use palisade::plugins::name_of_file;
use palisade::sandbox::limits;
use palisade::tool::Digest;
use palisade::tool::text::visible;
use palisade::workspace::LastLink;
use palisade_net::{Grant, GrantFile, PluginEntry, Secret};
use serde_json::json;
use std::io::Read as _;
use std::path::Path;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let plugin = args.plugin.as_deref();
    match &args.action {
        GrantAction::Net { rules } => {
            add(common, plugin, rules.iter().map(|rule| usage(Grant::net(rule))).collect())
        }
        GrantAction::Env { names } => {
            add(common, plugin, names.iter().map(|name| usage(Grant::env(name))).collect())
        }
        GrantAction::Secret { name, host, header } => {
            let secret = usage(Secret::parse(name, host, header)).map(Grant::Secret);
            add(common, plugin, secret.map(|secret| vec![secret]))
        }
        GrantAction::List { json } => list(common, plugin, *json),
        GrantAction::Revoke { grant } => revoke(common, plugin, grant.as_deref()),
    }
}

/// Returns the error of a value on the command line.
fn usage<T, E: std::fmt::Display>(value: Result<T, E>) -> Result<T, Failure> {
    value.map_err(|error| Failure::usage(error.to_string()))
}

fn add(
    common: &Common,
    plugin: Option<&str>,
    given: Result<Vec<Grant>, Failure>,
) -> Result<Exit, Failure> {
    let given = given?;
    let Plugin { name, digest } = find(common, named(plugin)?)?;
    grants::change(common, |file| {
        for grant in &given {
            file.add(&name, digest, grant.clone());
        }
        Ok(())
    })?;
    for grant in given {
        output::note(&format!("granted to {} ({digest}): {grant}", visible(&name)));
    }
    Ok(Exit::Ok)
}

fn list(common: &Common, plugin: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    let file = grants::read(common)?;
    let entries =
        file.entries().iter().filter(|entry| plugin.is_none_or(|plugin| is(entry, plugin)));
    let entries: Vec<&PluginEntry> = entries.collect();
    if as_json {
        let listed = entries.iter().map(|entry| {
            let grants: Vec<String> = entry.grants.iter().map(ToString::to_string).collect();
            json!({"plugin": entry.plugin, "digest": entry.digest.to_string(), "grants": grants})
        });
        return output::json(&json!({"grants": listed.collect::<Vec<_>>()})).map(|_| Exit::Ok);
    }
    if entries.is_empty() {
        output::note("no plugin has a grant");
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    for entry in entries {
        text.push_str(&format!("{} ({})\n", visible(&entry.plugin), entry.digest));
        for grant in &entry.grants {
            text.push_str(&format!("  {grant}\n"));
        }
    }
    output::text(&text)?;
    Ok(Exit::Ok)
}

fn revoke(common: &Common, plugin: Option<&str>, grant: Option<&str>) -> Result<Exit, Failure> {
    let plugin = named(plugin)?;
    let count = grants::change(common, |file: &mut GrantFile| {
        let is_meant = |of: &Grant| grant.is_none_or(|grant| of.to_string() == grant.trim());
        Ok(file.revoke(|entry, of| is(entry, plugin) && is_meant(of)))
    })?;
    if count == 0 {
        let plugin = visible(plugin);
        return Err(Failure::new(
            Exit::NotFound,
            format!("`{plugin}` has no such grant; `palisade grant list` shows the grants"),
        ));
    }
    output::note(&format!(
        "revoked {count} of {}; a run that has loaded the plugin keeps them until it ends",
        visible(plugin)
    ));
    Ok(Exit::Ok)
}

fn named(plugin: Option<&str>) -> Result<&str, Failure> {
    plugin.ok_or_else(|| {
        Failure::usage("name the plugin first, as in `palisade grant PLUGIN net …`; `palisade list` shows the plugins")
    })
}

/// Returns true if an entry is that of a plugin, by its name, digest or file.
fn is(entry: &PluginEntry, plugin: &str) -> bool {
    entry.plugin == plugin
        || entry.digest.to_string() == plugin
        || (is_path(plugin) && digest_of(Path::new(plugin)).is_ok_and(|it| it == entry.digest))
}

/// The plugin that a grant is for.
struct Plugin {
    name: String,
    digest: Digest,
}

/// Finds a plugin: by its file, or by its name among the loaded and the rejected ones. A plugin
/// that uses the network is rejected until it has a grant.
fn find(common: &Common, plugin: &str) -> Result<Plugin, Failure> {
    if is_path(plugin) {
        let file = Path::new(plugin);
        return Ok(Plugin { name: name_of_file(file), digest: digest_of(file)? });
    }
    let settings = setup::settings(common)?;
    let host: Host = setup::builder(common, &settings)?.build()?;
    if let Some(found) = host.plugins().iter().find(|found| found.name() == plugin) {
        return Ok(Plugin { name: found.name().to_owned(), digest: found.digest() });
    }
    let rejected = host.rejected();
    let is_meant = |file: &str| name_of_file(Path::new(file)) == plugin;
    match rejected.iter().find(|rejected| is_meant(&rejected.file)) {
        Some(rejected) => {
            let digest = digest_of(Path::new(&rejected.file))?;
            Ok(Plugin { name: plugin.to_owned(), digest })
        }
        None => Err(Failure::new(
            Exit::NotFound,
            format!(
                "there is no plugin `{}`; give a name that `palisade list` shows, or the path of a `.wasm` file",
                visible(plugin)
            ),
        )),
    }
}

fn is_path(plugin: &str) -> bool {
    plugin.contains('/') || Path::new(plugin).extension().is_some_and(|end| end == "wasm")
}

fn digest_of(file: &Path) -> Result<Digest, Failure> {
    let failed = |reason: &dyn std::fmt::Display| {
        let file = visible(&file.display().to_string());
        Failure::new(Exit::NotFound, format!("the plugin `{file}` cannot be read: {reason}"))
    };
    let opened = open_regular(file, LastLink::Follow).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    let read = opened.take(limits::COMPONENT + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(&error))?;
    match bytes.len() as u64 > limits::COMPONENT {
        true => Err(failed(&"it is larger than 64 MiB")),
        false => Ok(Digest::of(&bytes)),
    }
}
