//! The functions that do long bulk memory instructions slice by slice.

use wasm_encoder::{BlockType, Function, InstructionSink};

/// The most bytes between two epoch checks. The first write to that many takes the kernel about a
/// tenth of a millisecond.
pub(super) const SLICE: u32 = 256 << 10;

/// A bulk memory instruction with its immediates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bulk {
    Fill { memory: u32 },
    Copy { to: u32, from: u32 },
    Init { memory: u32, segment: u32, size: u32 },
}

/// The parameters of a slow path are the operands of its instruction.
const TO: u32 = 0;
/// The second operand: a value for `memory.fill`, otherwise an address.
const FROM: u32 = 1;
const LENGTH: u32 = 2;

/// [`SLICE`] as the operand of a constant.
const SLICE_CONST: i32 = SLICE as i32;

impl Bulk {
    /// Returns the body of the slow path, for lengths above [`SLICE`].
    pub(super) fn body(self) -> Vec<u8> {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        self.check_bounds(&mut code);
        match self {
            // Backwards if the target is above the source, so that no slice overwrites a source that
            // is still to be read. Two indices can stand for one memory, which is imported twice.
            Self::Copy { .. } => {
                code.local_get(TO).local_get(FROM).i32_gt_u().if_(BlockType::Empty);
                self.backwards(&mut code);
                code.else_();
                self.forwards(&mut code);
                code.end();
            }
            _ => self.forwards(&mut code),
        }
        code.end();
        function.into_raw_body()
    }

    fn instruction(self, code: &mut InstructionSink<'_>) {
        match self {
            Self::Fill { memory } => code.memory_fill(memory),
            Self::Copy { to, from } => code.memory_copy(to, from),
            Self::Init { memory, segment, .. } => code.memory_init(memory, segment),
        };
    }

    /// Does the original instruction if a range is out of bounds: it traps before it writes.
    fn check_bounds(self, code: &mut InstructionSink<'_>) {
        match self {
            Self::Fill { memory } => exceeds(code, TO, Size::Memory(memory)),
            Self::Copy { to, from } => {
                exceeds(code, TO, Size::Memory(to));
                exceeds(code, FROM, Size::Memory(from));
                code.i32_or();
            }
            // A dropped segment has no bytes, so its first slice traps.
            Self::Init { memory, size, .. } => {
                exceeds(code, TO, Size::Memory(memory));
                exceeds(code, FROM, Size::Bytes(size));
                code.i32_or();
            }
        }
        code.if_(BlockType::Empty).local_get(TO).local_get(FROM).local_get(LENGTH);
        self.instruction(code);
        code.unreachable().end();
    }

    fn forwards(self, code: &mut InstructionSink<'_>) {
        code.loop_(BlockType::Empty).local_get(TO).local_get(FROM).i32_const(SLICE_CONST);
        self.instruction(code);
        advance(code, TO);
        if !matches!(self, Self::Fill { .. }) {
            advance(code, FROM);
        }
        shorten(code);
        code.local_get(LENGTH).i32_const(SLICE_CONST).i32_gt_u().br_if(0).end();
        self.rest(code);
    }

    fn backwards(self, code: &mut InstructionSink<'_>) {
        code.loop_(BlockType::Empty);
        shorten(code);
        code.local_get(TO).local_get(LENGTH).i32_add();
        code.local_get(FROM).local_get(LENGTH).i32_add().i32_const(SLICE_CONST);
        self.instruction(code);
        code.local_get(LENGTH).i32_const(SLICE_CONST).i32_gt_u().br_if(0).end();
        self.rest(code);
    }

    fn rest(self, code: &mut InstructionSink<'_>) {
        code.local_get(TO).local_get(FROM).local_get(LENGTH);
        self.instruction(code);
    }
}

/// The type of all slow paths in binary form: a function of three numbers of 32 bits, without a
/// result.
pub(super) const TYPE: [u8; 6] = [0x60, 3, 0x7f, 0x7f, 0x7f, 0];

/// The size of what an operand points into.
#[derive(Clone, Copy)]
enum Size {
    Memory(u32),
    Bytes(u32),
}

/// Leaves 1 if the range from the address in a parameter ends beyond the size, else 0.
fn exceeds(code: &mut InstructionSink<'_>, address: u32, size: Size) {
    code.local_get(address).i64_extend_i32_u();
    code.local_get(LENGTH).i64_extend_i32_u().i64_add();
    match size {
        Size::Memory(memory) => code.memory_size(memory).i64_extend_i32_u().i64_const(16).i64_shl(),
        Size::Bytes(bytes) => code.i64_const(bytes.into()),
    };
    code.i64_gt_u();
}

fn advance(code: &mut InstructionSink<'_>, address: u32) {
    code.local_get(address).i32_const(SLICE_CONST).i32_add().local_set(address);
}

fn shorten(code: &mut InstructionSink<'_>) {
    code.local_get(LENGTH).i32_const(SLICE_CONST).i32_sub().local_set(LENGTH);
}
