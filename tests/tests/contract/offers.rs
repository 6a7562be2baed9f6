//! Resources and prompts that a plugin offers: known once it is loaded, from the plugin or from the
//! cache.

use palisade::{CacheMode, Host, plugins::Shipped};
use palisade_tests::guest::{CONTRACT_OFFERS, LOADER_GOOD};
use palisade_tests::{Guest, World};

fn host(world: &World, guest: Guest, cache: &std::path::Path) -> Host {
    let builder = Host::builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .plugins(guest.directory());
    let host = builder.cache(CacheMode::Directory(cache.join("cache"))).build().unwrap();
    assert!(host.rejected().is_empty(), "{:?}", host.rejected());
    host
}

#[test]
fn offers_are_known_after_loading_and_from_the_cache() {
    let (world, cache) = (World::new(), tempfile::tempdir().unwrap());
    for _ in 0..2 {
        let host = host(&world, CONTRACT_OFFERS, cache.path());
        let plugin = host.plugins().remove(0);
        let uris: Vec<&str> = plugin.offer().items().iter().map(|item| item.uri.as_str()).collect();
        assert_eq!(uris[..2], ["test://text", "test://bytes"]);
        assert_eq!(plugin.offer().templates()[0].uri, "test://template/{id}/data");
        let prompt = &plugin.offer().prompts()[1];
        let arguments: Vec<_> =
            prompt.arguments.iter().map(|it| (it.name.as_str(), it.required)).collect();
        assert_eq!(
            (prompt.name.as_str(), arguments),
            ("filled", vec![("one", true), ("two", false)])
        );
        assert_eq!(host.registry().tool_names(), ["idle"], "none of the offers is a tool");
    }
}

#[test]
fn first_of_two_plugins_keeps_a_duplicate_offer() {
    let world = World::new();
    for name in ["first", "second"] {
        std::fs::copy(CONTRACT_OFFERS.file(), world.plugins().join(format!("{name}.wasm")))
            .unwrap();
    }
    let builder =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(world.plugins());
    let host = builder.cache(CacheMode::Off).build().unwrap();
    let loaded: Vec<String> =
        host.plugins().iter().map(|plugin| plugin.name().to_owned()).collect();
    assert_eq!(loaded, ["first"]);
    let reason = &host.rejected()[0].reason;
    let first = world.plugins().join("first.wasm");
    let expected =
        "it offers the document `test://text`, which the plugin `first` does already, in ";
    assert_eq!(*reason, format!("{expected}{}", first.display()));
}

#[test]
fn plugin_without_the_interfaces_offers_nothing() {
    let (world, cache) = (World::new(), tempfile::tempdir().unwrap());
    let host = host(&world, LOADER_GOOD, cache.path());
    let offer = host.plugins()[0].offer().clone();
    assert_eq!((offer.documents, offer.prompts), (None, None));
}
