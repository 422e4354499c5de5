//! The block of bricks that each rank makes.
//!
//! Recursive bisection of bricks and ranks together: half the ranks get a share of the bricks in proportion to their
//! weights, cut across the longest axis, where the cut is smallest.
//!
//! Invariant: every rank finds the same blocks by itself; together they cover each brick once.

use crate::Result;
use crate::partition::check_weights;

/// Bricks `lo[d] .. hi[d]` along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) lo: [usize; 3],
    pub(super) hi: [usize; 3],
}

impl Block {
    pub(super) fn len(&self, axis: usize) -> usize {
        self.hi[axis] - self.lo[axis]
    }

    pub(super) fn is_empty(&self) -> bool {
        (0..3).any(|d| self.len(d) == 0)
    }

    pub(super) fn n_bricks(&self) -> usize {
        (0..3).map(|d| self.len(d)).product()
    }

    /// Every brick of the block, x fastest.
    pub(super) fn bricks(&self) -> impl Iterator<Item = [usize; 3]> {
        let Block { lo, hi } = *self;
        (lo[2]..hi[2]).flat_map(move |k| {
            (lo[1]..hi[1]).flat_map(move |j| (lo[0]..hi[0]).map(move |i| [i, j, k]))
        })
    }

    /// Two blocks, the first with `n` layers across `axis`.
    fn split(self, axis: usize, n: usize) -> (Block, Block) {
        let (mut first, mut second) = (self, self);
        first.hi[axis] = self.lo[axis] + n;
        second.lo[axis] = first.hi[axis];
        (first, second)
    }
}

/// The block of rank `rank`. `weights` (equal if `None`) has one entry per rank.
pub(super) fn block_of_rank(
    n_bricks: [usize; 3],
    rank: usize,
    n_ranks: usize,
    weights: Option<&[f64]>,
) -> Result<Block> {
    let weights = match weights {
        Some(weights) => weights.to_vec(),
        None => vec![1.0; n_ranks],
    };
    check_weights(&weights, n_ranks)?;
    let mut block = Block {
        lo: [0; 3],
        hi: n_bricks,
    };
    let mut ranks = 0..n_ranks;
    while ranks.len() > 1 {
        let middle = ranks.start + ranks.len() / 2;
        let (low, high) = (&weights[ranks.start..middle], &weights[middle..ranks.end]);
        // The last of the longest axes: its layers are contiguous in the node numbering.
        let axis = (0..3).max_by_key(|&d| block.len(d)).unwrap_or(2);
        let (low_block, high_block) = block.split(axis, layers_below(block.len(axis), low, high));
        (block, ranks) = if rank < middle {
            (low_block, ranks.start..middle)
        } else {
            (high_block, middle..ranks.end)
        };
    }
    Ok(block)
}

/// How many of `n` layers go to the ranks with weights `low`: their share, but no side that has weight goes without
/// as long as there are two layers.
fn layers_below(n: usize, low: &[f64], high: &[f64]) -> usize {
    let (low, high): (f64, f64) = (low.iter().sum(), high.iter().sum());
    if low + high == 0.0 {
        return n; // nothing is left to share here
    }
    let share = (n as f64 * low / (low + high)).round() as usize;
    let at_least = usize::from(n > 1 && low > 0.0);
    let at_most = n - usize::from(n > 1 && high > 0.0);
    share.clamp(at_least, at_most)
}

#[cfg(test)]
mod tests {
    use super::{Block, block_of_rank};
    use proptest::prelude::{Strategy, prop, proptest};

    fn blocks(n_bricks: [usize; 3], weights: &[f64]) -> Vec<Block> {
        let of = |rank| block_of_rank(n_bricks, rank, weights.len(), Some(weights)).unwrap();
        (0..weights.len()).map(of).collect()
    }

    proptest! {
        #[test]
        fn blocks_cover_each_brick_once(
            n_bricks in prop::array::uniform3(1usize..8),
            weights in prop::collection::vec(0.0f64..3.0, 1..12).prop_filter("all zero", |w| w.iter().sum::<f64>() > 0.0),
        ) {
            let mut covered = vec![0; n_bricks.iter().product()];
            for block in blocks(n_bricks, &weights) {
                for [i, j, k] in block.bricks() {
                    covered[i + n_bricks[0] * (j + n_bricks[1] * k)] += 1;
                }
            }
            assert!(covered.iter().all(|&n| n == 1));
        }
    }

    #[test]
    fn sizes_follow_weights() {
        let sizes: Vec<usize> = blocks([40, 10, 10], &[1.0, 2.0, 0.0, 5.0])
            .iter()
            .map(Block::n_bricks)
            .collect();
        assert_eq!(sizes.iter().sum::<usize>(), 4000);
        assert_eq!(sizes[2], 0);
        for (size, share) in sizes.iter().zip([500.0, 1000.0, 0.0, 2500.0]) {
            assert!((*size as f64 - share).abs() <= 0.05 * 4000.0);
        }
        let cube = blocks([64; 3], &[1.0; 8]);
        assert!(cube.iter().all(|b| (0..3).all(|d| b.len(d) == 32)));
    }

    #[test]
    fn no_rank_goes_without_while_there_is_enough() {
        assert!(
            blocks([2, 2, 1], &[1.0; 4])
                .iter()
                .all(|b| b.n_bricks() == 1)
        );
        assert!(
            blocks([5, 1, 1], &[1.0; 5])
                .iter()
                .all(|b| b.n_bricks() == 1)
        );
        let n_filled = blocks([1, 1, 2], &[1.0; 7])
            .iter()
            .filter(|b| !b.is_empty())
            .count();
        assert_eq!(n_filled, 2);
    }
}
