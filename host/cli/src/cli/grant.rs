//! `palisade grant`: what a plugin may do beyond its class.

mod effect;

use super::args::{Common, Grant as Args, GrantAction};
use super::exit::{Exit, Failure};
use super::{grants, output, setup, trust};
use effect::{Interfaces, Tools, missing_rule, obstacle};
use palisade::Host;
use palisade::internal::open_regular;
use palisade::plugins::name_of_file;
use palisade::sandbox::limits;
use palisade::tool::Digest;
use palisade::tool::text::{elided, visible};
use palisade::workspace::LastLink;
use palisade_net::{Grant, GrantFile, Holder, PluginEntry, Secret};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let plugin = args.plugin.as_deref();
    let to = if args.signer { To::Signer } else { To::Version };
    match &args.action {
        GrantAction::Net { rules } => {
            add(common, plugin, to, rules.iter().map(|rule| usage(Grant::net(rule))).collect())
        }
        GrantAction::Env { names } => {
            add(common, plugin, to, names.iter().map(|name| usage(Grant::env(name))).collect())
        }
        GrantAction::Secret { name, host, header } => {
            let secret = usage(Secret::parse(name, host, header)).map(Grant::Secret);
            add(common, plugin, to, secret.map(|secret| vec![secret]))
        }
        GrantAction::Tools { patterns } => {
            let given = patterns.iter().map(|pattern| usage(Grant::tools(pattern.trim())));
            add(common, plugin, to, given.collect())
        }
        GrantAction::List { of, json } => list(common, of.as_deref().or(plugin), *json),
        GrantAction::Revoke { grant } => revoke(common, plugin, grant.as_deref()),
    }
}

/// Returns the error of a value on the command line.
fn usage<T, E: std::fmt::Display>(value: Result<T, E>) -> Result<T, Failure> {
    value.map_err(|error| Failure::usage(error.to_string()))
}

/// The versions of a plugin that a grant is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    /// This version alone. A shipped plugin keeps its grants with each version of the program.
    Version,
    /// Each approved version with the same signer.
    Signer,
}

fn add(
    common: &Common,
    plugin: Option<&str>,
    to: To,
    given: Result<Vec<Grant>, Failure>,
) -> Result<Exit, Failure> {
    let given = given?;
    let Plugin { name, mut holder, interfaces } = find(common, named(plugin)?)?;
    if to == To::Signer {
        holder = signer(common, &name, &holder)?;
    }
    // Before the file changes: a lookup that fails must not look as if the grant had.
    let tools = Tools::of(common, &given)?;
    let unreached = grants::change(common, |file| {
        for grant in &given {
            if let Some(other) = file.contradicted_by(&name, &holder, grant) {
                let (name, reason) = (visible(&name), contradiction(grant, other));
                return Err(Failure::usage(format!(
                    "{reason}; `palisade grant {name} revoke \"{other}\"` takes the other grant back"
                )));
            }
            file.add(&name, &holder, grant.clone());
        }
        Ok(file.unreached(&name, &holder))
    })?;
    if let Some(warning) = warning(&given) {
        output::note(warning);
    }
    let is_revoked = match &holder {
        Holder::Digest(digest) => trust::is_revoked(common, &name, *digest),
        Holder::Signer(_) | Holder::Shipped => false,
    };
    for grant in given {
        output::note(&format!("granted to {} ({holder}): {grant}", visible(&name)));
        let missing = is_revoked
            .then(|| format!("`{}` is revoked", visible(&name)))
            .or_else(|| {
                let missing = interfaces.missing_for(&grant)?;
                Some(format!("`{}` does not import `{missing}`", visible(&name)))
            })
            .or_else(|| obstacle(&grant))
            .or_else(|| missing_rule(&grant, &unreached))
            .or_else(|| tools.missing_for(&grant));
        if let Some(missing) = missing {
            output::note(&format!("that changes nothing as yet: {missing}"));
        }
    }
    Ok(Exit::Ok)
}

