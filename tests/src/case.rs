//! A test case that makes one call through the library and through the program, and requires equal
//! results.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use palisade::plugins::{Approvals, Plugin, PluginApproval, Shipped};
use palisade::{
    CacheMode, Call, HostBuilder, Places, SideEffects, policy::Policy, sandbox::Adaptation,
    sandbox::limits::Limits,
};
use serde_json::Value;

use crate::events::Recorder;
use crate::guest::{Guest, HOSTILE_ECHO, cache};
use crate::native;
use crate::observed::{Observed, Run};
use crate::program::Program;
use crate::world::World;

/// The source of a case's plugins.
#[derive(Debug, Clone)]
pub enum Plugins {
    /// A guest built by the build script.
    Guest(Guest),
    /// A component made by the test, with the file name it gets.
    Component(String, Vec<u8>),
    /// A guest of another world, whose functions become tools of this class.
    Adapted(Guest, SideEffects),
    /// The shipped plugins of the host.
    Shipped,
}

impl From<Guest> for Plugins {
    fn from(guest: Guest) -> Self {
        Self::Guest(guest)
    }
}

/// Approves plugins as the program does those that its command line names.
struct NamedForThisRun;

impl Approvals for NamedForThisRun {
    fn of(&self, _: &Plugin) -> PluginApproval {
        PluginApproval::ThisRun
    }
}

type Arrange = Box<dyn Fn(&World)>;
type Input = Box<dyn Fn(&World) -> String>;

