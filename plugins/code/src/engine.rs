//! One run of a program in a fresh engine: no clock, random numbers of its own, bounded recursion.
//! The build makes the engine in advance, and stores it with the plugin.

use crate::random::{self, random};
use crate::rejections::Rejections;
use crate::result::{content, failure, success, unparsed};
use crate::{console, sort, tools_object};
use boa_engine::builtins::promise::PromiseState;
use boa_engine::context::time::FixedClock;
use boa_engine::context::{Context, ContextBuilder};
use boa_engine::native_function::NativeFunctionPointer;
use boa_engine::object::FunctionObjectBuilder;
use boa_engine::object::builtins::JsPromise;
use boa_engine::property::Attribute;
use boa_engine::{
    JsError, JsNativeError, JsObject, JsResult, JsString, JsValue, NativeFunction, Script, Source,
    js_string,
};
use palisade_guest::{Error, Output, Result};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::rc::Rc;

/// The most calls inside each other of a program: the engine takes some 2 KiB of the stack for
/// each.
const RECURSION: usize = 400;

/// The name of the program as a source, by which its lines are told from those of `eval`.
pub(crate) const PROGRAM: &str = "program";

/// An engine in which no program has run.
struct Engine {
    // Never dropped: freeing each of its objects takes longer than discarding the sandbox.
    context: ManuallyDrop<Context>,
    rejections: Rc<Rejections>,
}

thread_local! {
    /// The engine that was made in advance. A sandbox runs one program, which takes it.
    static PREPARED: Cell<Option<Engine>> = const { Cell::new(None) };
}

/// Makes the engine of the next program in advance.
pub(crate) fn prepare() {
    PREPARED.set(Engine::new().ok());
}

/// Runs a program, and returns what it printed and returned.
pub(crate) fn run(program: &str) -> Result<Output> {
    random::seed(program);
    let engine = PREPARED.take().map_or_else(Engine::new, Ok).map_err(|error| broken(&error))?;
    let Engine { mut context, rejections } = engine;
    let begin = match program.contains("await") {
        true => "(async function () {",
        false => "(function () {",
    };
    let indent = u32::try_from(begin.len()).unwrap_or_default();
    let script = parsed(begin, program, indent, &mut context);
    let returned = script.and_then(|script| {
        let value = evaluated(&script, &mut context)?;
        let returned = content(&value, &mut context)?;
        // Getters of the value run while it is converted, and may leave promises behind.
        context.run_jobs()?;
        rejections.unhandled().map_or(Ok(returned), Err)
    });
    Ok(match returned {
        Ok(returned) => success(returned),
        Err(error) => failure(&error, indent, &mut context),
    })
}

impl Engine {
    fn new() -> JsResult<Self> {
        let rejections = Rc::new(Rejections::default());
        let context = ManuallyDrop::new(context(rejections.clone())?);
        Ok(Self { context, rejections })
    }
}

/// Returns the error of an engine that does not start, which no program causes.
fn broken(error: &JsError) -> Error {
    Error::failed(format!("the engine does not start: {error}"))
}

fn context(rejections: Rc<Rejections>) -> JsResult<Context> {
    let clock = Rc::new(FixedClock::from_millis(0));
    let mut context = ContextBuilder::new().clock(clock).host_hooks(rejections).build()?;
    context.runtime_limits_mut().set_recursion_limit(RECURSION);
    context.strict(true);
    let math = context.global_object().get(js_string!("Math"), &mut context)?;
    if let Some(math) = math.as_object() {
        let random = function(&context, "random", random);
        math.set(js_string!("random"), random, true, &mut context)?;
    }
    sort::install(&mut context)?;
    let console = console::build(&mut context)?;
    context.register_global_property(js_string!("console"), console, Attribute::all())?;
    let tools = tools_object::build(&mut context)?;
    context.register_global_property(js_string!("tools"), tools, Attribute::ENUMERABLE)?;
    Ok(context)
}

/// Creates a function for programs.
pub(crate) fn function(context: &Context, name: &str, body: NativeFunctionPointer) -> JsObject {
    let body = NativeFunction::from_fn_ptr(body);
    FunctionObjectBuilder::new(context.realm(), body).name(JsString::from(name)).build().into()
}

/// Reads the program as the body of a function, so that it may return a value: of an asynchronous
/// one if it awaits anything.
fn parsed(begin: &str, program: &str, indent: u32, context: &mut Context) -> JsResult<Script> {
    // On the first line, so that the lines of the program keep their numbers.
    let text = [begin, program, "\n})()"].concat();
    let source = Source::from_bytes(&text).with_path(Path::new(PROGRAM));
    Script::parse(source, None, context).map_err(|error| unparsed(error, indent, context))
}

fn evaluated(script: &Script, context: &mut Context) -> JsResult<JsValue> {
    let value = script.evaluate(context)?;
    context.run_jobs()?;
    let promise = value.as_object().and_then(|it| JsPromise::from_object(it.clone()).ok());
    let Some(promise) = promise else { return Ok(value) };
    match promise.state() {
        PromiseState::Fulfilled(value) => Ok(value),
        PromiseState::Rejected(reason) => Err(JsError::from_opaque(reason)),
        PromiseState::Pending => Err(JsNativeError::error()
            .with_message("the program waits for a promise that nothing settles")
            .into()),
    }
}
