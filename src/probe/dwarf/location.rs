//! Location expressions, worked out with registers standing for themselves.

use super::debug::{Reader, Unit};
use super::die::Die;
use super::frame::{Frame, register};
use crate::probe::grammar::Fetch;
use crate::probe::value::{Base, Place};
use crate::stack::symbols::elf::Machine;
use gimli::{Dwarf, Expression, Operation, Reader as _};

/// What a location is worked out with.
pub struct Means<'a> {
    pub dwarf: &'a Dwarf<Reader>,
    pub unit: &'a Unit,
    pub machine: Machine,
    /// The function that the variable is in.
    pub function: Option<&'a Die<'a>>,
    pub pc: u64,
    /// Nothing of the function was executed yet, so registers hold what they held at its call.
    pub is_entry: bool,
    pub frame: Option<&'a Frame>,
    /// What reads the data at one of the file's own addresses.
    pub data: &'a dyn Fn(u64) -> anyhow::Result<Fetch>,
}

/// What is on the stack while an expression is worked out.
#[derive(Clone, Debug)]
enum Term {
    Number(i64),
    /// So far from a base.
    Sum {
        base: Base,
        offset: i64,
    },
}

/// Why a location has no place, as the end of a sentence.
pub type Reason = String;

/// More operations have no place in what can be said.
const OPERATIONS_MAX: usize = 64;
/// Expressions in expressions: the frame's, the value at entry.
const DEPTH_MAX: u32 = 4;

impl Means<'_> {
    /// Where the value is that an expression tells of.
    ///
    /// # Errors
    /// Why the kernel could not be told.
    pub fn place(&self, expression: Expression<Reader>) -> Result<Place, Reason> {
        self.worked_out(expression, 0)
    }

    fn worked_out(&self, expression: Expression<Reader>, depth: u32) -> Result<Place, Reason> {
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
            Some(Term::Sum { base, offset }) => Ok(Place::Memory { base, offset }),
            Some(Term::Number(_)) => Err("it is at an address of its own, which the kernel cannot be told".to_owned()),
            None => Err("it was optimized out".to_owned()),
        }
    }

    /// One operation; a place if it says what the value is and not where.
    fn operate(&self, operation: Operation<Reader>, stack: &mut Vec<Term>, depth: u32) -> Result<Option<Place>, Reason> {
        let term = match operation {
            Operation::Nop => return Ok(None),
            Operation::Register { register } => return Ok(Some(Place::Value(Fetch::Register(self.register(register)?)))),
            Operation::ImplicitValue { data } => return constant(&data).map(Some),
            Operation::StackValue => {
                return Ok(Some(match pop(stack)? {
                    Term::Number(number) => Place::Constant(number),
                    Term::Sum { base, offset } => Place::Address { base, offset },
                }));
            }
            Operation::RegisterOffset { register, offset, .. } => Term::Sum { base: Base::register(&self.register(register)?), offset },
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
                held(self.read(pop(stack)?)?)
            }
            Operation::EntryValue { expression } if self.is_entry => match self.worked_out(Expression(expression), depth + 1)? {
                Place::Value(fetch) => held(fetch),
                _ => return Err(computed()),
            },
            other => return Err(unsayable(&other)),
        };
        stack.push(term);
        Ok(None)
    }

    /// What is in memory there.
    fn read(&self, at: Term) -> Result<Fetch, Reason> {
        match at {
            Term::Number(_) => Err(computed()),
            Term::Sum { base: Base::Of { fetch, user }, offset } => Ok(Fetch::Memory { user, offset, of: Box::new(fetch) }),
            Term::Sum { base: Base::Image, offset } => {
                (self.data)(offset.cast_unsigned()).map_err(|error| format!("it is found through data of the file: {error}"))
            }
        }
    }

    fn register(&self, number: gimli::Register) -> Result<String, Reason> {
        register(self.machine, number).ok_or_else(|| match self.machine {
            Machine::X86_64 if (17..33).contains(&number.0) => {
                "it is in a floating-point register, which the kernel does not read".to_owned()
            }
            _ => format!("it is in register {} (DWARF's number), which the kernel does not keep", number.0),
        })
    }

    fn frame(&self) -> Result<Term, Reason> {
        let frame = self.frame.ok_or("the function's frame is not known here, for no unwind table tells of it")?;
        Ok(Term::Sum { base: frame.base.clone(), offset: frame.offset })
    }

    /// What variables on the stack are counted from.
    fn frame_base(&self, depth: u32) -> Result<Term, Reason> {
        let function = self.function.ok_or("it is in no function's frame")?;
        let base =
            function.value(gimli::constants::DW_AT_frame_base).ok_or("the debug information does not say where the function's frame is")?;
        let expression = self.valid(base)?.ok_or("the debug information does not say where the function's frame is at this place")?;
        match self.worked_out(expression, depth + 1)? {
            Place::Value(fetch) => Ok(held(fetch)),
            Place::Memory { base, offset } | Place::Address { base, offset } => Ok(Term::Sum { base, offset }),
            Place::Constant(_) => Err(computed()),
        }
    }

    /// The expression that is valid here: the only one, or the list's; `None` if the list has none for this address.
    pub fn valid(&self, value: super::debug::Value) -> Result<Option<Expression<Reader>>, Reason> {
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

/// Why an operation leads to no place.
fn unsayable(operation: &Operation<Reader>) -> Reason {
    match operation {
        Operation::EntryValue { .. } => "only what it was at the function's entry is known here; probe the function itself".to_owned(),
        Operation::ParameterRef { .. } => "only its caller has it".to_owned(),
        Operation::Piece { .. } => in_parts(),
        Operation::TLS => "it is thread-local".to_owned(),
        Operation::ImplicitPointer { .. } => "what it points to was optimized out".to_owned(),
        _ => computed(),
    }
}

/// An address that the file states.
fn in_image(address: u64) -> Term {
    Term::Sum { base: Base::Image, offset: address.cast_signed() }
}

/// What a register or memory holds.
fn held(fetch: Fetch) -> Term {
    Term::Sum { base: Base::Of { fetch, user: false }, offset: 0 }
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

/// As the machine has it in memory, least byte first.
fn constant(data: &Reader) -> Result<Place, Reason> {
    let bytes = data.to_slice().map_err(|_| damaged())?;
    let mut word = [0; 8];
    word.get_mut(..bytes.len()).ok_or("it is a constant of more than eight bytes")?.copy_from_slice(&bytes);
    Ok(Place::Constant(i64::from_le_bytes(word)))
}

fn in_parts() -> Reason {
    "it is in several parts here".to_owned()
}

fn damaged() -> Reason {
    "its location is damaged".to_owned()
}

fn computed() -> Reason {
    "its value is computed in a way that fetch arguments cannot say".to_owned()
}