/// Returns the reason why a plugin cannot have both of two grants.
fn contradiction(one: &Grant, other: &Grant) -> &'static str {
    match (one, other) {
        (Grant::Secret(_), Grant::Secret(_)) => "one header of a host carries one secret",
        _ => "a plugin reads the value of its variables, and a secret is hidden from it",
    }
}

/// Returns the consequence of a grant that people overlook.
fn warning(given: &[Grant]) -> Option<&'static str> {
    given.iter().any(|grant| matches!(grant, Grant::Net(_))).then_some(
        "tools of class read send GET and HEAD without a question, and can carry out what they read; a tool of class none sends nothing",
    )
}

/// Returns the holder for all versions with the signer of this one.
fn signer(common: &Common, name: &str, holder: &Holder) -> Result<Holder, Failure> {
    let locked = trust::of_all(common)?;
    let signer = match holder {
        Holder::Digest(digest) => locked.signer(name, *digest),
        Holder::Signer(_) | Holder::Shipped => None,
    };
    signer.map(|signer| Holder::Signer(signer.to_string())).ok_or_else(|| {
        Failure::usage(format!(
            "no approval of `{}` has a signer; approve it with a configured key first (`palisade approve`), or grant without --signer",
            visible(name)
        ))
    })
}

fn list(common: &Common, plugin: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    let file = grants::read(common)?;
    let named = plugin.map(|plugin| Named::new(common, plugin));
    let is_meant = |entry: &&PluginEntry| named.as_ref().is_none_or(|named| named.has(entry));
    let entries: Vec<&PluginEntry> = file.entries().iter().filter(is_meant).collect();
    if as_json {
        let listed = entries.iter().map(|entry| {
            let grants: Vec<String> = entry.grants.iter().map(ToString::to_string).collect();
            let mut shown = json!({"plugin": entry.plugin, "grants": grants});
            match &entry.holder {
                Holder::Digest(digest) => shown["digest"] = json!(digest.to_string()),
                Holder::Signer(key) => shown["signer"] = json!(key),
                Holder::Shipped => shown["shipped"] = json!(true),
            }
            shown
        });
        return output::json(&json!({"grants": listed.collect::<Vec<_>>()})).map(|_| Exit::Ok);
    }
    if entries.is_empty() {
        let nothing = match plugin {
            Some(plugin) => format!("`{}` has no grant", visible(plugin)),
            None => "no plugin has a grant".to_owned(),
        };
        output::note(&nothing);
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    let approved = trust::approved(common);
    for entry in entries {
        let unused = match has_plugin(common, &approved, entry)? {
            true => "",
            false => ": no approved plugin has them",
        };
        text.push_str(&format!("{} ({}){unused}\n", visible(&entry.plugin), entry.holder));
        for grant in &entry.grants {
            text.push_str(&format!("  {grant}\n"));
        }
    }
    output::text(&text)?;
    Ok(Exit::Ok)
}

/// Returns true if an approved or a shipped plugin has the grants of an entry.
fn has_plugin(common: &Common, approved: &[Digest], entry: &PluginEntry) -> Result<bool, Failure> {
    let digests = grants::digests(common, entry)?;
    Ok(match entry.holder {
        Holder::Shipped => !digests.is_empty(),
        Holder::Digest(_) | Holder::Signer(_) => digests.iter().any(|it| approved.contains(it)),
    })
}

fn revoke(common: &Common, plugin: Option<&str>, grant: Option<&str>) -> Result<Exit, Failure> {
    let plugin = named(plugin)?;
    let named = Named::new(common, plugin);
    let count = grants::change(common, |file: &mut GrantFile| {
        let is_meant = |of: &Grant| grant.is_none_or(|grant| of.to_string() == grant.trim());
        Ok(file.revoke(|entry, of| named.has(entry) && is_meant(of)))
    })?;
    if count == 0 {
        let plugin = visible(plugin);
        return Err(Failure::new(
            Exit::NotFound,
            format!("`{plugin}` has no such grant; `palisade grant list` shows the grants"),
        ));
    }
    output::note(&format!(
        "revoked {count} of {}; a running `palisade serve` notices that within two seconds",
        visible(plugin)
    ));
    Ok(Exit::Ok)
}

fn named(plugin: Option<&str>) -> Result<&str, Failure> {
    plugin.ok_or_else(|| {
        Failure::usage("name the plugin first, as in `palisade grant PLUGIN net …`; `palisade list` shows the plugins")
    })
}

/// A plugin as the command line names it: by its name, its digest or its file.
struct Named<'a> {
    common: &'a Common,
    text: &'a str,
    /// The digest of a third party's plugin. The same bytes may have had another name when a grant
    /// was given.
    digest: Option<Digest>,
}

