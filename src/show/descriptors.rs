//! Sets of descriptors, as options name them.

/// A set of numbers of descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptors {
    numbers: Vec<i32>,
    is_negated: bool,
}

impl Descriptors {
    /// Returns the empty set.
    pub fn none() -> Descriptors {
        Descriptors { numbers: Vec::new(), is_negated: false }
    }

    /// Returns the set of these numbers.
    pub fn of(numbers: Vec<i32>) -> Descriptors {
        Descriptors { numbers, is_negated: false }
    }

    /// Returns the set of all other numbers.
    pub fn negated(self) -> Descriptors {
        Descriptors { is_negated: !self.is_negated, ..self }
    }

    /// Returns whether the set has no number.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty() && !self.is_negated
    }

    /// Returns whether the set has a descriptor. Negative numbers are none, and are in no set.
    pub fn contains(&self, descriptor: i32) -> bool {
        descriptor >= 0 && self.numbers.contains(&descriptor) != self.is_negated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_numbers_or_all_others() {
        let some = Descriptors::of(vec![0, 3]);
        assert_eq!([-1, 0, 1, 3].map(|fd| some.contains(fd)), [false, true, false, true]);
        assert_eq!([-1, 0, 1, 3].map(|fd| some.clone().negated().contains(fd)), [false, false, true, false]);
        assert!(Descriptors::none().is_empty() && !Descriptors::none().negated().is_empty());
    }
}