/// A call with its plugins, input, workspace and limits.
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
    /// Creates a call of a tool with an empty input in an empty workspace.
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

    /// Sets the input.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "a literal is what it is given")]
    pub fn input(self, input: Value) -> Self {
        self.text(&input.to_string())
    }

    /// Sets the input to a text, which need not be valid JSON.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        let text = text.to_owned();
        self.input = Box::new(move |_| text.clone());
        self
    }

    /// Sets an input that depends on the location of the workspace.
    #[must_use]
    pub fn input_at(mut self, input: impl Fn(&World) -> Value + 'static) -> Self {
        self.input = Box::new(move |world| input(world).to_string());
        self
    }

    /// Adds a preparation of the workspace. Can be called several times.
    #[must_use]
    pub fn arrange(mut self, arrange: impl Fn(&World) + 'static) -> Self {
        self.arrange.push(Box::new(arrange));
        self
    }

    /// Allows a class of side effects without confirmation, as `--allow` does.
    #[must_use]
    pub fn allow(mut self, class: SideEffects) -> Self {
        self.allow.push(class);
        self
    }

    /// Sets the timeout of the call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn place_of_memory(&self) -> &'static str {
        if self.memory.is_some() {
            "with PALISADE_MEMORY"
        } else {
            "in ~/.config/palisade/palisade.toml"
        }
    }

    /// Sets the memory limit of the call, in MiB.
    #[must_use]
    pub fn memory_mib(mut self, mib: u64) -> Self {
        self.memory = Some(mib << 20);
        self
    }

    /// Excludes a part of the result from comparison, given as a JSON pointer: it differs from call
    /// to call.
    #[must_use]
    pub fn varying(mut self, pointer: &'static str) -> Self {
        self.varying.push(pointer);
        self
    }

    /// Makes the call through the library and through the program, checks the invariants of all
    /// calls, and returns the observed result.
    ///
    /// # Panics
    ///
    /// If the two results differ, or one of them violates an invariant.
    #[must_use]
    #[track_caller]
    pub fn check(self) -> Observed {
        let (library, program) = (self.in_library(), self.in_program());
        Observed::compare(library, program, &self.varying)
    }

    /// Makes the call through the library only, for options that the command line lacks: `change`
    /// adds them to the call.
    ///
    /// # Panics
    ///
    /// If the call violates an invariant.
    #[must_use]
    #[track_caller]
    pub fn check_library(self, change: impl FnOnce(Call) -> Call) -> Observed {
        let world = self.world();
        let run = self.call(world, &Recorder::default(), change);
        Observed::alone(run)
    }

    /// Makes the call as [`check_library`](Self::check_library) does, with a recorder that can
    /// react to events.
    ///
    /// # Panics
    ///
    /// If the call violates an invariant.
    #[must_use]
    #[track_caller]
    pub fn check_with_recorder(
        self,
        recorder: &Recorder,
        change: impl FnOnce(Call) -> Call,
    ) -> Observed {
        let world = self.world();
        let run = self.call(world, recorder, change);
        Observed::alone(run)
    }

    /// Creates a world and prepares its workspace.
    #[must_use]
    pub fn world(&self) -> World {
        let world = World::new();
        self.arrange_in(&world);
        if let Plugins::Component(name, bytes) = &self.plugins {
            fs::write(world.plugins().join(format!("{name}.wasm")), bytes)
                .expect("a plugin can be written");
        }
        world
    }

    /// Prepares the workspace of a world.
    pub(crate) fn arrange_in(&self, world: &World) {
        self.arrange.iter().for_each(|arrange| arrange(world));
    }

    /// Returns the program, ready to make this call.
    #[must_use]
    pub fn program<'w>(&self, world: &'w World) -> Program<'w> {
        let program = Program::new(world)
            .args(["call", &self.tool, "-", "--json"])
            .stdin((self.input)(world));
        self.with_plugins(program.args(self.running()), world)
    }

    /// Returns the program, ready to serve the tools of this case and of a benign plugin.
    #[must_use]
    pub(crate) fn server<'w>(&self, world: &'w World) -> Program<'w> {
        self.with_plugins(Program::new(world), world)
            .args(["--plugins"])
            .args([HOSTILE_ECHO.directory()])
    }

    /// Returns the options for the subcommands that run tools.
    pub(crate) fn running(&self) -> Vec<String> {
        let classes =
            self.allow.iter().flat_map(|class| ["--allow".to_owned(), class.as_str().to_owned()]);
        let timeout = self
            .timeout
            .map(|timeout| ["--timeout".to_owned(), format!("{}ms", timeout.as_millis())]);
        classes.chain(timeout.into_iter().flatten()).collect()
    }

    fn with_plugins<'w>(&self, mut program: Program<'w>, world: &World) -> Program<'w> {
        if let Some(directory) = self.directory(world) {
            program = program.args(["--no-builtin", "--plugins"]).args([directory]);
        }
        if let Some(component) = self.adapted() {
            program = program.args(["--no-builtin", "--adapt"]).args([component]);
        }
        match self.memory {
            Some(memory) => program.env("PALISADE_MEMORY", format!("{memory}B")),
            None => program,
        }
    }

    /// Returns the builder of the host that makes this call through the library.
    #[must_use]
    pub fn builder(&self, world: &World) -> HostBuilder {
        let policy =
            self.allow.iter().fold(Policy::default(), |policy, class| policy.allowing(*class));
        let limits =
            Limits { memory: self.memory.unwrap_or(Limits::default().memory), ..Limits::default() };
        // The program names the same places in its messages.
        let places = Places::new("in ~/.config/palisade/palisade.toml")
            .with("limits.memory", self.place_of_memory())
            .with_tools(self.listing(world));
        let builder = crate::host_builder()
            .workspace(world.root())
            .policy(policy)
            .limits(limits)
            .cache(CacheMode::Directory(cache()));
        let builder = builder.places(places).approvals(Arc::new(NamedForThisRun));
        match (&self.plugins, self.directory(world)) {
            (Plugins::Adapted(guest, class), _) => {
                builder.shipped(Shipped::LeftOut).adapt(guest.file(), Adaptation::new(*class))
            }
            (_, Some(directory)) => builder.shipped(Shipped::LeftOut).plugins(directory),
            (_, None) => builder.tool(native::shell()),
        }
    }

    /// Returns the command that lists the tools of this case.
    fn listing(&self, world: &World) -> String {
        let directory = self.directory(world);
        let options = directory.map(|it| format!(" --plugins {} --no-builtin", it.display()));
        let adapted = self.adapted().map(|it| format!(" --adapt {it} --no-builtin"));
        let options = options.or(adapted);
        format!("palisade list{}", options.unwrap_or_default())
    }

    /// Returns the call.
    #[must_use]
    pub fn to_call(&self, world: &World) -> Call {
        let call = Call::new(&self.tool, (self.input)(world));
        match self.timeout {
            Some(timeout) => call.with_timeout(timeout),
            None => call,
        }
    }

    /// Returns the timeout of the call: its own, or the default.
    pub(crate) fn time(&self) -> Duration {
        self.timeout.unwrap_or(palisade::sandbox::limits::TIMEOUT)
    }

    /// Returns the name of the tool.
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the input as JSON.
    pub(crate) fn arguments(&self, world: &World) -> Value {
        serde_json::from_str(&(self.input)(world)).expect("the input is JSON")
    }

    /// Returns the memory limit of the call, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.memory.unwrap_or(Limits::default().memory)).unwrap_or(usize::MAX)
    }

    /// Returns the JSON pointers to the parts of the result that differ from call to call.
    pub(crate) fn varies(&self) -> &[&'static str] {
        &self.varying
    }

    fn directory(&self, world: &World) -> Option<PathBuf> {
        match &self.plugins {
            Plugins::Guest(guest) => Some(guest.directory()),
            Plugins::Component(..) => Some(world.plugins()),
            Plugins::Adapted(..) | Plugins::Shipped => None,
        }
    }

    /// Returns the component of another world, with the class of its tools, as `--adapt` takes it.
    fn adapted(&self) -> Option<String> {
        match &self.plugins {
            Plugins::Adapted(guest, class) => Some(format!("{}={class}", guest.file().display())),
            Plugins::Guest(_) | Plugins::Component(..) | Plugins::Shipped => None,
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
        let rejected = host.rejected();
        assert!(rejected.is_empty(), "a plugin of the case was rejected: {rejected:?}");
        let call = change(self.to_call(&world));
        let run = Run::start(Arc::new(world));
        let result = block_on(host.dispatch(host.session(), call));
        run.ended_in_library(result.to_json(), recorder.events())
    }

    #[track_caller]
    pub(crate) fn in_program(&self) -> Run {
        let run = Run::start(Arc::new(self.world()));
        let ran = self.program(run.world()).run();
        let result = ran.json();
        crate::uniform::check_exit_code(&result, &ran);
        run.ended_in_program(result)
    }
}

/// An upper bound for the time of a case, also on a slow machine. A case that hangs then fails
/// instead of blocking the whole run.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a future to completion on this thread.
///
/// # Panics
///
/// If no runtime can be started, or the future does not complete within two minutes.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let bounded = async { tokio::time::timeout(PATIENCE, work).await.expect("it ends in time") };
    runtime.expect("a runtime can be started").block_on(bounded)
}

/// Waits for a task on a paused clock, which `advance` moves by a step whenever the task has not
/// ended for some milliseconds. Meanwhile the guests of other tests may hold the turns.
///
/// # Panics
///
/// If the task panicked.
pub async fn advance_until_ended<T>(
    task: tokio::task::JoinHandle<T>,
    advance: impl AsyncFn(),
) -> T {
    /// The time of a step of the clock: two ticks, in which a guest sees a signal.
    const STEP: Duration = Duration::from_millis(4);
    while !task.is_finished() {
        let begun = std::time::Instant::now();
        while begun.elapsed() < STEP && !task.is_finished() {
            tokio::task::yield_now().await;
        }
        if !task.is_finished() {
            advance().await;
        }
    }
    task.await.expect("the task does not panic")
}
