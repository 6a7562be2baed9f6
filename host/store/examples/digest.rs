//! Fetches a plugin and prints what is known of it before anything of it runs:
//! `cargo run -p palisade-store --example digest oci://ghcr.io/example/git:1.2.0`.
#![allow(clippy::print_stdout, reason = "it prints what it finds")]

use palisade_net::Network;
use palisade_store::{CredentialsOf, Source, fetch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args().nth(1).ok_or("give a path, an https:// URL or oci://")?;
    let source = Source::parse(&text)?;
    let credentials = CredentialsOf::environment(&|name| std::env::var(name).ok());
    let fetched = fetch(&Network::default(), &source, &credentials)?;
    println!("{source}: {} bytes, {}", fetched.bytes.len(), fetched.digest);
    if let Some(manifest) = fetched.resolved {
        println!("manifest {manifest}");
    }
    println!(
        "signature: {}",
        if fetched.signature.is_some() { "there, not verified" } else { "none" }
    );
    Ok(())
}
