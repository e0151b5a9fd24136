//! Call paths and what they weigh, as a tree: a task's name at the root, its frames from the outermost in, the syscall last.

use rustc_hash::FxHashMap;

/// No tree has more places; what would need more weighs on the place above.
const PLACES_MAX: usize = 4 << 20;

/// All paths that were added.
#[derive(Debug)]
pub struct Tree {
    /// A place stands behind the one above it. The first is the root, which has no name.
    places: Vec<Place>,
    below: FxHashMap<(PlaceId, NameId), PlaceId>,
    names: Vec<Box<[u8]>>,
    ids: FxHashMap<Box<[u8]>, NameId>,
}

/// A place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NameId(u32);

#[derive(Debug)]
struct Place {
    above: PlaceId,
    name: NameId,
    kind: Kind,
    /// Of paths that end here.
    own: u64,
}

/// What a place stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Task,
    User,
    Kernel,
    Syscall,
}

/// A place as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn<'a> {
    pub name: &'a [u8],
    pub kind: Kind,
    /// How many places stand above it.
    pub depth: u32,
    /// What weighs to the left of it, and what it weighs with all below.
    pub left: u64,
    pub weight: u64,
}

impl Tree {
    pub const ROOT: PlaceId = PlaceId(0);

    pub fn new() -> Tree {
        let root = Place { above: Tree::ROOT, name: NameId(0), kind: Kind::Task, own: 0 };
        Tree { places: vec![root], below: FxHashMap::default(), names: vec![Box::default()], ids: FxHashMap::default() }
    }

    /// The place of this name below another.
    pub fn below(&mut self, above: PlaceId, name: &[u8], kind: Kind) -> PlaceId {
        let name = self.name(name);
        if let Some(place) = self.below.get(&(above, name)) {
            return *place;
        }
        if self.places.len() == PLACES_MAX {
            return above;
        }
        let place = PlaceId(self.places.len() as u32);
        self.places.push(Place { above, name, kind, own: 0 });
        self.below.insert((above, name), place);
        place
    }

    /// A path ended here.
    pub fn add(&mut self, place: PlaceId, weight: u64) {
        let own = &mut self.places[place.0 as usize].own;
        *own = own.saturating_add(weight);
    }

    fn name(&mut self, name: &[u8]) -> NameId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = NameId(self.names.len() as u32);
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        id
    }

    /// What each place weighs with all below it.
    fn weights(&self) -> Vec<u64> {
        let mut weights: Vec<u64> = self.places.iter().map(|place| place.own).collect();
        for (at, place) in self.places.iter().enumerate().skip(1).rev() {
            weights[place.above.0 as usize] = weights[place.above.0 as usize].saturating_add(weights[at]);
        }
        weights
    }

    /// The paths that end somewhere, each from the root on, with their own weight.
    pub fn paths(&self) -> impl Iterator<Item = (Vec<&[u8]>, u64)> {
        let ends = self.places.iter().enumerate().skip(1).filter(|(_, place)| place.own > 0);
        ends.map(|(at, place)| {
            let mut names = Vec::new();
            let mut here = PlaceId(at as u32);
            while here != Tree::ROOT {
                let place = &self.places[here.0 as usize];
                names.push(&*self.names[place.name.0 as usize]);
                here = place.above;
            }
            names.reverse();
            (names, place.own)
        })
    }

    /// Every place that weighs something, the root first, those beside each other in the order of their names.
    pub fn drawn(&self) -> Vec<Drawn<'_>> {
        let weights = self.weights();
        let mut below: Vec<Vec<PlaceId>> = vec![Vec::new(); self.places.len()];
        for (at, place) in self.places.iter().enumerate().skip(1).filter(|(at, _)| weights[*at] > 0) {
            below[place.above.0 as usize].push(PlaceId(at as u32));
        }
        for places in &mut below {
            places.sort_unstable_by_key(|id| &self.names[self.places[id.0 as usize].name.0 as usize]);
        }
        let mut drawn = Vec::new();
        let mut open = vec![(Tree::ROOT, 0, 0)];
        while let Some((id, depth, left)) = open.pop() {
            let (at, place) = (id.0 as usize, &self.places[id.0 as usize]);
            drawn.push(Drawn { name: &self.names[place.name.0 as usize], kind: place.kind, depth, left, weight: weights[at] });
            let mut next = left;
            let first = open.len();
            for child in &below[at] {
                open.push((*child, depth + 1, next));
                next += weights[child.0 as usize];
            }
            open[first..].reverse();
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(tree: &mut Tree, path: &str, weight: u64) {
        let mut place = Tree::ROOT;
        for name in path.split(';') {
            place = tree.below(place, name.as_bytes(), Kind::User);
        }
        tree.add(place, weight);
    }

    fn tree() -> Tree {
        let mut tree = Tree::new();
        for (path, weight) in [("sh;main;b;read", 3), ("sh;main;a;write", 4), ("sh;main;b;read", 5), ("sh;main", 1), ("cat", 2)] {
            add(&mut tree, path, weight);
        }
        tree
    }

    #[test]
    fn equal_paths_are_one() {
        let tree = tree();
        let mut paths: Vec<(String, u64)> = tree
            .paths()
            .map(|(names, weight)| (names.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(";"), weight))
            .collect();
        paths.sort();
        let wanted = [("cat", 2), ("sh;main", 1), ("sh;main;a;write", 4), ("sh;main;b;read", 8)];
        assert_eq!(paths, wanted.map(|(path, weight)| (path.to_owned(), weight)));
    }

    #[test]
    fn a_place_is_as_wide_as_all_below_it() {
        let tree = tree();
        let drawn: Vec<(String, u32, u64, u64)> =
            tree.drawn().iter().map(|d| (String::from_utf8_lossy(d.name).into_owned(), d.depth, d.left, d.weight)).collect();
        let wanted = [
            ("", 0, 0, 15),
            ("cat", 1, 0, 2),
            ("sh", 1, 2, 13),
            ("main", 2, 2, 13),
            ("a", 3, 2, 4),
            ("write", 4, 2, 4),
            ("b", 3, 6, 8),
            ("read", 4, 6, 8),
        ];
        assert_eq!(drawn, wanted.map(|(name, depth, left, weight)| (name.to_owned(), depth, left, weight)));
    }
}
