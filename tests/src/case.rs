//! One case, driven through the library and through the program, so that the two cannot differ.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use palisade::{CacheMode, Call, Host, HostBuilder, Limits, Places, Policy, Shipped, SideEffects};
use serde_json::Value;

use crate::events::Recorder;
use crate::guest::{Guest, HOSTILE_ECHO, cache};
use crate::program::Program;
use crate::seen::{Run, Seen};
use crate::world::World;

/// Where the plugins of a case come from.
#[derive(Debug, Clone)]
pub enum Plugins {
    /// A guest that the build script has built.
    Guest(Guest),
    /// A component made by the test, under the name that its file gets.
    Component(String, Vec<u8>),
    /// Those that come with the host.
    Shipped,
}

impl From<Guest> for Plugins {
    fn from(guest: Guest) -> Self {
        Self::Guest(guest)
    }
}

type Arrange = Box<dyn Fn(&World)>;
type Input = Box<dyn Fn(&World) -> String>;

/// A call to be made, with everything around it.
pub struct Case {
    plugins: Plugins,
    tool: String,
    input: Input,
    arrange: Vec<Arrange>,
    allow: Vec<SideEffects>,
    timeout: Option<Duration>,
    memory: Option<u64>,
    varying: Vec<&'static str>,
}

impl Case {
    /// A call of a tool with an empty input in an empty workspace.
    #[must_use]
    pub fn new(plugins: impl Into<Plugins>, tool: &str) -> Self {
        Self {
            plugins: plugins.into(),
            tool: tool.to_owned(),
            input: Box::new(|_| "{}".to_owned()),
            arrange: Vec::new(),
            allow: Vec::new(),
            timeout: None,
            memory: None,
            varying: Vec::new(),
        }
    }

    /// With this input.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "a literal is what it is given")]
    pub fn input(self, input: Value) -> Self {
        self.text(&input.to_string())
    }

