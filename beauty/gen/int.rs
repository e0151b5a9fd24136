//! What constant expressions are made of: integers with C's types, and names that stand for them.

/// An integer as C has it: its value, always within its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    pub value: i128,
    pub unsigned: bool,
    /// 64 bits instead of 32.
    pub wide: bool,
}

impl Int {
    /// Wraps the value to the type.
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

/// What an expression may refer to. Errors are the ends of sentences that begin with the constant's name.
pub trait Names {
    fn value(&self, name: &str) -> Result<Int, String>;
    /// Parameters and body of a function-like macro.
    fn function(&self, name: &str) -> Option<(Vec<String>, String)>;
    fn defined(&self, name: &str) -> bool;
    /// Bytes of a struct, or of a type that C itself does not have.
    fn size(&self, type_name: &str) -> Option<u64>;
    /// Bytes of a long and of a pointer.
    fn word(&self) -> u64;
}