impl<'a> Named<'a> {
    /// Looks a plugin up. A plugin that is gone may still have grants under its name.
    fn new(common: &'a Common, text: &'a str) -> Self {
        let digest = match find(common, text).map(|plugin| plugin.holder) {
            Ok(Holder::Digest(digest)) => Some(digest),
            Ok(Holder::Signer(_) | Holder::Shipped) | Err(_) => None,
        };
        Self { common, text, digest }
    }

    /// Returns true if an entry is that of the plugin.
    fn has(&self, entry: &PluginEntry) -> bool {
        // Without a lock that can be read, no plugin has a grant by its signer.
        let has_grants = |digest: &Digest| {
            grants::digests(self.common, entry).is_ok_and(|digests| digests.contains(digest))
        };
        entry.plugin == self.text
            || entry.holder.to_string() == self.text
            || self.digest.as_ref().is_some_and(has_grants)
    }
}

/// The plugin that a grant is for.
struct Plugin {
    name: String,
    holder: Holder,
    interfaces: Interfaces,
}

/// Finds a plugin: by its file, among the shipped ones, or by its name among the loaded and the
/// rejected ones. A plugin that uses the network is rejected until it has a grant.
fn find(common: &Common, plugin: &str) -> Result<Plugin, Failure> {
    let of_file = |name: &str, file: &Path| {
        let holder = Holder::Digest(digest_of(file)?);
        Ok(Plugin { name: name.to_owned(), holder, interfaces: Interfaces::Unknown })
    };
    if is_path(plugin) {
        let file = Path::new(plugin);
        return of_file(&name_of_file(file), file);
    }
    if let Some(shipped) = palisade_plugins::all().iter().find(|it| it.name == plugin) {
        let needs_grant = shipped.requires.is_some();
        let interfaces = if needs_grant { Interfaces::Unknown } else { Interfaces::Plain };
        return Ok(Plugin { name: plugin.to_owned(), holder: Holder::Shipped, interfaces });
    }
    let settings = setup::settings(common)?;
    let host: Host = setup::builder(common, &settings)?.build()?;
    let (mut loaded, mut rejected) = (host.plugins(), host.rejected());
    loaded.retain(|found| found.name() == plugin);
    rejected.retain(|found| name_of_file(Path::new(&found.file)) == plugin);
    let files = loaded.iter().map(palisade::plugins::Plugin::file);
    let files: BTreeSet<&str> = files.chain(rejected.iter().map(|it| it.file.as_str())).collect();
    if files.len() > 1 {
        let files: Vec<String> = files.into_iter().map(|file| elided(file, 256)).collect();
        return Err(Failure::usage(format!(
            "several files are a plugin `{}`: {}; give the path of one",
            elided(plugin, 128),
            files.join(", ")
        )));
    }
    if let Some(found) = loaded.first() {
        let (holder, interfaces) = (Holder::Digest(found.digest()), Interfaces::of(found));
        return Ok(Plugin { name: plugin.to_owned(), holder, interfaces });
    }
    match rejected.first() {
        Some(rejected) => of_file(plugin, Path::new(&rejected.file)),
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
