//! Reads YAML as a value, with the types of the core schema.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Parses one document.
pub(super) fn read(text: &str) -> Value {
    let events = Parser::new_from_str(text).map(|event| event.expect("YAML").0);
    let mut events = events.skip_while(|event| !matches!(event, Event::DocumentStart(_))).skip(1);
    let first = events.next().expect("a value");
    let value = value(first, &mut events);
    assert_eq!(events.next(), Some(Event::DocumentEnd), "{text}");
    assert_eq!(events.next(), Some(Event::StreamEnd), "{text}");
    value
}

fn value<'e>(first: Event<'e>, events: &mut impl Iterator<Item = Event<'e>>) -> Value {
    match first {
        Event::Scalar(text, ScalarStyle::Plain, _, None) => {
            serde_json::from_str(&text).unwrap_or_else(|_| Value::from(&*text))
        }
        Event::Scalar(text, _, _, None) => Value::from(&*text),
        Event::SequenceStart(..) => {
            let mut elements = Vec::new();
            loop {
                match events.next().expect("an element") {
                    Event::SequenceEnd => return Value::Array(elements),
                    event => elements.push(value(event, events)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut members = Map::new();
            loop {
                match events.next().expect("a member") {
                    Event::MappingEnd => return Value::Object(members),
                    event => {
                        let key = value(event, events);
                        let key = key.as_str().expect("a name is a string").to_owned();
                        let first = events.next().expect("a value");
                        let inner = value(first, events);
                        assert_eq!(members.insert(key, inner), None, "a name occurs once");
                    }
                }
            }
        }
        other => panic!("{other:?} is not used"),
    }
}
