//! `sort` and `toSorted` of arrays and typed arrays with a merge sort: that of the engine ends the
//! whole guest where a comparator contradicts itself, as `() => 0.5 - Math.random()` does.

use crate::engine::function;
use boa_engine::object::FunctionObjectBuilder;
use boa_engine::object::builtins::{JsArray, JsTypedArray};
use boa_engine::property::PropertyDescriptor;
use boa_engine::{
    Context, JsArgs, JsNativeError, JsObject, JsResult, JsString, JsValue, NativeFunction,
    js_string,
};
use std::cmp::Ordering;

/// The most items that are sorted at once.
const MOST: u64 = 1_000_000;

/// Replaces the functions of the engine.
pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let prototype = context.intrinsics().constructors().array().prototype();
    for (name, body) in [("sort", in_place as _), ("toSorted", copied as _)] {
        let function = function(context, name, body);
        replace(&prototype, name, function, context)?;
    }
    let prototype = context.intrinsics().constructors().typed_array().prototype();
    for (name, body) in [("sort", typed_in_place as TypedSort), ("toSorted", typed_copied as _)] {
        // Without a comparator the sort of the engine knows the order of each kind of numbers.
        let own = prototype.get(JsString::from(name), context)?;
        let body = NativeFunction::from_copy_closure_with_captures(
            move |this, args, own: &JsValue, context| match (comparator(args)?, own.as_callable()) {
                (None, Some(own)) => own.call(this, args, context),
                (comparator, _) => body(this, comparator.as_ref(), context),
            },
            own,
        );
        let function = FunctionObjectBuilder::new(context.realm(), body).name(JsString::from(name));
        let function = function.length(1).build().into();
        replace(&prototype, name, function, context)?;
    }
    Ok(())
}

/// A sort of a typed array with a comparator.
type TypedSort = fn(&JsValue, Option<&JsObject>, &mut Context) -> JsResult<JsValue>;

fn replace(
    prototype: &JsObject,
    name: &'static str,
    function: JsObject,
    context: &mut Context,
) -> JsResult<()> {
    let property = PropertyDescriptor::builder().value(function).writable(true);
    let property = property.enumerable(false).configurable(true);
    prototype.define_property_or_throw(JsString::from(name), property, context)?;
    Ok(())
}

fn typed_in_place(
    this: &JsValue,
    comparator: Option<&JsObject>,
    context: &mut Context,
) -> JsResult<JsValue> {
    let list: JsObject = JsTypedArray::from_object(this.to_object(context)?)?.into();
    let items = (0..length(&list, context)?).map(|index| list.get(index, context));
    let items = items.collect::<JsResult<_>>()?;
    for (index, item) in sorted(items, comparator, context)?.into_iter().enumerate() {
        list.set(index as u64, item, true, context)?;
    }
    Ok(list.into())
}

fn typed_copied(
    this: &JsValue,
    comparator: Option<&JsObject>,
    context: &mut Context,
) -> JsResult<JsValue> {
    let copy = JsTypedArray::from_object(this.to_object(context)?)?.slice(None, None, context)?;
    typed_in_place(&copy.into(), comparator, context)
}

fn in_place(this: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let comparator = comparator(args)?;
    let list = this.to_object(context)?;
    let length = length(&list, context)?;
    let mut items = Vec::new();
    for index in 0..length {
        // Holes stay behind the items.
        if list.has_property(index, context)? {
            items.push(list.get(index, context)?);
        }
    }
    let items = sorted(items, comparator.as_ref(), context)?;
    let mut next = 0_u64;
    for item in items {
        list.set(next, item, true, context)?;
        next += 1;
    }
    for index in next..length {
        list.delete_property_or_throw(index, context)?;
    }
    Ok(list.into())
}

fn copied(this: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let comparator = comparator(args)?;
    let list = this.to_object(context)?;
    let mut items = Vec::new();
    for index in 0..length(&list, context)? {
        items.push(list.get(index, context)?);
    }
    let items = sorted(items, comparator.as_ref(), context)?;
    Ok(JsArray::from_iter(items, context).into())
}

fn comparator(args: &[JsValue]) -> JsResult<Option<JsObject>> {
    let given = args.get_or_undefined(0);
    match (given.is_undefined(), given.as_callable()) {
        (true, _) => Ok(None),
        (false, Some(comparator)) => Ok(Some(comparator.clone())),
        (false, None) => {
            let error = JsNativeError::typ();
            Err(error.with_message("the comparator of a sort is a function").into())
        }
    }
}

fn length(list: &JsObject, context: &mut Context) -> JsResult<u64> {
    let length = list.get(js_string!("length"), context)?.to_length(context)?;
    match length <= MOST {
        true => Ok(length),
        false => {
            let error = JsNativeError::range();
            Err(error.with_message("more than a million items cannot be sorted").into())
        }
    }
}

/// Sorts items by a merge sort from the bottom up, which is stable and ends whatever the comparator
/// says. `undefined` comes last, as the language has it.
fn sorted(
    items: Vec<JsValue>,
    comparator: Option<&JsObject>,
    context: &mut Context,
) -> JsResult<Vec<JsValue>> {
    let (mut items, undefined): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| !item.is_undefined());
    let mut width = 1;
    while width < items.len() {
        let mut merged = Vec::with_capacity(items.len());
        for run in items.chunks(2 * width) {
            let (left, right) = run.split_at(width.min(run.len()));
            merge(left, right, &mut merged, comparator, context)?;
        }
        items = merged;
        width *= 2;
    }
    items.extend(undefined);
    Ok(items)
}

fn merge(
    mut left: &[JsValue],
    mut right: &[JsValue],
    merged: &mut Vec<JsValue>,
    comparator: Option<&JsObject>,
    context: &mut Context,
) -> JsResult<()> {
    while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
        if order(first, second, comparator, context)? == Ordering::Greater {
            merged.push(second.clone());
            right = right_rest;
        } else {
            merged.push(first.clone());
            left = left_rest;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}

fn order(
    first: &JsValue,
    second: &JsValue,
    comparator: Option<&JsObject>,
    context: &mut Context,
) -> JsResult<Ordering> {
    let Some(comparator) = comparator else {
        return Ok(first.to_string(context)?.cmp(&second.to_string(context)?));
    };
    let arguments = [first.clone(), second.clone()];
    let answer = comparator.call(&JsValue::undefined(), &arguments, context)?.to_number(context)?;
    Ok(answer.partial_cmp(&0.0).unwrap_or(Ordering::Equal))
}
