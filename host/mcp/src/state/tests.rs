//! Tests how long clients wait for plugins, and what they are told then.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::Server;
use crate::lists::resources_and_prompts::features;
use crate::protocol::server_info::server_info;
use palisade::CacheMode;
use palisade::plugins::Shipped;
use palisade::sandbox::{ChildCompiler, Compiler};

/// The failed compilation leaves a plugin that was tried but not finished.
#[tokio::test(start_paused = true)]
async fn client_does_not_wait_for_a_previously_failed_plugin() {
    let place = tempfile::tempdir().unwrap();
    let plugin = palisade_plugins::hostile();
    let file = place.path().join("plugin.wasm");
    std::fs::write(&file, plugin.bytes()).unwrap();
    let workspace = place.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let builder = || {
        let builder =
            Host::builder().workspace(&workspace).shipped(Shipped::LeftOut).plugin_file(&file);
        builder.cache(CacheMode::Directory(place.path().join("cache")))
    };
    let failing = Compiler::Child(ChildCompiler::palisade("/bin/false"));
    let failed = std::thread::scope(|scope| {
        scope
            .spawn(|| builder().compiler(failing).build().unwrap().rejected().len())
            .join()
            .unwrap()
    });
    let host = builder().build_in_background().unwrap();
    let server = Server::new(Arc::new(host), Settings::default()).unwrap().0;
    let begun = tokio::time::Instant::now();
    let loading = server.wait_for_plugins(Duration::from_secs(5)).await;
    assert_eq!((failed, loading, begun.elapsed()), (1, Loading::Running, Duration::ZERO));
    server.host.wait_until_loaded().await;
    assert_eq!(server.wait_for_plugins(Duration::ZERO).await, Loading::Complete);
}

/// The paused clock advances while the compiler works, so that each timeout passes at once.
#[tokio::test(start_paused = true)]
async fn client_learns_that_plugins_still_compile() {
    let place = tempfile::tempdir().unwrap();
    let plugin = palisade_plugins::hostile();
    let file = place.path().join("plugin.wasm");
    std::fs::write(&file, plugin.bytes()).unwrap();
    let builder =
        Host::builder().workspace(place.path()).shipped(Shipped::LeftOut).plugin_file(file);
    let host = builder.cache(CacheMode::Off).build_in_background().unwrap();
    let server = Server::new(Arc::new(host), Settings::default()).unwrap().0;
    let is_announced = || server_info(features(&server)).capabilities.tools.unwrap().list_changed;
    assert_eq!(
        (server.wait_for_plugins(Duration::from_secs(5)).await, is_announced()),
        (Loading::Running, Some(true))
    );
    server.host.wait_until_loaded().await;
    assert_eq!(
        (server.wait_for_plugins(Duration::ZERO).await, is_announced()),
        (Loading::Complete, Some(true))
    );
    let another = Server::new(server.host.clone(), Settings::default()).unwrap().0;
    assert_eq!(
        (another.wait_for_plugins(Duration::ZERO).await, another.changes()),
        (Loading::Complete, Changes::Never)
    );
}
