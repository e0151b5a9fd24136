//! Translates DWARF location expressions into locations for fetch arguments. Registers stay symbolic.

use super::debug::{Reader, Unit};
use super::die::Die;
use super::frame::{Frame, register};
use crate::probe::grammar::Fetch;
use crate::probe::value::{LocationBase, ValueLocation};
use crate::stack::symbols::elf::Machine;
use gimli::{Dwarf, Expression, Operation, Reader as _};

/// The context in which a location expression is evaluated.
pub struct Evaluator<'a> {
    /// The sections of the file that contains the variable's entry.
    pub dwarf: &'a Dwarf<Reader>,
    /// The unit that contains the variable's entry.
    pub unit: &'a Unit,
    /// The architecture of the file, which decides what DWARF's numbers of registers mean.
    pub machine: Machine,
    /// The function that contains the variable.
    pub function: Option<&'a Die<'a>>,
    /// The probed address, as the file's headers and symbols state it.
    pub pc: u64,
    /// Whether `pc` is the function's entry, where the registers still have their values at the call.
    pub is_entry: bool,
    /// The CFA at `pc`; `None` if it is not known.
    pub frame: Option<&'a Frame>,
    /// Returns the fetch argument that reads the file's static data at an address.
    pub data: &'a dyn Fn(u64) -> anyhow::Result<Fetch>,
}

/// An entry of the expression's stack.
#[derive(Clone, Debug)]
enum Term {
    Number(i64),
    /// A base plus an offset.
    Sum {
        base: LocationBase,
        offset: i64,
    },
}

/// Why a location cannot be translated, as the end of a sentence.
pub type Reason = String;

/// Maximum number of operations; no translatable expression needs more.
const OPERATIONS_MAX: usize = 64;
/// Maximum depth of nested expressions (`DW_AT_frame_base`, `DW_OP_entry_value`).
const DEPTH_MAX: u32 = 4;

impl Evaluator<'_> {
    /// Returns the location of the value that an expression describes.
    ///
    /// # Errors
    /// Why fetch arguments cannot express the location.
    pub fn place(&self, expression: Expression<Reader>) -> Result<ValueLocation, Reason> {
        self.evaluate(expression, 0)
    }

    fn evaluate(&self, expression: Expression<Reader>, depth: u32) -> Result<ValueLocation, Reason> {
        if depth > DEPTH_MAX {
            return Err("its location refers to itself".to_owned());
        }
        let mut stack: Vec<Term> = Vec::new();
        let mut operations = expression.operations(self.unit.encoding());
        let mut place = None;
        for count in 0.. {
            let Some(operation) = operations.next().map_err(|_| damaged())? else { break };
            match place {
                _ if count > OPERATIONS_MAX => return Err(computed()),
                Some(_) if matches!(operation, Operation::Piece { .. }) => return Err(in_parts()),
                Some(_) => return Err(computed()),
                None => place = self.operate(operation, &mut stack, depth)?,
            }
        }
        if let Some(place) = place {
            return Ok(place);
        }
        match stack.pop() {
            Some(Term::Sum { base, offset }) => Ok(ValueLocation::Memory { base, offset }),
            Some(Term::Number(_)) => Err("it is at an absolute address, which a fetch argument cannot express".to_owned()),
            None => Err("it was optimized out".to_owned()),
        }
    }

    /// Evaluates one operation. Returns a location if the operation describes the value itself and not its address.
    fn operate(&self, operation: Operation<Reader>, stack: &mut Vec<Term>, depth: u32) -> Result<Option<ValueLocation>, Reason> {
        let term = match operation {
            Operation::Nop => return Ok(None),
            Operation::Register { register } => return Ok(Some(ValueLocation::Value(Fetch::Register(self.register(register)?)))),
            Operation::ImplicitValue { data } => return constant(&data).map(Some),
            Operation::StackValue => {
                return Ok(Some(match pop(stack)? {
                    Term::Number(number) => ValueLocation::Constant(number),
                    Term::Sum { base, offset } => ValueLocation::Address { base, offset },
                }));
            }
            Operation::RegisterOffset { register, offset, .. } => {
                Term::Sum { base: LocationBase::register(&self.register(register)?), offset }
            }
            Operation::FrameOffset { offset } => added(self.frame_base(depth)?, offset)?,
            Operation::CallFrameCFA => self.frame()?,
            Operation::UnsignedConstant { value } => Term::Number(value.cast_signed()),
            Operation::SignedConstant { value } => Term::Number(value),
            Operation::Address { address } => in_image(address),
            Operation::AddressIndex { index } => in_image(self.dwarf.address(self.unit, index).map_err(|_| damaged())?),
            Operation::PlusConstant { value } => added(pop(stack)?, value.cast_signed())?,
            Operation::Plus => match (pop(stack)?, pop(stack)?) {
                (Term::Number(number), term) | (term, Term::Number(number)) => added(term, number)?,
                _ => return Err(computed()),
            },
            Operation::Minus => match (pop(stack)?, pop(stack)?) {
                (Term::Number(number), term) => added(term, number.checked_neg().ok_or_else(computed)?)?,
                _ => return Err(computed()),
            },
            Operation::Deref { size, space: false, .. } if size == self.unit.encoding().address_size && size == 8 => {
                fetched_value(self.read(pop(stack)?)?)
            }
            Operation::EntryValue { expression } if self.is_entry => match self.evaluate(Expression(expression), depth + 1)? {
                ValueLocation::Value(fetch) => fetched_value(fetch),
                _ => return Err(computed()),
            },
            other => return Err(unsupported(&other)),
        };
        stack.push(term);
        Ok(None)
    }

    /// Returns the fetch argument for the memory at an address.
    fn read(&self, at: Term) -> Result<Fetch, Reason> {
        match at {
            Term::Number(_) => Err(computed()),
            Term::Sum { base: LocationBase::Of { fetch, user }, offset } => Ok(Fetch::Memory { user, offset, of: Box::new(fetch) }),
            Term::Sum { base: LocationBase::Image, offset } => {
                (self.data)(offset.cast_unsigned()).map_err(|error| format!("its address is in static data: {error}"))
            }
        }
    }

    fn register(&self, number: gimli::Register) -> Result<String, Reason> {
        register(self.machine, number).ok_or_else(|| match self.machine {
            Machine::X86_64 if (17..33).contains(&number.0) => {
                "it is in a floating-point register, which the kernel cannot fetch".to_owned()
            }
            _ => format!("it is in register {} (DWARF's number), which the kernel cannot fetch", number.0),
        })
    }

    fn frame(&self) -> Result<Term, Reason> {
        let frame = self.frame.ok_or("the function's frame is not known at this address, because no unwind table covers it")?;
        Ok(Term::Sum { base: frame.base.clone(), offset: frame.offset })
    }

    /// Returns the frame base, from which variables on the stack are counted.
    fn frame_base(&self, depth: u32) -> Result<Term, Reason> {
        let function = self.function.ok_or("it is counted from a frame, but is in no function")?;
        let base =
            function.value(gimli::constants::DW_AT_frame_base).ok_or("the debug information does not say where the function's frame is")?;
        let expression =
            self.expression_at(base)?.ok_or("the debug information does not say where the function's frame is at this address")?;
        match self.evaluate(expression, depth + 1)? {
            ValueLocation::Value(fetch) => Ok(fetched_value(fetch)),
            ValueLocation::Memory { base, offset } | ValueLocation::Address { base, offset } => Ok(Term::Sum { base, offset }),
            ValueLocation::Constant(_) => Err(computed()),
        }
    }

    /// Returns the expression that is valid at this address: the only one, or one from a location list; `None` if the
    /// list has none for this address.
    pub fn expression_at(&self, value: super::debug::Value) -> Result<Option<Expression<Reader>>, Reason> {
        if let Some(expression) = value.exprloc_value() {
            return Ok(Some(expression));
        }
        let Some(mut list) = self.dwarf.attr_locations(self.unit, value).map_err(|_| damaged())? else { return Err(damaged()) };
        while let Some(entry) = list.next().map_err(|_| damaged())? {
            if (entry.range.begin..entry.range.end).contains(&self.pc) {
                return Ok(Some(entry.data));
            }
        }
        Ok(None)
    }
}

