//! Lines of zios that wait, from which a zio leaves in constant time, wherever it stands.
//!
//! When a client with very many waiting zios hangs up, each of its zios leaves a line. With a search for each
//! zio, all other clients of the shard would wait meanwhile.

use alloc::vec::Vec;

use crate::zio::ZioId;

/// The ends of a line. The zios between them are linked in [`Lines`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    first: u32,
    last: u32,
}

/// The zios of some lines, each with a value. A zio stands in at most one line.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    /// The zios, by id.
    places: Vec<Node<T>>,
    /// How many zios stand in the lines.
    count: u32,
    /// How many zios the lines have looked at.
    visits: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    ahead: u32,
    behind: u32,
    /// `None` if the zio stands in no line.
    value: Option<T>,
}

impl<T> Default for Lines<T> {
    fn default() -> Lines<T> {
        Lines {
            places: Vec::new(),
            count: 0,
            visits: 0,
        }
    }
}

impl Line {
    pub(crate) const EMPTY: Line = Line {
        first: NOBODY,
        last: NOBODY,
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.first == NOBODY
    }

    pub(crate) fn first(&self) -> Option<ZioId> {
        (!self.is_empty()).then_some(ZioId(self.first))
    }

    pub(crate) fn last(&self) -> Option<ZioId> {
        (!self.is_empty()).then_some(ZioId(self.last))
    }
}

impl<T: Copy> Lines<T> {
    /// How many zios stand in the lines.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// How many zios the lines have looked at in order to take out others, or to find their places.
    #[cfg(test)]
    pub(crate) fn visits(&self) -> u64 {
        self.visits
    }

    /// The value of a zio, if the zio stands in a line.
    pub(crate) fn get(&self, id: ZioId) -> Option<&T> {
        self.places.get(id.0 as usize)?.value.as_ref()
    }

    pub(crate) fn push_back(&mut self, line: &mut Line, id: ZioId, value: T) {
        self.insert(line, line.last, NOBODY, id, value);
    }

    pub(crate) fn push_front(&mut self, line: &mut Line, id: ZioId, value: T) {
        self.insert(line, NOBODY, line.first, id, value);
    }

    /// Inserts a zio behind the last zio that may stand `ahead` of it. Looks from the end of the line.
    pub(crate) fn insert_behind(
        &mut self,
        line: &mut Line,
        id: ZioId,
        value: T,
        ahead: impl Fn(&T) -> bool,
    ) {
        let (mut before, mut behind) = (line.last, NOBODY);
        while let Some(place) = self.places.get(before as usize)
            && !place.value.as_ref().is_some_and(&ahead)
        {
            (before, behind) = (place.ahead, before);
            self.visits += 1;
        }
        self.insert(line, before, behind, id, value);
    }

    pub(crate) fn pop_front(&mut self, line: &mut Line) -> Option<(ZioId, T)> {
        let first = line.first()?;
        let value = self.take(&mut [line], first)?;
        Some((first, value))
    }

    /// Takes a zio out of its line, which must be one of these. `None` if it stands in no line.
    pub(crate) fn take(&mut self, lines: &mut [&mut Line], id: ZioId) -> Option<T> {
        self.visits += 1;
        let place = self.places.get_mut(id.0 as usize)?;
        let value = place.value.take()?;
        self.count -= 1;
        let (ahead, behind) = (place.ahead, place.behind);
        if let Some(place) = self.places.get_mut(ahead as usize) {
            place.behind = behind;
        }
        if let Some(place) = self.places.get_mut(behind as usize) {
            place.ahead = ahead;
        }
        for line in lines {
            let (is_first, is_last) = (line.first == id.0, line.last == id.0);
            if is_first {
                line.first = behind;
            }
            if is_last {
                line.last = ahead;
            }
        }
        Some(value)
    }

    /// Moves a whole line behind another.
    pub(crate) fn append(&mut self, to: &mut Line, from: &mut Line) {
        let from = core::mem::replace(from, Line::EMPTY);
        let Some(place) = self.places.get_mut(from.first as usize) else {
            return;
        };
        place.ahead = to.last;
        match self.places.get_mut(to.last as usize) {
            Some(place) => place.behind = from.first,
            None => to.first = from.first,
        }
        to.last = from.last;
    }

    fn insert(&mut self, line: &mut Line, ahead: u32, behind: u32, id: ZioId, value: T) {
        let at = id.0 as usize;
        if self.places.len() <= at {
            self.places.resize_with(at + 1, || Node {
                ahead: NOBODY,
                behind: NOBODY,
                value: None,
            });
        }
        self.count += 1;
        self.places[at] = Node {
            ahead,
            behind,
            value: Some(value),
        };
        match self.places.get_mut(ahead as usize) {
            Some(place) => place.behind = id.0,
            None => line.first = id.0,
        }
        match self.places.get_mut(behind as usize) {
            Some(place) => place.ahead = id.0,
            None => line.last = id.0,
        }
    }
}

/// Stands for no zio. The number is larger than every id.
const NOBODY: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::{Line, Lines};
    use crate::random::Random;
    use crate::zio::ZioId;
    use alloc::vec::Vec;

    #[test]
    fn lines_agree_with_lists() {
        let mut random = Random::new(11);
        let (mut lines, mut ends) = (Lines::default(), [Line::EMPTY; 3]);
        let mut naive: [Vec<(ZioId, u64)>; 3] = Default::default();
        for value in 0..30_000 {
            let id = ZioId(random.below(40) as u32);
            let at = random.below(3) as usize;
            let is_in = naive.iter().flatten().any(|(other, _)| *other == id);
            match random.below(6) {
                0 if !is_in => {
                    lines.push_front(&mut ends[at], id, value);
                    naive[at].insert(0, (id, value));
                }
                1 | 2 if !is_in => {
                    lines.push_back(&mut ends[at], id, value);
                    naive[at].push((id, value));
                }
                3 if !is_in => {
                    let ahead = |other: &u64| other.is_multiple_of(5);
                    lines.insert_behind(&mut ends[at], id, value, ahead);
                    let before = naive[at].iter().rposition(|(_, other)| ahead(other));
                    naive[at].insert(before.map_or(0, |before| before + 1), (id, value));
                }
                4 => {
                    let first = (!naive[at].is_empty()).then(|| naive[at].remove(0));
                    assert_eq!(lines.pop_front(&mut ends[at]), first);
                }
                5 if value.is_multiple_of(50) => {
                    let [to, from, _] = &mut ends;
                    lines.append(to, from);
                    let [to, from, _] = &mut naive;
                    to.append(from);
                }
                _ => {
                    let mut taken = None;
                    for list in &mut naive {
                        if let Some(at) = list.iter().position(|(other, _)| *other == id) {
                            taken = Some(list.remove(at).1);
                        }
                    }
                    assert_eq!(lines.get(id).copied(), taken);
                    assert_eq!(lines.take(&mut ends.each_mut(), id), taken);
                }
            }
            assert_eq!(lines.count() as usize, naive.iter().flatten().count());
            for (line, list) in ends.iter().zip(&naive) {
                assert_eq!(line.first(), list.first().map(|(id, _)| *id));
                assert_eq!(line.last(), list.last().map(|(id, _)| *id));
            }
        }
        for (line, list) in ends.iter_mut().zip(&naive) {
            let rest: Vec<_> = core::iter::from_fn(|| lines.pop_front(line)).collect();
            assert_eq!(&rest, list);
        }
    }
}
