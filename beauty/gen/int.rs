//! Integers with C's types, and the names that constant expressions may refer to.

/// An integer with its C type. The value is always within the range of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    pub value: i128,
    pub unsigned: bool,
    /// The type has 64 bits; otherwise it has 32.
    pub wide: bool,
}

impl Int {
    /// Creates an integer whose value wraps around at the bounds of its type.
    pub fn new(value: i128, unsigned: bool, wide: bool) -> Int {
        let value = match (unsigned, wide) {
            (true, true) => i128::from(value as u64),
            (true, false) => i128::from(value as u32),
            (false, true) => i128::from(value as i64),
            (false, false) => i128::from(value as i32),
        };
        Int { value, unsigned, wide }
    }

    pub fn signed(value: i64) -> Int {
        Int::new(i128::from(value), false, false)
    }
}

/// The names that an expression may refer to. An error text is the predicate of a sentence whose subject is the name of
/// the constant, for example "divides by 0".
pub trait Names {
    fn value(&self, name: &str) -> Result<Int, String>;
    /// Returns the parameters and the body of a function-like macro.
    fn function(&self, name: &str) -> Option<(Vec<String>, String)>;
    fn defined(&self, name: &str) -> bool;
    /// Returns the text of the definition of a macro without parameters.
    fn definition(&self, _: &str) -> Option<String> {
        None
    }
    /// Returns the size in bytes of a struct, or of a type that is not built into C.
    fn size(&self, type_name: &str) -> Option<u64>;
    /// Returns the size in bytes of a long and of a pointer.
    fn word(&self) -> u64;
}
