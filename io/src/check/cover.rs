//! Which material each cell belongs to, and whether every cell has exactly one.
//!
//! Invariant: sees numbers of cells and of materials only.

use crate::case::{Case, Place};
use fem_mesh::{Comm, Result};

/// How the materials of a case cover the cells of one rank, or of all after [`Cover::gather`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cover {
    /// Number of cells without a material.
    pub n_without: u64,
    /// Smallest number (of the input) among them.
    pub first_without: Option<u64>,
    /// The cell of the smallest number that two materials claim, and these.
    pub claimed_twice: Option<(u64, u16, u16)>,
}

/// The material of each cell: `claims` are pairs of a material's index and local cells it claims. `cell_ids` are the
/// numbers of the input, of owned cells (the first `n_owned`) and ghost cells; the cover speaks of owned cells only.
/// A cell without a material gets index 0, which nobody sees, since [`check_cover`] stops.
pub fn assign_materials<'a>(
    cell_ids: &[u64],
    n_owned: usize,
    claims: impl IntoIterator<Item = (u16, &'a [u32])>,
) -> (Vec<u16>, Cover) {
    let mut materials: Vec<Option<u16>> = vec![None; cell_ids.len()];
    let mut cover = Cover::default();
    for (material, cells) in claims {
        for &cell in cells {
            let (slot, id) = (&mut materials[cell as usize], cell_ids[cell as usize]);
            let clash = slot
                .replace(material)
                .filter(|&other| other != material && (cell as usize) < n_owned);
            if let Some(other) = clash {
                cover.merge(&Cover {
                    claimed_twice: Some((id, other, material)),
                    ..Cover::default()
                });
            }
        }
    }
    for (&id, _) in cell_ids
        .iter()
        .zip(&materials)
        .take(n_owned)
        .filter(|(_, material)| material.is_none())
    {
        cover.merge(&Cover {
            n_without: 1,
            first_without: Some(id),
            claimed_twice: None,
        });
    }
    (
        materials
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect(),
        cover,
    )
}

impl Cover {
    fn merge(&mut self, other: &Cover) {
        self.n_without += other.n_without;
        self.first_without = self
            .first_without
            .into_iter()
            .chain(other.first_without)
            .min();
        self.claimed_twice = self
            .claimed_twice
            .into_iter()
            .chain(other.claimed_twice)
            .min();
    }

    /// Collective. The cover of the cells of all ranks.
    #[must_use]
    pub fn gather(&self, comm: &Comm) -> Cover {
        let (id, a, b) = self.claimed_twice.unwrap_or((u64::MAX, 0, 0));
        let mine = [
            self.n_without,
            self.first_without.unwrap_or(u64::MAX),
            id,
            u64::from(a),
            u64::from(b),
        ];
        let mut all = Cover::default();
        for part in comm.all_gather(&mine) {
            if let [n_without, first, id, a, b] = part[..] {
                all.merge(&Cover {
                    n_without,
                    first_without: (n_without > 0).then_some(first),
                    claimed_twice: (id != u64::MAX).then_some((id, a as u16, b as u16)),
                });
            }
        }
        all
    }
}

/// Checks that each element has exactly one material.
///
/// # Errors
/// Some element has none, or two.
pub fn check_cover(case: &Case, cover: &Cover) -> Result<()> {
    if let Some((element, a, b)) = cover.claimed_twice {
        let [a, b] = [a.min(b), a.max(b)].map(|k| &case.materials[usize::from(k)]);
        let what = format!(
            "materials \"{}\" and \"{}\" both claim element {element}",
            a.name, b.name
        );
        return Err(case
            .error_at(b.place, what)
            .expected("one material for each element"));
    }
    let Some(first) = cover.first_without else {
        return Ok(());
    };
    let what = match cover.n_without {
        1 => format!("element {first} has no material"),
        n => format!("{n} elements have no material, the first is element {first}"),
    };
    Err(case
        .error_at(Place::default(), what)
        .expected("one [[material]] for each element")
        .advice("add a [[material]] whose `elements` names their set"))
}

#[cfg(test)]
mod tests {
    use super::{Cover, assign_materials, check_cover};
    use crate::case::{Case, parse};
    use fem_mesh::comm::run_threads;
    use std::path::Path;

    fn two_materials() -> Case {
        let text = "[mesh]\nfile = \"a.msh\"\n[[material]]\nname = \"m\"\nyoung = 1\npoisson = 0.3\n\n\
            [[material]]\nname = \"n\"\nelements = \"core\"\nyoung = 1\npoisson = 0\n";
        parse(Path::new("case.toml"), text).unwrap()
    }

    #[test]
    fn the_cover_finds_gaps_and_overlaps_of_owned_cells() {
        let case = two_materials();
        let ids = [10, 20, 30, 40, 50];
        let cover = |claims: [(u16, &[u32]); 3]| assign_materials(&ids, 4, claims);
        let (materials, good) = cover([(0, &[0, 1]), (1, &[2, 3, 4]), (1, &[2])]);
        assert_eq!((materials, good), (vec![0, 0, 1, 1, 1], Cover::default()));
        assert!(check_cover(&case, &good).is_ok());
        let (_, gaps) = cover([(0, &[0]), (1, &[2]), (1, &[])]);
        assert!(
            check_cover(&case, &gaps)
                .unwrap_err()
                .to_string()
                .contains("2 elements have no material, the first is element 20")
        );
        let (_, clash) = cover([(0, &[0, 1, 2, 3, 4]), (1, &[3, 2, 4]), (1, &[])]);
        assert_eq!(
            check_cover(&case, &clash).unwrap_err().to_string(),
            "case.toml:10:12: materials \"m\" and \"n\" both claim element 30; expected one material for each element"
        );
        let (_, ghost) = cover([(0, &[0, 1, 2, 3, 4]), (1, &[4]), (1, &[])]);
        assert_eq!(ghost, Cover::default());
    }

    #[test]
    fn covers_of_ranks_add_up() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let id = 100 - comm.rank() as u64;
                let (_, cover) = assign_materials(&[id], 1, []);
                let all = cover.gather(comm);
                assert_eq!(
                    (all.n_without, all.first_without),
                    (n_ranks as u64, Some(101 - n_ranks as u64))
                );
                assert_eq!(all.claimed_twice, None);
            });
        }
    }
}
