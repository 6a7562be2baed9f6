//! Factories make one instance for each call; `has_distinct_instances` detects one that shares an
//! instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palisade::execution::has_distinct_instances;
use palisade::registry::RegisterError;
use palisade::{Call, ErrorClass, Factory, Host, Tool, ToolError, ToolOutput};
use palisade_tests::Case;
use palisade_tests::case::block_on;
use palisade_tests::guest::CONCURRENCY_COUNT;
use palisade_tests::native::{Native, echo};

/// Returns a factory and the number of instances that it has made.
fn counting() -> (Factory, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let (counter, inner) = (made.clone(), echo("counted"));
    let factory: Factory = Arc::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        inner()
    });
    (factory, made)
}

fn host() -> Host {
    let case = Case::new(CONCURRENCY_COUNT, "count");
    case.builder(&case.world()).workspace(".").build().unwrap()
}

#[test]
fn factory_creates_one_instance_per_call() {
    let (factory, made) = counting();
    let host = host();
    host.registry().register(factory).unwrap();
    let at_registration = made.load(Ordering::SeqCst);
    assert_eq!(at_registration, 2, "registration compares two instances");
    block_on(async {
        for calls in 1..=10 {
            let result = host.dispatch(host.session(), Call::new("counted", "{}")).await;
            assert_eq!(result.output().as_deref(), Some("counted"));
            assert_eq!(made.load(Ordering::SeqCst), at_registration + calls);
        }
    });
}

#[test]
fn call_that_never_starts_creates_no_instance() {
    let (factory, made) = counting();
    let host = host();
    host.registry().register(factory).unwrap();
    let before = made.load(Ordering::SeqCst);
    let result = block_on(host.dispatch(host.session(), Call::new("counted", "not JSON")));
    assert!(result.is_failure());
    assert_eq!(made.load(Ordering::SeqCst), before);
}

#[test]
fn factory_returning_one_instance_twice_is_found() {
    let shared: Arc<dyn Tool> = Arc::from(echo("shared")());
    let sharing: Factory = Arc::new(move || Box::new(shared.clone()));
    assert!(!has_distinct_instances(&sharing));
}

#[test]
fn registration_refuses_a_factory_that_shares_an_instance() {
    let shared: Arc<dyn Tool> = Arc::from(echo("shared")());
    let sharing: Factory = Arc::new(move || Box::new(shared.clone()));
    let host = host();
    let refused = host.registry().register(sharing.clone()).map(drop).unwrap_err();
    assert_eq!(refused, RegisterError::SharedInstance { name: "shared".to_owned() });
    assert!(refused.to_string().contains("return a new instance each time"), "{refused}");
    assert!(!host.registry().has("shared"), "the registry is unchanged");
    let built = Host::builder().workspace(".").tool(sharing).build().map(drop).unwrap_err();
    assert!(built.to_string().contains("`shared` returned one instance twice"), "{built}");
}

#[test]
fn registration_survives_a_factory_that_panics() {
    let made = Arc::new(AtomicUsize::new(0));
    for good in [0, 1] {
        let (made, inner) = (made.clone(), echo("moody"));
        made.store(0, Ordering::SeqCst);
        let factory: Factory = Arc::new(move || {
            assert!(made.fetch_add(1, Ordering::SeqCst) < good, "there is no connection");
            inner()
        });
        let host = host();
        let refused = host.registry().register(factory.clone()).map(drop).unwrap_err();
        assert_eq!(
            refused,
            RegisterError::Panicked { message: "there is no connection".to_owned() },
            "after {good} tools"
        );
        assert!(!host.registry().has("moody"), "the registry is unchanged");
        host.registry().register(echo("moody")).unwrap();
        let result = block_on(host.dispatch(host.session(), Call::new("moody", "{}")));
        assert_eq!(result.output().as_deref(), Some("moody"), "and the host goes on");
        let built = Host::builder().workspace(".").tool(factory).build().map(drop).unwrap_err();
        assert!(built.to_string().contains("there is no connection"), "{built}");
    }
}

#[test]
fn call_survives_a_factory_that_panics_later() {
    let (made, inner) = (AtomicUsize::new(0), echo("moody"));
    let factory: Factory = Arc::new(move || {
        assert!(made.fetch_add(1, Ordering::SeqCst) < 2, "there is no connection");
        inner()
    });
    let host = host();
    host.registry().register(factory).unwrap();
    let result = block_on(host.dispatch(host.session(), Call::new("moody", "{}")));
    assert_eq!(result.error().map(ToolError::class), Some(ErrorClass::ExecutionError));
    assert!(!result.to_json().to_string().contains("connection"), "{result}");
}

#[test]
fn factory_creating_new_instances_passes() {
    assert!(has_distinct_instances(&echo("fresh")));
    assert!(has_distinct_instances(
        &Native::new("fresh", |_, _| Ok(ToolOutput::text(""))).factory()
    ));
}

#[test]
fn plugin_factories_create_new_instances() {
    let host = host();
    for tool in host.registry().tools() {
        let (one, other) = (tool.instantiate(), tool.instantiate());
        assert_ne!(one.identity(), other.identity(), "{}", tool.definition().name());
    }
}
