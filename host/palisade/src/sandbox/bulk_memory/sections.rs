//! The framing of sections: reading those of a component or module, and writing them again.

use super::error::SliceError;
use wasm_encoder::Encode;
use wasmparser::BinaryReader;

/// The numbers of the sections that are rewritten or read.
pub(super) mod id {
    /// Of a component: a core module.
    pub(in super::super) const CORE_MODULE: u8 = 1;
    /// Of a component: a component inside it.
    pub(in super::super) const COMPONENT: u8 = 4;
    /// Of a core module, as all that follow: its types.
    pub(in super::super) const TYPES: u8 = 1;
    pub(in super::super) const IMPORTS: u8 = 2;
    pub(in super::super) const FUNCTIONS: u8 = 3;
    pub(in super::super) const TABLES: u8 = 4;
    pub(in super::super) const GLOBALS: u8 = 6;
    pub(in super::super) const EXPORTS: u8 = 7;
    pub(in super::super) const ELEMENTS: u8 = 9;
    pub(in super::super) const CODE: u8 = 10;
    pub(in super::super) const DATA: u8 = 11;
    const DATA_COUNT: u8 = 12;

    /// The sections of a core module that are read, of which each may occur once.
    pub(in super::super) const READ: [u8; 9] =
        [TYPES, IMPORTS, FUNCTIONS, TABLES, GLOBALS, EXPORTS, ELEMENTS, CODE, DATA];

    /// The sections of a core module that come behind that of the functions, in their order.
    const BEHIND_FUNCTIONS: [u8; 10] =
        [TABLES, 5, 13, GLOBALS, EXPORTS, 8, ELEMENTS, DATA_COUNT, CODE, DATA];

    /// Returns true if a section has to come behind another one, of functions, elements or code.
    pub(in super::super) fn is_behind(id: u8, other: u8) -> bool {
        let place = |id| BEHIND_FUNCTIONS.iter().position(|known| *known == id);
        place(id).is_some_and(|place_of_id| place(other).is_none_or(|it| it < place_of_id))
    }
}

/// The length of the magic bytes and the version, in bytes.
const HEADER: usize = 8;

/// A section.
pub(super) struct Section<'a> {
    pub(super) id: u8,
    pub(super) content: &'a [u8],
    /// The content with the number and the length before it.
    pub(super) whole: &'a [u8],
}

/// The sections of a component or module.
pub(super) struct Sections<'a> {
    bytes: &'a [u8],
    header: &'a [u8],
    reader: BinaryReader<'a>,
}

impl<'a> Sections<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, SliceError> {
        let mut reader = BinaryReader::new(bytes, 0);
        let header = reader.read_bytes(HEADER)?;
        Ok(Self { bytes, header, reader })
    }

    pub(super) fn header(&self) -> &'a [u8] {
        self.header
    }

    pub(super) fn next(&mut self) -> Result<Option<Section<'a>>, SliceError> {
        if self.reader.eof() {
            return Ok(None);
        }
        let start = self.reader.current_position();
        let id = self.reader.read_u8()?;
        let length = self.reader.read_var_u32()?;
        let content = self.reader.read_bytes(length as usize)?;
        let whole = self.bytes.get(start..self.reader.current_position()).unwrap_or_default();
        Ok(Some(Section { id, content, whole }))
    }
}

/// Bytes of a component or module under construction.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn encode(&mut self, item: &impl Encode) {
        item.encode(&mut self.0);
    }

    /// Writes a number in the shortest form.
    pub(super) fn number(&mut self, number: u32) {
        self.encode(&number);
    }

    /// Writes the number of items or bytes that follow.
    pub(super) fn length(&mut self, length: usize) -> Result<(), SliceError> {
        self.number(u32::try_from(length).map_err(|_| SliceError::TooLarge)?);
        Ok(())
    }

    /// Writes a section. Its length is filled in afterwards, in the longest form, so that nested
    /// sections need no buffers of their own.
    pub(super) fn section<T>(
        &mut self,
        id: u8,
        content: impl FnOnce(&mut Self) -> Result<T, SliceError>,
    ) -> Result<T, SliceError> {
        self.0.push(id);
        let at = self.0.len();
        self.0.extend([0; PADDED]);
        let begin = self.0.len();
        let done = content(self)?;
        let length = u32::try_from(self.0.len() - begin).map_err(|_| SliceError::TooLarge)?;
        for (byte, padded) in self.0.iter_mut().skip(at).zip(padded(length)) {
            *byte = padded;
        }
        Ok(done)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The longest form of a 32-bit number, in bytes.
const PADDED: usize = 5;

fn padded(number: u32) -> [u8; PADDED] {
    [0, 7, 14, 21, 28].map(|shift| {
        let more = if shift == 28 { 0 } else { 0x80 };
        (number >> shift & 0x7f) as u8 | more
    })
}

/// Whether a definition was changed or copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    Some,
}

impl Change {
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::None { other } else { self }
    }
}
