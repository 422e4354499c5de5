//! Recursive coordinate bisection: cut across the longest extent, in proportion to the weights, until one part is left.
//!
//! M. J. Berger and S. H. Bokhari, A partitioning strategy for nonuniform problems on multiprocessors, IEEE Trans.
//! Comput. C-36 (1987) 570-580.
//!
//! Invariant: total order of the cells at each cut (coordinates, then index), so the result is deterministic.

use super::Problem;
use crate::Mesh;

/// Part of each cell. Parts without weight stay empty; the others get at least one cell if there are enough cells.
pub(super) fn bisect(problem: &Problem<'_>) -> Vec<u32> {
    let n_cells = problem.mesh.n_cells();
    let mut cells: Vec<(Point, u32)> = grid_centroids(problem.mesh).into_iter().zip(0..).collect();
    let mut parts = vec![0; n_cells];
    let filled = problem.filled_parts();
    // Ranges of cells still to be divided among ranges of filled parts.
    let mut todo = vec![(0..n_cells, 0..filled.len())];
    while let Some((range, among)) = todo.pop() {
        if among.len() == 1 {
            for &(_, cell) in &cells[range] {
                parts[cell as usize] = filled[among.start];
            }
            continue;
        }
        let middle = among.start + among.len() / 2;
        let share = |parts: &[u32]| {
            parts
                .iter()
                .map(|&p| problem.shares[p as usize])
                .sum::<f64>()
        };
        let (low, high) = (
            share(&filled[among.start..middle]),
            share(&filled[middle..among.end]),
        );
        sort_along_longest(&mut cells[range.clone()]);
        let n_low = split(&cells[range.clone()], &problem.work, low / (low + high));
        let n_low = if range.len() >= among.len() {
            n_low.clamp(middle - among.start, range.len() - (among.end - middle))
        } else {
            n_low
        };
        let cut = range.start + n_low;
        todo.push((range.start..cut, among.start..middle));
        todo.push((cut..range.end, middle..among.end));
    }
    parts
}

/// A place on a grid over the mesh.
type Point = [u32; 3];

/// Centroids of the cells on a grid of 2^20 steps along the longest extent: cells of one layer of a regular mesh get
/// the same coordinate in spite of rounding.
fn grid_centroids(mesh: &Mesh) -> Vec<Point> {
    let centroid = |cell: usize| {
        let nodes = mesh.cells.nodes_of(cell);
        let mut sum = [0.0; 3];
        for &node in nodes {
            for (sum, x) in sum.iter_mut().zip(mesh.coords[node as usize]) {
                *sum += x;
            }
        }
        sum.map(|x| x / nodes.len() as f64)
    };
    let centroids: Vec<[f64; 3]> = (0..mesh.n_cells()).map(centroid).collect();
    let mut lo = [f64::INFINITY; 3];
    let mut extent = 0.0f64;
    for x in &centroids {
        lo = [0, 1, 2].map(|d| lo[d].min(x[d]));
    }
    for x in &centroids {
        extent = (0..3).fold(extent, |e, d| e.max(x[d] - lo[d]));
    }
    let scale = if extent > 0.0 {
        f64::from(1 << 20) / extent
    } else {
        0.0
    };
    centroids
        .iter()
        .map(|x| [0, 1, 2].map(|d| ((x[d] - lo[d]) * scale).round() as u32))
        .collect()
}

/// Sorts by the coordinate of longest extent, then by the others in order of extent.
fn sort_along_longest(cells: &mut [(Point, u32)]) {
    let mut extents = [(0, 0), (0, 1), (0, 2)];
    for (extent, d) in &mut extents {
        let lo = cells.iter().map(|(x, _)| x[*d]).min().unwrap_or(0);
        let hi = cells.iter().map(|(x, _)| x[*d]).max().unwrap_or(0);
        *extent = hi - lo;
    }
    extents.sort_by_key(|&(extent, _)| std::cmp::Reverse(extent));
    let [a, b, c] = extents.map(|(_, d)| d);
    cells.sort_unstable_by_key(|&(x, cell)| (x[a], x[b], x[c], cell));
}

/// How many of the first cells come closest to `fraction` of the work of all.
fn split(cells: &[(Point, u32)], work: &[u32], fraction: f64) -> usize {
    let work_of = |&(_, cell): &(Point, u32)| u64::from(work[cell as usize]);
    let target = cells.iter().map(work_of).sum::<u64>() as f64 * fraction;
    let mut done = 0;
    for (n, cell) in cells.iter().enumerate() {
        let next = done + work_of(cell);
        if next as f64 - target > target - done as f64 {
            return n;
        }
        done = next;
    }
    cells.len()
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_split_comes_closest_to_its_share() {
        let cells: Vec<([u32; 3], u32)> = (0..5).map(|c| ([c, 0, 0], c)).collect();
        assert_eq!(split(&cells, &[1; 5], 0.5), 3);
        assert_eq!(split(&cells, &[1; 5], 0.2), 1);
        assert_eq!(split(&cells, &[9, 1, 1, 1, 1], 0.5), 1);
        assert_eq!(split(&cells, &[1, 1, 1, 1, 9], 0.5), 4);
        assert_eq!(split(&cells, &[1; 5], 0.0), 0);
        assert_eq!(split(&cells, &[1; 5], 1.0), 5);
    }
}
