//! Memory of large arrays: zeroed, and on huge pages where the system offers them on request.
//!
//! A stream of reads that crosses a page border every 4 KiB gets a fifth less bandwidth than one that crosses it
//! every 2 MiB, and the first touch of an array costs 500 times fewer page faults.
//!
//! Invariant: a hint only; the contents of an array never depend on it.
#![allow(unsafe_code)]

use bytemuck::Pod;
use std::ops::Range;

/// Size of a huge page on x86-64 and on most others.
const HUGE_PAGE: usize = 2 << 20;

/// Size of a cache line, and alignment of the arrays in a [`Region`].
pub(super) const LINE: usize = 64;

/// Memory for several arrays that are read together, zeroed and not touched yet: on huge pages from its first byte on,
/// where an array alone begins and ends in the middle of one.
#[derive(Debug)]
pub(super) struct Region {
    bytes: Vec<u8>,
    /// Bytes in use.
    used: Range<usize>,
}

/// Place of an array in a [`Region`], bytes.
pub(super) type Place = Range<usize>;

impl Region {
    /// Memory for arrays of `sizes` bytes, with their places: each at the border of a cache line.
    pub(super) fn new<const N: usize>(sizes: [usize; N]) -> (Self, [Place; N]) {
        let mut end = 0;
        let places = sizes.map(|size| {
            let start = end;
            end = (start + size).next_multiple_of(LINE);
            start..start + size
        });
        (Self::of_size(end), places)
    }

    fn of_size(size: usize) -> Self {
        let alignment = if size < HUGE_PAGE { LINE } else { HUGE_PAGE };
        let bytes: Vec<u8> = zeros(size + alignment);
        let address = bytes.as_ptr().addr();
        let start = address.next_multiple_of(alignment) - address;
        Region {
            bytes,
            used: start..start + size,
        }
    }

    /// The array at a place that [`Region::new`] gave.
    pub(super) fn array<T: Pod>(&self, place: &Place) -> &[T] {
        bytemuck::cast_slice(&self.bytes[self.used.clone()][place.clone()])
    }

    /// All its bytes.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.used.clone()]
    }

    /// Bytes in use.
    pub(super) fn size(&self) -> usize {
        self.used.len()
    }
}

impl Clone for Region {
    fn clone(&self) -> Self {
        let mut copy = Region::of_size(self.size());
        copy.bytes_mut()
            .copy_from_slice(&self.bytes[self.used.clone()]);
        copy
    }
}

/// `n` zeros, not touched yet, on huge pages if the array is large and the system can.
pub fn zeros<T: bytemuck::Zeroable + Copy>(n: usize) -> Vec<T> {
    let mut values = vec![T::zeroed(); n];
    prefer_huge_pages(&mut values);
    values
}

/// An empty array with room for `n` values, not touched yet, on huge pages likewise.
pub fn with_capacity<T>(n: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(n);
    prefer_huge_pages(values.spare_capacity_mut());
    values
}

#[cfg(target_os = "linux")]
fn prefer_huge_pages<T>(values: &mut [T]) {
    let (start, size) = (values.as_mut_ptr().addr(), size_of_val(values));
    let aligned = start.next_multiple_of(HUGE_PAGE);
    let usable = (start + size).saturating_sub(aligned) / HUGE_PAGE * HUGE_PAGE;
    if usable > 0 {
        let first = values
            .as_mut_ptr()
            .cast::<u8>()
            .wrapping_add(aligned - start);
        // SAFETY: the range lies within the slice, which nobody else can use during this call; the advice leaves its
        // contents as they are. A refusal is no failure.
        unsafe { libc::madvise(first.cast(), usable, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages<T>(_: &mut [T]) {}

#[cfg(test)]
mod tests {
    use super::{LINE, Region, with_capacity, zeros};

    #[test]
    fn arrays_of_all_sizes_are_zero_and_can_be_written() {
        for n in [0, 1, 1000, (2 << 20) + 3, 1 << 20] {
            let mut values: Vec<u64> = zeros(n);
            assert!(values.len() == n && values.iter().all(|&v| v == 0));
            values
                .iter_mut()
                .enumerate()
                .for_each(|(i, v)| *v = i as u64);
            assert!(values.iter().enumerate().all(|(i, &v)| v == i as u64));
            let mut copy = with_capacity(n);
            assert!(copy.is_empty() && copy.capacity() >= n);
            copy.extend_from_slice(&values);
            assert_eq!(copy, values);
        }
    }

    #[test]
    fn arrays_of_a_region_are_aligned_and_apart() {
        for n in [0, 5, 1 << 20] {
            let (mut region, [a, b]) = Region::new([n * 8, n * 2]);
            let [wide, narrow] = region
                .bytes_mut()
                .get_disjoint_mut([a.clone(), b.clone()])
                .expect("apart");
            bytemuck::cast_slice_mut::<u8, f64>(wide).fill(1.5);
            bytemuck::cast_slice_mut::<u8, u16>(narrow).fill(7);
            for region in [region.clone(), region] {
                let (wide, narrow) = (region.array::<f64>(&a), region.array::<u16>(&b));
                assert!((wide.len(), narrow.len()) == (n, n) && region.size() >= 10 * n);
                assert!(wide.iter().all(|&v| v == 1.5) && narrow.iter().all(|&v| v == 7));
                assert!(n == 0 || wide.as_ptr().addr().is_multiple_of(LINE));
            }
        }
    }
}
