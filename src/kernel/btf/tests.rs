use super::shape::{Shape, Shaped};
use super::*;
use proptest::prelude::*;

impl<'a> Btf<'a> {
    /// Returns the names of a struct's members and their offsets in bits.
    fn members(&self, id: u32) -> Vec<(&'a [u8], u32)> {
        self.get(id).into_iter().flat_map(|of| of.members()).map(|member| (self.string(member.name), member.offset)).collect()
    }
}

/// Returns a blob with all kinds of types that an excerpt copies, with IDs from 1 on.
fn sample() -> Vec<u8> {
    let mut strings = b"\0".to_vec();
    let mut types = Vec::new();
    let mut add = |name: &str, info: u32, word: u32, rest: &[u32]| {
        let at = if name.is_empty() { 0 } else { strings.len() };
        strings.extend(name.as_bytes());
        strings.push(0);
        [&[at as u32, info, word], rest].concat().iter().for_each(|word| types.extend(word.to_ne_bytes()));
        at as u32
    };
    let int = 1 << 24;
    add("int", int, 4, &[32]);
    add("", 2 << 24, 6, &[]);
    add("", 3 << 24, 0, &[1, 1, 3]);
    let names: Vec<u32> = ["first", "second", "third"].map(|name| add(name, 7 << 24, 0, &[])).to_vec();
    // 7: an unnamed union of an int and an array; 8: a typedef of it; 9: the requested struct; 10: one that is not
    // requested.
    add("", 5 << 24 | 2, 12, &[names[0], 1, 0, names[1], 3, 0]);
    add("both_t", 8 << 24, 7, &[]);
    add("wanted", 4 << 24 | 3, 24, &[0, 8, 0, names[2], 2, 128, names[0], 11, 96]);
    add("other", 4 << 24 | 1, 8, &[names[0], 9, 0]);
    add("choice", 6 << 24 | 1, 4, &[names[0], 5]);
    let mut bytes = [&MAGIC.to_ne_bytes()[..], &[1, 0]].concat();
    let words = [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32];
    words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
    [bytes, types, strings].concat()
}

fn named(bytes: &[u8], name: &str) -> Vec<u32> {
    Btf::parse(bytes).unwrap().named(LookupKind::Struct, &FxHashSet::from_iter([name])).into_iter().map(|(_, id)| id).collect()
}

#[test]
fn an_excerpt_has_the_requested_structs_and_the_types_of_their_members() {
    let all = sample();
    assert_eq!(named(&all, "wanted"), [9]);
    let excerpt = Btf::parse(&all).unwrap().excerpt([9].into_iter());
    let (id, btf) = (named(&excerpt, "wanted")[0], Btf::parse(&excerpt).unwrap());
    assert_eq!(btf.members(id), [(&b""[..], 0), (b"third", 128), (b"first", 96)]);
    assert!(named(&excerpt, "other").is_empty());
    let kinds: Vec<u8> = (1..btf.starts.len() as u32).map(|id| btf.get(id).unwrap().kind()).collect();
    assert_eq!(kinds, [kind::PTR, kind::INT, kind::ARRAY, kind::UNION, kind::ENUM, kind::STRUCT], "each once, no typedef, one pointer");
}

#[test]
fn the_shapes_of_all_kinds_of_types_are_read() {
    let all = sample();
    let btf = Btf::parse(&all).unwrap();
    let number = Shape::Number { name: "int".to_owned(), bytes: 4, signed: false };
    assert_eq!(btf.shape(1), Shaped { alias: None, shape: number });
    assert_eq!(btf.shape(2).shape, Shape::Pointer(6));
    assert_eq!((btf.shape(3).shape, btf.size(3)), (Shape::Array { element: 1, count: 3 }, Some(12)));
    assert_eq!(btf.shape(8), Shaped { alias: Some("both_t".to_owned()), shape: Shape::Union { bytes: 12 } });
    let Shape::Struct { bytes: 24, members } = btf.shape(9).shape else { panic!("{:?}", btf.shape(9)) };
    let names: Vec<(&str, u32, Option<u32>)> = members.iter().map(|one| (one.name.as_str(), one.of, one.offset)).collect();
    assert_eq!(names, [("", 8, Some(0)), ("third", 2, Some(16)), ("first", 11, Some(12))]);
    let Shape::Enum { values, .. } = btf.shape(11).shape else { panic!("{:?}", btf.shape(11)) };
    assert_eq!(values, [(5, "first".to_owned())]);
    assert_eq!((btf.shape(99).shape, btf.size(6), btf.variable("wanted")), (Shape::Other, None, None));
}

#[test]
fn the_beginning_of_a_name_ends_at_its_nul() {
    assert_eq!(beginning(b"task_struct"), beginning(b"task\0"));
    assert_eq!(beginning(b"pid"), beginning(b"pid\0file\0"));
    assert_eq!(beginning(b"p"), beginning(b"p\0q\0"));
    assert_eq!(beginning(b""), beginning(b"\0pid\0"));
    assert_ne!(beginning(b"pid"), beginning(b"pids\0"));
}

#[test]
fn the_btf_of_this_kernel_is_read() {
    let Ok(all) = of_the_kernel() else {
        eprintln!("SKIPPED: this kernel has no BTF at {VMLINUX}; nothing was tested");
        return;
    };
    let id = named(&all, "task_struct")[0];
    let excerpt = Btf::parse(&all).unwrap().excerpt([id].into_iter());
    let members = |bytes: &[u8], id| -> Vec<(String, u32)> {
        let list = Btf::parse(bytes).unwrap().members(id);
        list.into_iter().map(|(name, at)| (String::from_utf8(name.to_vec()).unwrap(), at)).collect()
    };
    let before = members(&all, id);
    assert!(before.iter().any(|(name, _)| name == "comm"));
    assert_eq!(members(&excerpt, named(&excerpt, "task_struct")[0]), before);
    let btf = Btf::parse(&all).unwrap();
    let is_there = |kind, name| !btf.named(kind, &FxHashSet::from_iter([name])).is_empty();
    let functions = ["vfs_read", "vfs_rea", "task_struct"].map(|name| is_there(LookupKind::Function, name));
    assert_eq!(functions, [true, false, false]);
    assert!(is_there(LookupKind::Typedef, "btf_trace_sys_enter"));
    let values = (1..btf.starts.len() as u32).find_map(|id| match btf.shape(id).shape {
        Shape::Enum { name, signed, values, .. } if name == "perf_event_state" => Some((signed, values)),
        _ => None,
    });
    let (signed, values) = values.expect("it is part of perf");
    let off = values.iter().find(|(_, name)| name == "PERF_EVENT_STATE_OFF").map(|(value, _)| *value);
    // Encoders before pahole 1.24 do not mark signed enums.
    assert_eq!(off, Some(if signed { u64::MAX } else { u64::from(u32::MAX) }));
    assert!(excerpt.len() * 20 < all.len(), "{} of {} bytes", excerpt.len(), all.len());
}

proptest! {
    #[test]
    fn damaged_btf_causes_no_panic(at in 0usize..400, with in any::<u8>(), cut in 0usize..400) {
        let mut bytes = sample();
        let len = bytes.len();
        bytes[at % len] = with;
        bytes.truncate(len - cut % len);
        if let Ok(btf) = Btf::parse(&bytes) {
            let ids = 0..btf.starts.len() as u32 + 1;
            for id in ids.clone() {
                let _ = (btf.shape(id), btf.size(id), btf.parameters(id));
            }
            let _ = btf.variable("wanted");
            let excerpt = btf.excerpt(ids);
            prop_assert!(Btf::parse(&excerpt).is_ok());
        }
    }
}
