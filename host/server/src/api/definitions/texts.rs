//! The definitions of tools as JSON texts. Each tool is converted once in each form, as long as
//! there is room for the texts, which count towards the memory of the process.

use super::{ToolView, Weakened};
use palisade::formats::{DefinitionView, Format, Strictness, export};
use palisade::internal::Owed;
use palisade::registry::Registered;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The most bytes of all texts that are kept. The texts of a few thousand ordinary tools in all
/// forms have room; others are made again for each request.
const KEPT: usize = 32 << 20;

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// An item of the list of tools.
    Listed,
    /// A definition in the format of a provider.
    Exported(Format, Strictness),
}

/// The texts of one tool in one form.
#[derive(Debug)]
pub(super) struct ToolText {
    /// The tool.
    pub(super) tool: String,
    /// The parts that the form cannot express: the elements of an array, with commas between them.
    pub(super) weakened: String,
    /// The memory of both.
    #[expect(dead_code, reason = "counts for as long as it lives")]
    memory: Owed,
}

impl ToolText {
    fn of(tool: &Registered, form: Form) -> Self {
        let (tool, weakened) = match form {
            Form::Listed => (text(&ToolView::from(tool)), String::new()),
            Form::Exported(format, strictness) => {
                let view = DefinitionView::from(tool.definition());
                let exported = export(&view, format, strictness);
                let weakened = exported.weakened.into_iter().map(Weakened::from);
                let weakened: Vec<_> = weakened.map(|part| text(&part)).collect();
                (text(&exported.tool), weakened.join(","))
            }
        };
        let memory = Owed::new(tool.len() + weakened.len());
        Self { tool, weakened, memory }
    }

    /// Returns the length of both, in bytes.
    pub(super) fn length(&self) -> usize {
        self.tool.len() + self.weakened.len()
    }
}

fn text(value: &impl Serialize) -> String {
    // Serialization fails only for maps with non-string keys, and there are none.
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.shrink_to_fit();
    text
}

type Kept = (Weak<Registered>, Arc<ToolText>);

/// The texts of the tools that were asked for.
#[derive(Default)]
pub(in crate::api) struct DefinitionTexts {
    /// By address, which is not used again while a weak reference exists.
    texts: Mutex<HashMap<(usize, Form), Kept>>,
}

impl DefinitionTexts {
    /// Returns the texts of a tool, if they are known.
    pub(super) fn known(&self, tool: &Arc<Registered>, form: Form) -> Option<Arc<ToolText>> {
        self.lock().get(&(address(tool), form)).map(|(_, text)| text.clone())
    }

    /// Returns the texts of a tool, which may take long.
    pub(super) fn get(&self, tool: &Arc<Registered>, form: Form) -> Arc<ToolText> {
        if let Some(known) = self.known(tool, form) {
            return known;
        }
        // Outside of the lock, since it may take long.
        let text = Arc::new(ToolText::of(tool, form));
        let mut texts = self.lock();
        texts.retain(|_, (known, _)| known.strong_count() > 0);
        let kept: usize = texts.values().map(|(_, text)| text.length()).sum();
        if kept + text.length() <= KEPT {
            texts.insert((address(tool), form), (Arc::downgrade(tool), text.clone()));
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(usize, Form), Kept>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn address(tool: &Arc<Registered>) -> usize {
    Arc::as_ptr(tool).addr()
}
