//! Excerpts of BTF: a blob with some structs and the types of their members.

use super::{Btf, HEADER_BYTES, MAGIC, MEMBER_BYTES, kind, word};
use rustc_hash::FxHashMap;

/// The greatest nesting of types. No kernel's struct is nested as deep.
const DEPTH_MAX: u32 = 32;

impl Btf<'_> {
    /// Returns a BTF blob with these structs and the types of their members only. All pointers in it are pointers to
    /// void.
    pub fn excerpt(&self, ids: impl Iterator<Item = u32>) -> Vec<u8> {
        let mut excerpt = Excerpt::new(self);
        for id in ids {
            excerpt.copy(id, 0);
        }
        excerpt.finish()
    }
}

/// A BTF blob that is being written, with copies of types under new IDs.
struct Excerpt<'b, 'a> {
    from: &'b Btf<'a>,
    types: Vec<u8>,
    strings: Vec<u8>,
    /// The new IDs by the old ones.
    ids: FxHashMap<u32, u32>,
    next: u32,
}

impl<'b, 'a> Excerpt<'b, 'a> {
    fn new(from: &'b Btf<'a>) -> Excerpt<'b, 'a> {
        let mut new = Excerpt { from, types: Vec::new(), strings: vec![0], ids: FxHashMap::default(), next: 1 };
        // All pointers become this one, a pointer to void.
        new.add(b"", u32::from(kind::PTR) << 24, 0, &[]);
        new
    }

    fn add(&mut self, name: &[u8], info: u32, word: u32, rest: &[u8]) -> u32 {
        let name = self.add_string(name);
        [name, info, word].iter().for_each(|word| self.types.extend(word.to_ne_bytes()));
        self.types.extend(rest);
        self.next += 1;
        self.next - 1
    }

    fn add_string(&mut self, text: &[u8]) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(text);
        self.strings.push(0);
        at
    }

    /// Copies a type and returns its new ID. It is 0 (void) for a type without values.
    fn copy(&mut self, id: u32, depth: u32) -> u32 {
        if let Some(copied) = self.ids.get(&id) {
            return *copied;
        }
        let Some(old) = self.from.get(id).filter(|_| depth < DEPTH_MAX) else { return 0 };
        let name = self.from.string(old.name);
        let new = match old.kind() {
            kind::PTR => 1,
            kind::INT | kind::FLOAT => self.add(name, old.info, old.word, old.rest),
            // The constants of enums are left out: CO-RE relocations of struct members do not need them.
            kind::ENUM | kind::ENUM64 => self.add(name, old.info & !0xffff, old.word, &[]),
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => self.copy(old.word, depth + 1),
            kind::ARRAY => {
                let [element, index] = [0, 4].map(|at| self.copy(word(old.rest, at), depth + 1));
                let rest: Vec<u8> = [element, index, word(old.rest, 8)].iter().flat_map(|word| word.to_ne_bytes()).collect();
                self.add(name, old.info, old.word, &rest)
            }
            kind::STRUCT | kind::UNION => {
                let mut members = Vec::with_capacity(old.rest.len());
                for member in old.rest.chunks_exact(MEMBER_BYTES) {
                    let (name, of) = (self.from.string(word(member, 0)), self.copy(word(member, 4), depth + 1));
                    let words = [self.add_string(name), of, word(member, 8)];
                    members.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
                }
                self.add(name, old.info, old.word, &members)
            }
            _ => 0,
        };
        self.ids.insert(id, new);
        new
    }

    fn finish(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.types.len() + self.strings.len());
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend([1, 0]);
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        [HEADER_BYTES as u32, 0, types, types, strings].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(self.types);
        bytes.extend(self.strings);
        bytes
    }
}
