//! Values of a program as JSON.

use boa_engine::object::builtins::{JsArray, JsMap, JsSet};
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsError, JsNativeError, JsObject, JsResult, JsValue, js_string};
use serde_json::{Map, Number, Value};

/// The most arrays and objects inside each other. The host accepts no more of them.
const DEPTH: usize = 64;

/// The most values of one conversion.
const VALUES: usize = 1_000_000;

/// Converts a value. `None` for what has no form in JSON: `undefined`, functions and symbols.
pub(crate) fn json(value: &JsValue, context: &mut Context) -> JsResult<Option<Value>> {
    Conversion { left: VALUES }.of(value, DEPTH, context)
}

struct Conversion {
    left: usize,
}

impl Conversion {
    fn of(
        &mut self,
        value: &JsValue,
        depth: usize,
        context: &mut Context,
    ) -> JsResult<Option<Value>> {
        self.left = self.left.checked_sub(1).ok_or_else(|| refused("it has too many parts"))?;
        if let Some(object) = value.as_object() {
            let inner = depth.checked_sub(1);
            let inner =
                inner.ok_or_else(|| refused("it is nested more than 64 deep, or in itself"))?;
            return self.of_object(&object, inner, context);
        }
        Ok(match value {
            value if value.is_undefined() || value.is_symbol() => None,
            value if value.is_null() => Some(Value::Null),
            value => Some(match (value.as_boolean(), value.as_number(), value.as_string()) {
                (Some(truth), ..) => truth.into(),
                (_, Some(number), _) => of_number(number),
                (.., Some(text)) => text.to_std_string_lossy().into(),
                // A large integer, which JSON numbers do not hold.
                _ => value.to_string(context)?.to_std_string_lossy().into(),
            }),
        })
    }

    fn of_object(
        &mut self,
        object: &JsObject,
        depth: usize,
        context: &mut Context,
    ) -> JsResult<Option<Value>> {
        if object.is_callable() {
            return Ok(None);
        }
        let own = object.get(js_string!("toJSON"), context)?;
        if let Some(own) = own.as_callable() {
            let value = own.call(&object.clone().into(), &[], context)?;
            return self.of(&value, depth, context);
        }
        if let Ok(array) = JsArray::from_object(object.clone()) {
            let mut items = Vec::new();
            for index in 0..array.length(context)? {
                let item = array.get(index, context)?;
                items.push(self.of(&item, depth, context)?.unwrap_or(Value::Null));
            }
            return Ok(Some(items.into()));
        }
        if let Some(items) = entries(object)? {
            let items = items.iter().map(|item| self.of(item, depth, context));
            let items: Vec<_> = items.collect::<JsResult<_>>()?;
            return Ok(Some(items.into_iter().map(Option::unwrap_or_default).collect()));
        }
        if let Ok(map) = JsMap::from_object(object.clone()) {
            let mut pairs = Vec::new();
            map.for_each_native(|key, value| {
                pairs.push([key, value]);
                Ok(())
            })?;
            let mut items = Vec::new();
            for pair in pairs {
                let mut both = Vec::new();
                for part in pair {
                    both.push(self.of(&part, depth, context)?.unwrap_or_default());
                }
                items.push(Value::from(both));
            }
            return Ok(Some(items.into()));
        }
        let mut members = Map::new();
        for key in object.own_property_keys(context)? {
            let PropertyKey::Symbol(_) = key else {
                let value = object.get(key.clone(), context)?;
                if let Some(value) = self.of(&value, depth, context)? {
                    let name = JsValue::from(key).to_string(context)?;
                    members.insert(name.to_std_string_lossy(), value);
                }
                continue;
            };
        }
        Ok(Some(members.into()))
    }
}

/// Returns the items of a `Set`.
fn entries(object: &JsObject) -> JsResult<Option<Vec<JsValue>>> {
    let Ok(set) = JsSet::from_object(object.clone()) else { return Ok(None) };
    let mut items = Vec::new();
    set.for_each_native(|item| {
        items.push(item);
        Ok(())
    })?;
    Ok(Some(items))
}

/// Returns a number. A number that JSON cannot express is `null`, as `JSON.stringify` writes it.
fn of_number(number: f64) -> Value {
    /// The largest whole number that a number of JavaScript holds exactly.
    const EXACT: f64 = 9_007_199_254_740_991.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "it is a whole number within the range"
        )]
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn refused(reason: &str) -> JsError {
    JsNativeError::typ()
        .with_message(format!("the value cannot leave the program: {reason}"))
        .into()
}