    /// With this text as input, whatever it is.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        let text = text.to_owned();
        self.input = Box::new(move |_| text.clone());
        self
    }

    /// With an input that depends on where the workspace is.
    #[must_use]
    pub fn input_at(mut self, input: impl Fn(&World) -> Value + 'static) -> Self {
        self.input = Box::new(move |world| input(world).to_string());
        self
    }

    /// In a workspace that is prepared like this. Can be given several times.
    #[must_use]
    pub fn arrange(mut self, arrange: impl Fn(&World) + 'static) -> Self {
        self.arrange.push(Box::new(arrange));
        self
    }

    /// With a prompt lifted, as `--allow` does.
    #[must_use]
    pub fn allow(mut self, class: SideEffects) -> Self {
        self.allow.push(class);
        self
    }

    /// With so much time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn place_of_memory(&self) -> &'static str {
        if self.memory.is_some() { "with PALISADE_MEMORY" } else { "in ~/.config/palisade/palisade.toml" }
    }

    /// With so much memory, in MiB.
    #[must_use]
    pub fn memory_mib(mut self, mib: u64) -> Self {
        self.memory = Some(mib << 20);
        self
    }

    /// With a part of the result, a JSON pointer, that differs from call to call by its nature.
    #[must_use]
    pub fn varying(mut self, pointer: &'static str) -> Self {
        self.varying.push(pointer);
        self
    }

    /// Makes the call in both ways, checks what holds for every call, and gives back what was seen.
    ///
    /// # Panics
    ///
    /// Where the two ways differ, or one of them breaks a promise that is the same for all calls.
    #[must_use]
    #[track_caller]
    pub fn check(self) -> Seen {
        let (library, program) = (self.in_library(), self.in_program());
        Seen::compare(library, program, &self.varying)
    }

    /// Makes the call through the library only, for what the command line cannot say; `change` adds that to the call.
    ///
    /// # Panics
    ///
    /// Where the call breaks a promise that is the same for all calls.
    #[must_use]
    #[track_caller]
    pub fn check_library(self, change: impl FnOnce(Call) -> Call) -> Seen {
        let world = self.world();
        let run = self.call(world, &Recorder::default(), change);
        Seen::alone(run)
    }

    /// As [`check_library`](Self::check_library), with a recorder that can act on what it hears.
    ///
    /// # Panics
    ///
    /// Where the call breaks a promise that is the same for all calls.
    #[must_use]
    #[track_caller]
    pub fn check_heard(self, recorder: &Recorder, change: impl FnOnce(Call) -> Call) -> Seen {
        let world = self.world();
        let run = self.call(world, recorder, change);
        Seen::alone(run)
    }

    /// A prepared world.
    #[must_use]
    pub fn world(&self) -> World {
        let world = World::new();
        self.arrange.iter().for_each(|arrange| arrange(&world));
        if let Plugins::Component(name, bytes) = &self.plugins {
            fs::write(world.plugins().join(format!("{name}.wasm")), bytes).expect("a plugin can be written");
        }
        world
    }

    /// The program, about to make this call.
    #[must_use]
    pub fn program<'w>(&self, world: &'w World) -> Program<'w> {
        let program = Program::new(world).args(["call", &self.tool, "-", "--json"]).stdin((self.input)(world));
        self.with_plugins(program.args(self.running()), world)
    }

    /// The program, about to serve the tools of this case and a benign one.
    #[must_use]
    pub(crate) fn server<'w>(&self, world: &'w World) -> Program<'w> {
        self.with_plugins(Program::new(world), world).args(["--plugins"]).args([HOSTILE_ECHO.directory()])
    }

    /// What the verbs that run tools are told.
    pub(crate) fn running(&self) -> Vec<String> {
        let classes = self.allow.iter().flat_map(|class| ["--allow".to_owned(), class.as_str().to_owned()]);
        let timeout = self.timeout.map(|timeout| ["--timeout".to_owned(), format!("{}ms", timeout.as_millis())]);
        classes.chain(timeout.into_iter().flatten()).collect()
    }

    fn with_plugins<'w>(&self, mut program: Program<'w>, world: &World) -> Program<'w> {
        if let Some(directory) = self.directory(world) {
            program = program.args(["--no-builtin", "--plugins"]).args([directory]);
        }
        match self.memory {
            Some(memory) => program.env("PALISADE_MEMORY", format!("{memory}B")),
            None => program,
        }
    }

    /// The host that makes this call through the library, not yet built.
    #[must_use]
    pub fn builder(&self, world: &World) -> HostBuilder {
        let policy = self.allow.iter().fold(Policy::default(), |policy, class| policy.allowing(*class));
        let limits = Limits { memory: self.memory.unwrap_or(Limits::default().memory), ..Limits::default() };
        // As the program says it.
        let places = Places::new("in ~/.config/palisade/palisade.toml").with("limits.memory", self.place_of_memory());
        let builder =
            Host::builder().workspace(world.root()).policy(policy).limits(limits).cache(CacheMode::Directory(cache()));
        let builder = builder.places(places);
        match self.directory(world) {
            Some(directory) => builder.shipped(Shipped::LeftOut).plugins(directory),
            None => builder,
        }
    }

    /// The call itself.
    #[must_use]
    pub fn to_call(&self, world: &World) -> Call {
        let call = Call::new(&self.tool, (self.input)(world));
        match self.timeout {
            Some(timeout) => call.with_timeout(timeout),
            None => call,
        }
    }

    /// The time that it has: its own, or what its class gets.
    pub(crate) fn time(&self) -> Duration {
        self.timeout.unwrap_or(palisade::sandbox::limits::TIMEOUT)
    }

    /// The tool.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// The input, as JSON.
    pub(crate) fn arguments(&self, world: &World) -> Value {
        serde_json::from_str(&(self.input)(world)).expect("the input is JSON")
    }

    /// The memory that the call may have, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.memory.unwrap_or(Limits::default().memory)).unwrap_or(usize::MAX)
    }

    /// What differs from call to call.
    pub(crate) fn varies(&self) -> &[&'static str] {
        &self.varying
    }

    fn directory(&self, world: &World) -> Option<PathBuf> {
        match &self.plugins {
            Plugins::Guest(guest) => Some(guest.directory()),
            Plugins::Component(..) => Some(world.plugins()),
            Plugins::Shipped => None,
        }
    }

    #[track_caller]
    fn in_library(&self) -> Run {
        self.call(self.world(), &Recorder::default(), |call| call)
    }

    #[track_caller]
    fn call(&self, world: World, recorder: &Recorder, change: impl FnOnce(Call) -> Call) -> Run {
        let builder = self.builder(&world).subscriber(Arc::new(recorder.clone()));
        let host = builder.build().expect("the host can be built");
        assert!(host.rejected().is_empty(), "a plugin of the case was rejected: {:?}", host.rejected());
        let call = change(self.to_call(&world));
        let run = Run::start(Arc::new(world));
        let result = block_on(host.dispatch(host.session(), call));
        run.ended(result.to_json(), recorder.events())
    }

    #[track_caller]
    pub(crate) fn in_program(&self) -> Run {
        let run = Run::start(Arc::new(self.world()));
        let ran = self.program(run.world()).run();
        let result = ran.json();
        crate::uniform::check_exit_code(&result, &ran);
        run.ended(result, Vec::new())
    }
}

/// What no case takes, however slow the machine is. One that waits for what never comes fails in place of the whole run.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a future to its end, on this thread.
///
/// # Panics
///
/// Where no runtime can be started, or it does not come to its end.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let bounded = async { tokio::time::timeout(PATIENCE, work).await.expect("it comes to an end") };
    runtime.expect("a runtime can be started").block_on(bounded)
}
