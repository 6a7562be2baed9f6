//! `componentize WIT MODULE OUTPUT`: makes a component of a module for WASI preview 1.

use anyhow::{Context as _, ensure};
use std::fs;
use wasi_preview1_component_adapter_provider as adapter;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

fn main() -> anyhow::Result<()> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    ensure!(paths.len() == 3, "usage: componentize WIT MODULE OUTPUT");
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(&paths[0])?;
    let world = resolve.select_world(&[package], Some("plugin"))?;
    let mut module = fs::read(&paths[1]).with_context(|| format!("reading {}", paths[1]))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    let mut encoder = ComponentEncoder::default().validate(true).module(&module)?;
    encoder = encoder.adapter(
        adapter::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
        adapter::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
    )?;
    fs::write(&paths[2], encoder.encode()?).with_context(|| format!("writing {}", paths[2]))
}
