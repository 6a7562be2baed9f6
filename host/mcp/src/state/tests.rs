//! Tests what clients are told while plugins are loading.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::Server;
use crate::lists::resources_and_prompts::features;
use crate::protocol::server_info::server_info;
use palisade::CacheMode;
use palisade::plugins::Shipped;

#[tokio::test]
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
    assert_eq!((server.loading(), is_announced()), (Loading::Running, Some(true)));
    server.host.wait_until_loaded().await;
    assert_eq!((server.loading(), is_announced()), (Loading::Complete, Some(true)));
    let another = Server::new(server.host.clone(), Settings::default()).unwrap().0;
    assert_eq!((another.loading(), another.changes()), (Loading::Complete, Changes::Never));
}
