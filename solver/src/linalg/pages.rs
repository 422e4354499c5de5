//! The allocator of the program: large arrays on huge pages of their own, all else as the system does it.
//!
//! A page that is touched for the first time must be found and zeroed by the system, at 2 GB/s in pages of 4 KiB and at
//! 3 to 11 GB/s in those of 2 MiB (measured in a virtual machine): arrays of a solver that come and go by the gigabyte would
//! cost as much as the arithmetic. So large arrays get huge pages, and pages of arrays that are freed are kept and mapped
//! into the next ones: a process holds no more than its arrays did at their peak, and touches each page new but once.
//!
//! Invariant: the contents of an array never depend on its pages; where the system has no huge pages, nothing changes but
//! the time.
#![allow(unsafe_code)]

use bytemuck::Pod;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Range;

/// Allocator that maps arrays from [`LARGE`] bytes on.
struct HugePages;

#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

/// Size of a huge page on x86-64, and smallest array that gets some.
const LARGE: usize = 2 << 20;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod mapping {
    use super::LARGE;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Whole huge pages that no array uses.
    #[derive(Clone, Copy)]
    struct Run {
        start: usize,
        size: usize,
    }

    /// Runs kept for later arrays. (An allocator cannot allocate: their number is fixed.)
    struct Pool {
        runs: [Run; 256],
        n: usize,
    }

    static POOL: Mutex<Pool> = Mutex::new(Pool {
        runs: [Run { start: 0, size: 0 }; 256],
        n: 0,
    });

    impl Pool {
        fn lock() -> MutexGuard<'static, Pool> {
            POOL.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// A run of at most `most` bytes.
        fn take(&mut self, most: usize) -> Option<Run> {
            let last = self.runs[..self.n].last_mut()?;
            if last.size > most {
                last.size -= most;
                let start = last.start + last.size;
                return Some(Run { start, size: most });
            }
            self.n -= 1;
            Some(self.runs[self.n])
        }

        /// Keeps a run, if there is room for it.
        fn keep(&mut self, run: Run) -> bool {
            let has_room = self.n < self.runs.len();
            if has_room {
                self.runs[self.n] = run;
                self.n += 1;
            }
            has_room
        }
    }

    /// Memory for `size` bytes, aligned to [`LARGE`], and how many of its first bytes may be other than zero; null if there
    /// is none.
    pub(super) fn map(size: usize) -> (*mut u8, usize) {
        let none = (std::ptr::null_mut(), 0);
        let Some(reserved) = size
            .checked_next_multiple_of(LARGE)
            .and_then(|s| s.checked_add(LARGE))
        else {
            return none;
        };
        let used = reserved - LARGE;
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // A last page of which less than half is needed stays in small pieces.
        let huge = (size + LARGE / 2) / LARGE * LARGE;
        // SAFETY: a new mapping, of which nobody knows yet; its ends are whole pages of it.
        let start = unsafe {
            let start = libc::mmap(std::ptr::null_mut(), reserved, access, kind, -1, 0);
            if start == libc::MAP_FAILED {
                return none;
            }
            let start = start.cast::<u8>();
            let before = start.align_offset(LARGE);
            let aligned = start.add(before);
            if before > 0 {
                libc::munmap(start.cast(), before);
            }
            libc::munmap(aligned.add(used).cast(), LARGE - before);
            // A refusal is no failure.
            libc::madvise(aligned.cast(), huge, libc::MADV_HUGEPAGE);
            aligned
        };
        let mut filled = 0;
        let mut pool = Pool::lock();
        while filled < used
            && let Some(run) = pool.take(used - filled)
        {
            match move_run(run, start.wrapping_add(filled)) {
                Moved::All => filled += run.size,
                Moved::Part(size) => {
                    filled += size;
                    pool.keep(Run {
                        start: run.start + size,
                        size: run.size - size,
                    });
                    break;
                }
                Moved::LeftAHole => {
                    // SAFETY: nobody knows of the mapping yet; a hole in it is no matter.
                    unsafe { libc::munmap(start.cast(), used) };
                    return none;
                }
            }
        }
        (start, filled)
    }

    /// How far the pages of a run came.
    enum Moved {
        All,
        /// So many bytes; below them all is as it was, and the place of the others has fresh pages.
        Part(usize),
        /// The system took the place away and has no other pages for it.
        LeftAHole,
    }

    /// Moves the pages of a run to `to`, page by page: a run can have been put together from the pages of several mappings,
    /// and systems before Linux 6.17 move those of one mapping at a time.
    fn move_run(run: Run, to: *mut u8) -> Moved {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        for at in (0..run.size).step_by(LARGE) {
            let (from, to) = ((run.start + at) as *mut libc::c_void, to.wrapping_add(at));
            // SAFETY: nobody uses the run, and what it takes the place of is a part of a new mapping.
            let moved = unsafe { libc::mremap(from, LARGE, LARGE, flags, to) };
            if moved == libc::MAP_FAILED {
                // What was in its place may be gone already.
                let (access, kind) = (
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                );
                // SAFETY: a part of the new mapping, of which nobody knows yet.
                let fresh = unsafe { libc::mmap(to.cast(), LARGE, access, kind, -1, 0) };
                return if fresh == libc::MAP_FAILED {
                    Moved::LeftAHole
                } else {
                    Moved::Part(at)
                };
            }
        }
        Moved::All
    }

    /// Takes back the bytes `keep..size` of an array, as far as they are whole huge pages.
    ///
    /// # Safety
    /// `start` came from [`map`] with a size that was or has been cut down to `size`; nobody uses these bytes.
    pub(super) unsafe fn unmap(start: *mut u8, size: usize, keep: usize) {
        let (keep, end) = (keep.next_multiple_of(LARGE), size.next_multiple_of(LARGE));
        if keep == end {
            return;
        }
        let run = Run {
            start: start.addr() + keep,
            size: end - keep,
        };
        if !Pool::lock().keep(run) {
            // SAFETY: whole pages of the mapping, as the caller warrants.
            unsafe { libc::munmap(start.add(keep).cast(), run.size) };
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod mapping {
    pub(super) fn map(_: usize) -> (*mut u8, usize) {
        (std::ptr::null_mut(), 0)
    }

    pub(super) unsafe fn unmap(_: *mut u8, _: usize, _: usize) {}
}

/// Whether an array is mapped here.
fn is_mapped(layout: Layout) -> bool {
    let possible = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    possible && layout.size() >= LARGE && layout.align() <= LARGE
}

// SAFETY: every array is served and freed by the same of two allocators, since the layout alone decides between them;
// mappings are as large as asked for, and aligned to `LARGE`.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return mapping::map(layout.size()).0;
        }
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            let (start, used_before) = mapping::map(layout.size());
            // SAFETY: that much belongs to the array; nothing if there is none.
            unsafe { start.write_bytes(0, used_before.min(layout.size())) };
            return start;
        }
        // SAFETY: passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if is_mapped(layout) {
            // SAFETY: the array came from `map`.
            return unsafe { mapping::unmap(start, layout.size(), 0) };
        }
        // SAFETY: passed on.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller warrants that the size is one of a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_mapped(layout), is_mapped(wanted)) {
            // SAFETY: passed on.
            (false, false) => unsafe { System.realloc(start, layout, size) },
            (true, true) if size <= layout.size() => {
                // SAFETY: the array came from `map`, and its end is given up.
                unsafe { mapping::unmap(start, layout.size(), size) };
                start
            }
            // SAFETY: the new array does not overlap the old one, which is freed only when it is copied.
            _ => unsafe {
                let new = self.alloc(wanted);
                if !new.is_null() {
                    new.copy_from_nonoverlapping(start, size.min(layout.size()));
                    self.dealloc(start, layout);
                }
                new
            },
        }
    }
}

