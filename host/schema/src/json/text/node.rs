//! The pass over one value and the values inside it.

use std::cmp::Ordering;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::Pass;
use crate::json::order::{Member, key_of};
use crate::json::{Refusal, footprint};

/// The position of a value among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    First,
    /// After a sibling and a comma.
    Next,
}

/// One value at a given depth.
pub(super) struct Node<'p, 'b> {
    pub(super) pass: &'p mut Pass<'b>,
    pub(super) depth: usize,
    pub(super) place: Place,
}

impl<'b> Node<'_, 'b> {
    /// Returns the depth of the values inside this one.
    fn deeper<E: serde::de::Error>(&mut self) -> Result<usize, E> {
        let depth = self.depth + 1;
        if depth > self.pass.bounds.depth {
            Err(self.pass.refuse(Refusal::Depth))
        } else {
            Ok(depth)
        }
    }

    /// Returns the pass, after writing the comma before this value.
    fn begun<E: serde::de::Error>(&mut self) -> Result<&mut Pass<'b>, E> {
        if self.place == Place::Next {
            self.pass.byte(b',')?;
        }
        Ok(self.pass)
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(mut self) -> Result<(), E> {
        self.begun()?.scalar(())
    }

    fn visit_bool<E: serde::de::Error>(mut self, value: bool) -> Result<(), E> {
        self.begun()?.scalar(value)
    }

    fn visit_u64<E: serde::de::Error>(mut self, value: u64) -> Result<(), E> {
        self.begun()?.scalar(value)
    }

    fn visit_i64<E: serde::de::Error>(mut self, value: i64) -> Result<(), E> {
        self.begun()?.scalar(value)
    }

    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<(), E> {
        if value.is_finite() {
            self.begun()?.scalar(value)
        } else {
            Err(E::custom("number out of range"))
        }
    }

    fn visit_str<E: serde::de::Error>(mut self, value: &str) -> Result<(), E> {
        self.begun()?.string(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut source: A) -> Result<(), A::Error> {
        let depth = self.deeper()?;
        self.begun()?.byte(b'[')?;
        let pass = self.pass;
        let mut count = 0;
        let mut place = Place::First;
        while source.next_element_seed(Node { pass: &mut *pass, depth, place })?.is_some() {
            place = Place::Next;
            count += 1;
            pass.count()?;
        }
        pass.footprint += footprint::elements(count);
        pass.byte(b']')
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut source: A) -> Result<(), A::Error> {
        let depth = self.deeper()?;
        self.begun()?.byte(b'{')?;
        let pass = self.pass;
        let begin = pass.out.len();
        let first = pass.open.len();
        let mut is_sorted = true;
        let mut place = Place::First;
        loop {
            let start = pass.out.len() + usize::from(place == Place::Next);
            if source.next_key_seed(Node { pass: &mut *pass, depth, place })?.is_none() {
                break;
            }
            place = Place::Next;
            pass.count()?;
            let key_end = pass.out.len();
            pass.byte(b':')?;
            source.next_value_seed(Node { pass: &mut *pass, depth, place: Place::First })?;
            let member = Member::new(start, key_end, pass.out.len());
            let follows = pass
                .open
                .get(first..)
                .and_then(<[_]>::last)
                .map_or(Ordering::Less, |last| last.compare(member, &pass.out));
            if follows == Ordering::Equal {
                let key = key_of(member, &pass.out);
                return Err(pass.refuse(Refusal::Duplicate(key)));
            }
            is_sorted &= follows == Ordering::Less;
            pass.note(member)?;
            pass.footprint += footprint::member(pass.open.len() - first);
        }
        if !is_sorted {
            pass.arrange(first, begin)?;
        }
        pass.open.truncate(first);
        pass.byte(b'}')
    }
}
