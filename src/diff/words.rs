//! Texts as numbers: an outline has the same names and paths many times.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A text of [`Words`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(u32);

impl Word {
    /// The empty text.
    pub const EMPTY: Word = Word(0);
}

/// The texts of both recordings. Equal texts have equal numbers.
#[derive(Debug)]
pub struct Words {
    numbers: FxHashMap<Arc<[u8]>, u32>,
    texts: Vec<Arc<[u8]>>,
}

impl Default for Words {
    fn default() -> Words {
        let mut words = Words { numbers: FxHashMap::default(), texts: Vec::new() };
        words.add(b"");
        words
    }
}

impl Words {
    /// Returns the number of a text, which is stored if it is new.
    pub fn add(&mut self, text: &[u8]) -> Word {
        if let Some(number) = self.numbers.get(text) {
            return Word(*number);
        }
        let (number, text): (u32, Arc<[u8]>) = (self.texts.len() as u32, text.into());
        self.numbers.insert(Arc::clone(&text), number);
        self.texts.push(text);
        Word(number)
    }

    /// Returns the text of a number.
    pub fn text(&self, word: Word) -> &[u8] {
        self.texts.get(word.0 as usize).map(|text| &text[..]).unwrap_or_default()
    }
}

/// Returns each word once, in the order of their first places.
pub fn distinct(words: impl Iterator<Item = Word>) -> Vec<Word> {
    let mut seen = FxHashSet::default();
    words.filter(|word| seen.insert(*word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_equal_numbers() {
        let mut words = Words::default();
        let (one, two) = (words.add(b"one"), words.add(b"two"));
        assert_eq!((words.add(b"one"), words.add(b"")), (one, Word::EMPTY));
        assert_ne!(one, two);
        assert_eq!((words.text(one), words.text(two), words.text(Word::EMPTY)), (&b"one"[..], &b"two"[..], &b""[..]));
    }
}
