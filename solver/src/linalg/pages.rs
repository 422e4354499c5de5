//! Memory of large arrays: zeroed, and on huge pages where the system offers them on request.
//!
//! A stream of reads that crosses a page border every 4 KiB gets a fifth less bandwidth than one that crosses it
//! every 2 MiB, and the first touch of an array costs 500 times fewer page faults.
//!
//! Invariant: a hint only; the contents of an array never depend on it.
#![allow(unsafe_code)]

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
    /// Size of a huge page on x86-64 and on most others.
    const HUGE_PAGE: usize = 2 << 20;
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
    use super::{with_capacity, zeros};

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
}