/// Explains why an operation is not supported.
fn unsupported(operation: &Operation<Reader>) -> Reason {
    match operation {
        Operation::EntryValue { .. } => "only its value at the function's entry is known; probe the function itself".to_owned(),
        Operation::ParameterRef { .. } => "only the caller of the function has it".to_owned(),
        Operation::Piece { .. } => in_parts(),
        Operation::TLS => "it is thread-local".to_owned(),
        Operation::ImplicitPointer { .. } => "what it points to was optimized out".to_owned(),
        _ => computed(),
    }
}

/// Returns an address of the file's static data.
fn in_image(address: u64) -> Term {
    Term::Sum { base: LocationBase::Image, offset: address.cast_signed() }
}

/// Returns the value of a register or of memory.
fn fetched_value(fetch: Fetch) -> Term {
    Term::Sum { base: LocationBase::Of { fetch, user: false }, offset: 0 }
}

fn pop(stack: &mut Vec<Term>) -> Result<Term, Reason> {
    stack.pop().ok_or_else(damaged)
}

fn added(term: Term, number: i64) -> Result<Term, Reason> {
    match term {
        Term::Number(first) => first.checked_add(number).map(Term::Number),
        Term::Sum { base, offset } => offset.checked_add(number).map(|offset| Term::Sum { base, offset }),
    }
    .ok_or_else(computed)
}

/// Returns a constant that is stored in little-endian byte order.
fn constant(data: &Reader) -> Result<ValueLocation, Reason> {
    let bytes = data.to_slice().map_err(|_| damaged())?;
    let mut word = [0; 8];
    word.get_mut(..bytes.len()).ok_or("it is a constant of more than eight bytes")?.copy_from_slice(&bytes);
    Ok(ValueLocation::Constant(i64::from_le_bytes(word)))
}

fn in_parts() -> Reason {
    "it is split over several locations".to_owned()
}

fn damaged() -> Reason {
    "its location in the debug information is damaged".to_owned()
}

fn computed() -> Reason {
    "it is computed in a way that fetch arguments cannot express".to_owned()
}