/// Size of a cache line, and alignment of the arrays in a [`Region`].
pub(super) const LINE: usize = 64;

/// Zeroed memory for several arrays that are read together: one large array, where many small ones would have small pages.
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
        let bytes = vec![0; size + LINE];
        let address = bytes.as_ptr().addr();
        let start = address.next_multiple_of(LINE) - address;
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

#[cfg(test)]
mod tests {
    use super::{LARGE, LINE, Region};

    #[test]
    fn arrays_of_all_sizes_are_zero_and_keep_their_contents() {
        for n in [0, 1, 1000, LARGE / 8, LARGE / 8 + 3, LARGE - 1] {
            let mut values = vec![0u64; n];
            assert!(values.iter().all(|&v| v == 0));
            for (i, v) in values.iter_mut().enumerate() {
                *v = i as u64;
            }
            // Grown, cut, and cut below the size of mappings.
            for len in [2 * n, 3 * n, n + n / 2, n / 3, n / 20] {
                if len > values.len() {
                    values.extend(values.len() as u64..len as u64);
                } else {
                    values.truncate(len);
                    values.shrink_to_fit();
                }
                assert_eq!(values.len(), len);
                assert!(values.iter().enumerate().all(|(i, &v)| v == i as u64));
            }
        }
    }

    /// Pages of arrays that were freed make up later ones of other sizes, in any mixture and more than once.
    #[test]
    fn arrays_of_pages_of_several_earlier_ones_hold_their_contents() {
        let array = |pages: usize, value: usize| vec![value; pages * LARGE / size_of::<usize>()];
        let is_sound = |values: &[usize], value: usize| values.iter().all(|&v| v == value);
        for round in 0..20 {
            let parts = [1, 3, 2, 5].map(|pages| array(pages, round + pages));
            assert!((parts.iter().zip([1, 3, 2, 5])).all(|(v, pages)| is_sound(v, round + pages)));
            drop(parts);
            let whole = array(11, round);
            assert!(is_sound(&whole, round));
            drop(whole);
            let halves = [array(6, round + 1), array(4, round + 2)];
            assert!(is_sound(&halves[0], round + 1) && is_sound(&halves[1], round + 2));
            let zeros = vec![0usize; 7 * LARGE / size_of::<usize>()];
            assert!(is_sound(&zeros, 0));
        }
    }

    #[test]
    fn large_arrays_are_aligned() {
        let values = Vec::<u8>::with_capacity(LARGE);
        assert!(values.as_ptr().addr().is_multiple_of(16));
        if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            assert_eq!(values.as_ptr().addr() % LARGE, 0);
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
