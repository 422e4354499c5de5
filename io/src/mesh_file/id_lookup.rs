//! From the numbers of a file (any, with gaps, in any order) to indices 0, 1, 2, ...
//!
//! Invariant: memory is bounded by the count of numbers, not by their size.

/// Finds the index of a number. Of a repeated number the first index counts.
#[derive(Debug)]
pub(crate) enum IdLookup {
    /// Index of `first + k` at `k`, `NONE` where there is none.
    Dense { first: u64, index: Vec<u32> },
    /// Sorted by number.
    Sparse(Vec<(u64, u32)>),
}

const NONE: u32 = u32::MAX;

impl IdLookup {
    /// Takes the numbers of indices 0, 1, ... (fewer than `u32::MAX`). Returns with the lookup the pairs of indices
    /// that bear the same number: (first, later one).
    pub(crate) fn new(ids: &[u64]) -> (Self, Vec<(u32, u32)>) {
        debug_assert!(ids.len() < NONE as usize);
        let (Some(&first), Some(&last)) = (ids.iter().min(), ids.iter().max()) else {
            return (IdLookup::Sparse(Vec::new()), Vec::new());
        };
        let span = last - first;
        if span < 4 * ids.len() as u64 + 1024 {
            Self::dense(ids, first, span as usize + 1)
        } else {
            Self::sparse(ids)
        }
    }

    fn dense(ids: &[u64], first: u64, span: usize) -> (Self, Vec<(u32, u32)>) {
        let mut index = vec![NONE; span];
        let mut repeated = Vec::new();
        for (k, &id) in ids.iter().enumerate() {
            let slot = &mut index[(id - first) as usize];
            if *slot == NONE {
                *slot = k as u32;
            } else {
                repeated.push((*slot, k as u32));
            }
        }
        (IdLookup::Dense { first, index }, repeated)
    }

    fn sparse(ids: &[u64]) -> (Self, Vec<(u32, u32)>) {
        let mut pairs: Vec<(u64, u32)> = ids.iter().copied().zip(0..).collect();
        pairs.sort_unstable();
        let mut repeated = Vec::new();
        pairs.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                repeated.push((kept.1, later.1));
            }
            same
        });
        repeated.sort_unstable_by_key(|&(_, later)| later);
        (IdLookup::Sparse(pairs), repeated)
    }

    /// Index of a number.
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        match self {
            IdLookup::Dense { first, index } => {
                let k = usize::try_from(id.checked_sub(*first)?).ok()?;
                index.get(k).copied().filter(|&i| i != NONE)
            }
            IdLookup::Sparse(pairs) => {
                let k = pairs.binary_search_by_key(&id, |&(id, _)| id).ok()?;
                Some(pairs[k].1)
            }
        }
    }

    /// Calls `found` with the index of each number of `start, start + step, ...` up to `end`. The work is bounded by
    /// the count of numbers held, however long the range is.
    pub(crate) fn for_range(
        &self,
        (start, end, step): (u64, u64, u64),
        mut found: impl FnMut(u32),
    ) {
        let mut visit = |id: u64, index: u32| {
            if id >= start && id <= end && (id - start).is_multiple_of(step) && index != NONE {
                found(index);
            }
        };
        match self {
            IdLookup::Dense { first, index } => {
                let from = start.saturating_sub(*first).min(index.len() as u64) as usize;
                let to = (end.saturating_add(1))
                    .saturating_sub(*first)
                    .min(index.len() as u64) as usize;
                for k in from..to.max(from) {
                    visit(first + k as u64, index[k]);
                }
            }
            IdLookup::Sparse(pairs) => {
                let from = pairs.partition_point(|&(id, _)| id < start);
                for &(id, index) in pairs[from..].iter().take_while(|&&(id, _)| id <= end) {
                    visit(id, index);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::IdLookup;

    #[test]
    fn finds_numbers_with_gaps_in_any_order() {
        let tidy: Vec<u64> = vec![7, 3, 4, 9];
        let wild: Vec<u64> = vec![1 << 60, 5, u64::MAX, 0];
        for ids in [tidy, wild] {
            let (lookup, repeated) = IdLookup::new(&ids);
            assert!(repeated.is_empty());
            for (k, &id) in ids.iter().enumerate() {
                assert_eq!(lookup.get(id), Some(k as u32));
            }
            assert_eq!(lookup.get(1), None);
            assert_eq!(lookup.get(1 << 61), None);
        }
    }

    #[test]
    fn reports_repeated_numbers_in_the_order_of_the_file() {
        for far in [0, 1 << 40] {
            let ids = [far + 9, 2, far + 9, 3, 2];
            let (lookup, repeated) = IdLookup::new(&ids);
            assert_eq!(repeated, [(0, 2), (1, 4)]);
            assert_eq!(lookup.get(2), Some(1));
        }
    }

    #[test]
    fn ranges_of_any_length_visit_only_what_exists() {
        for ids in [[2, 4, 6, 7], [2, 4, 6, 1 << 50]] {
            let (lookup, _) = IdLookup::new(&ids);
            let visited = |range| {
                let mut indices = Vec::new();
                lookup.for_range(range, |index| indices.push(index));
                indices
            };
            assert_eq!(visited((1, 6, 1)), [0, 1, 2]);
            assert_eq!(visited((2, u64::MAX, 4)), [0, 2]);
            assert_eq!(visited((100, 90, 1)), Vec::<u32>::new());
        }
        let (lookup, _) = IdLookup::new(&[]);
        lookup.for_range((0, u64::MAX, 1), |_| panic!("there is nothing"));
    }
}
