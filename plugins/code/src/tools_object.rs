//! The object `tools` of a program: a function for each tool.

use crate::engine::{PROGRAM, function};
use crate::json::json;
use crate::search::found;
use boa_engine::object::builtins::{JsArray, JsProxyBuilder};
use boa_engine::object::{FunctionObjectBuilder, ObjectInitializer};
use boa_engine::property::Attribute;
use boa_engine::vm::SourcePath;
use boa_engine::{
    Context, JsArgs, JsError, JsNativeError, JsObject, JsResult, JsString, JsValue, NativeFunction,
    js_string,
};
use palisade_guest::Content;
use palisade_guest::tools::{Failure, Reply, Request, call_all};
use serde_json::{Map, Value};

/// The most calls at once.
const AT_ONCE: u64 = 32;

/// Creates the object. Its members are made as they are asked for, so that a program which uses
/// three tools does not pay for the description of a hundred.
pub(crate) fn build(context: &mut Context) -> JsResult<JsObject> {
    let target = ObjectInitializer::new(context).build();
    Ok(JsProxyBuilder::new(target).get(member).build(context)?.into())
}

/// Returns a member of `tools`: the function of this name.
fn member(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let Some(name) = args.get_or_undefined(1).as_string() else { return Ok(JsValue::undefined()) };
    Ok(match &*name.to_std_string_lossy() {
        "all" => function(context, "all", all).into(),
        "search" => function(context, "search", search).into(),
        // A program cannot await `tools` itself, or use it as a text.
        "then" | "toJSON" | "toString" | "valueOf" | "constructor" => JsValue::undefined(),
        _ => {
            let body = NativeFunction::from_copy_closure_with_captures(
                |_, args, name: &JsString, context| call(name, args.get_or_undefined(0), context),
                name.clone(),
            );
            let made = FunctionObjectBuilder::new(context.realm(), body).name(name).build();
            JsObject::from(made).into()
        }
    })
}

/// Calls one tool. Throws an error if the call fails.
fn call(name: &JsString, input: &JsValue, context: &mut Context) -> JsResult<JsValue> {
    let line = line(context);
    let request = request(name, input, line, context)?;
    match call_all(vec![request]).pop() {
        Some(Ok(reply)) => value(reply, context),
        Some(Err(failure)) => Err(JsError::from_opaque(error(&failure, line, context)?.into())),
        None => Ok(JsValue::undefined()),
    }
}

/// `tools.all`: makes several calls at once, and returns an object for each, with its value or its
/// error.
fn all(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let wanted = || type_error("tools.all takes a list of calls, each as [\"tool\", {input}]");
    let list = args.get_or_undefined(0).as_object().ok_or_else(wanted)?;
    let list = JsArray::from_object(list.clone()).map_err(|_| wanted())?;
    let count = list.length(context)?;
    if count > AT_ONCE {
        return Err(type_error("tools.all makes at most 32 calls at once"));
    }
    let line = line(context);
    let mut requests = Vec::new();
    for index in 0..count {
        let call = list.get(index, context)?;
        let call = call.as_object().and_then(|it| JsArray::from_object(it.clone()).ok());
        let call = call.ok_or_else(wanted)?;
        let name = call.get(0, context)?.as_string().ok_or_else(wanted)?;
        let input = call.get(1, context)?;
        requests.push(request(&name, &input, line, context)?);
    }
    let results = JsArray::new(context)?;
    for result in call_all(requests) {
        let (key, value) = match result {
            Ok(reply) => (js_string!("value"), value(reply, context)?),
            Err(failure) => (js_string!("error"), error(&failure, line, context)?.into()),
        };
        let entry = ObjectInitializer::new(context).property(key, value, Attribute::all()).build();
        results.push(entry, context)?;
    }
    Ok(results.into())
}

/// `tools.search`: returns the declarations of tools.
fn search(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let words = args.get_or_undefined(0);
    let words = match words.is_undefined() {
        true => String::new(),
        false => words.to_string(context)?.to_std_string_lossy(),
    };
    Ok(JsString::from(found(&words)).into())
}

fn request(
    name: &JsString,
    input: &JsValue,
    line: Option<u32>,
    context: &mut Context,
) -> JsResult<Request> {
    let input = match input.is_undefined() {
        true => Value::Object(Map::new()),
        false => json(input, context)?.unwrap_or_default(),
    };
    if !input.is_object() {
        let name = name.to_std_string_lossy();
        return Err(type_error(&format!(
            "the input of {name} is an object, such as {{path: \"a\"}}"
        )));
    }
    let request = Request::new(&name.to_std_string_lossy(), &input);
    Ok(match line {
        Some(line) => request.at(&format!("line {line}")),
        None => request,
    })
}

/// Returns the line of the program that runs now. A text that the program evaluates has lines of
/// its own, which would mislead.
fn line(context: &Context) -> Option<u32> {
    let is_program = |path: &SourcePath| match path {
        SourcePath::Path(path) => path.as_os_str() == PROGRAM,
        _ => false,
    };
    let mut frames = context.stack_trace().map(|frame| frame.position());
    let place = frames.find(|place| is_program(&place.path) && place.position.is_some())?;
    place.position.map(|at| at.line_number())
}

/// Returns the output of a tool as a value: that of its one JSON block, or else its text.
fn value(reply: Reply, context: &mut Context) -> JsResult<JsValue> {
    if let [Content::Json(json)] = reply.content.as_slice() {
        let parsed = serde_json::from_str(json).unwrap_or_default();
        return JsValue::from_json(&parsed, context);
    }
    Ok(JsString::from(reply.text()).into())
}

/// Returns a failure as an error that a program can catch.
fn error(failure: &Failure, line: Option<u32>, context: &mut Context) -> JsResult<JsObject> {
    let error = JsNativeError::error().with_message(failure.message.clone()).into_opaque(context);
    error.set(js_string!("name"), JsString::from(&*failure.class), true, context)?;
    error.set(js_string!("class"), JsString::from(&*failure.class), true, context)?;
    if let Some(line) = line {
        error.set(js_string!("line"), line, true, context)?;
    }
    Ok(error)
}

fn type_error(message: &str) -> JsError {
    JsNativeError::typ().with_message(message.to_owned()).into()
}
