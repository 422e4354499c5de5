//! Structured boxes of any size, made in slices: each rank makes its own block of cells and never sees the others'.
//!
//! The box is a lattice of bricks; a brick is one hexahedron, two wedges, six tetrahedra or six pyramids. Node and cell numbers
//! follow from the place in the whole lattice, so the slices of all ranks fit together without communication.
//!
//! Invariant: the union of the slices does not depend on the number of ranks.

mod blocks;
mod brick;
mod lattice;

use crate::mesh::Sets;
use crate::{CellFace, CellType, Comm, Error, Mesh, Result};
use blocks::{Block, block_of_rank};
use brick::Brick;
use lattice::NodeLattice;

/// Names of the face sets of a box by axis and side.
const FACE_SETS: [[&str; 2]; 3] = [["xmin", "xmax"], ["ymin", "ymax"], ["zmin", "zmax"]];

/// A box of `cells[0] * cells[1] * cells[2]` bricks.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxMesh {
    /// Edge lengths, m.
    pub size: [f64; 3],
    /// Number of bricks along each axis.
    pub cells: [usize; 3],
    /// Type of the cells that each brick is made of: a hexahedron, two wedges, six tetrahedra or six pyramids.
    pub cell_type: CellType,
    /// The corner with the lowest coordinates, m.
    pub origin: [f64; 3],
}

impl BoxMesh {
    fn check(&self) -> Result<()> {
        if !self.size.iter().all(|&s| s.is_finite() && s > 0.0) {
            return Err(Error::input(format!("the box has size {:?}", self.size))
                .expected("three lengths greater than 0"));
        }
        if !self.origin.iter().all(|x| x.is_finite()) {
            return Err(
                Error::input(format!("the box has origin {:?}", self.origin))
                    .expected("three finite coordinates"),
            );
        }
        if self.cells.contains(&0) {
            return Err(Error::input(format!(
                "the box has {:?} elements along its edges",
                self.cells
            ))
            .expected("three numbers of at least 1"));
        }
        if self.cells.iter().any(|&n| n > 1 << 19) {
            return Err(Error::input(format!(
                "the box has {:?} elements along its edges",
                self.cells
            ))
            .expected("at most 524288 along each"));
        }
        if !CellType::SOLIDS.contains(&self.cell_type) {
            let names: Vec<&str> = CellType::SOLIDS.iter().map(|t| t.name()).collect();
            return Err(
                Error::input(format!("a box cannot be made of {}", self.cell_type))
                    .expected(format!("one of {}", names.join(", "))),
            );
        }
        Ok(())
    }

    /// Number of cells of the whole box.
    pub fn n_cells(&self) -> u64 {
        let bricks: u64 = self.cells.iter().map(|&n| n as u64).product();
        bricks * Brick::of(self.cell_type).cells.len() as u64
    }

    /// Number of nodes of the whole box.
    pub fn n_nodes(&self) -> u64 {
        NodeLattice::of(self).n_nodes()
    }
}

/// Collective. This rank's slice of the box, from recursive bisection of the bricks into one block per rank, sized in
/// proportion to `weights` (one per rank, the same on every rank; equal if `None`). With more ranks than bricks some
/// slices are empty.
///
/// Nodes and cells are numbered from 1 without gaps over the whole box. Face sets: `xmin` to `zmax`; cell set: `all`.
///
/// # Errors
/// On every rank: a size or number that makes no box, a type that does not fill one, weights that are negative or
/// all zero, a block with more nodes than a rank can number.
pub fn generate_slice(spec: &BoxMesh, comm: &Comm, weights: Option<&[f64]>) -> Result<Mesh> {
    spec.check()?;
    let block = block_of_rank(spec.cells, comm.rank(), comm.n_ranks(), weights)?;
    comm.all_ok(fill_block(spec, block))
}

/// The nodes and cells of one block.
fn fill_block(spec: &BoxMesh, block: Block) -> Result<Mesh> {
    let brick = Brick::of(spec.cell_type);
    let mut mesh = Mesh {
        sets: empty_sets(),
        ..Mesh::default()
    };
    if block.is_empty() {
        return Ok(mesh);
    }
    let lattice = NodeLattice::of(spec);
    let n_entries = block.n_bricks() * brick.cells.len() * spec.cell_type.n_nodes();
    if u32::try_from(n_entries.max(lattice.points_of(&block))).is_err() {
        return Err(Error::input(format!(
            "{} elements are too many for one rank",
            block.n_bricks() * brick.cells.len()
        ))
        .advice("use more ranks or fewer elements"));
    }
    let local = lattice.fill_nodes(spec, &block, &mut mesh);
    let mut all = Vec::new();
    let mut nodes = Vec::new();
    for at in block.bricks() {
        let number = at[0] + spec.cells[0] * (at[1] + spec.cells[1] * at[2]);
        let first_cell = mesh.n_cells() as u32;
        for (index, corners) in brick.cells.iter().enumerate() {
            nodes.clear();
            nodes.extend(brick.points_of(corners).map(|point| {
                let point = [0, 1, 2].map(|d| lattice.steps * at[d] + point[d]);
                local.at(point)
            }));
            all.push(mesh.n_cells() as u32);
            mesh.cells.push(spec.cell_type, &nodes);
            mesh.cell_ids
                .push((number * brick.cells.len() + index) as u64 + 1);
        }
        push_boundary_faces(&mut mesh.sets, &brick, at, spec.cells, first_cell);
    }
    mesh.sets.cells.insert("all".to_owned(), all);
    Ok(mesh)
}

fn empty_sets() -> Sets {
    let mut sets = Sets::default();
    sets.cells.insert("all".to_owned(), Vec::new());
    for name in FACE_SETS.iter().flatten() {
        sets.faces.insert((*name).to_owned(), Vec::new());
    }
    sets
}

fn push_boundary_faces(
    sets: &mut Sets,
    brick: &Brick,
    at: [usize; 3],
    n_bricks: [usize; 3],
    first_cell: u32,
) {
    for axis in 0..3 {
        let is_outside = [at[axis] == 0, at[axis] + 1 == n_bricks[axis]];
        for side in (0..2).filter(|&side| is_outside[side]) {
            let faces = brick.faces_on(axis, side as u8);
            let faces = faces.into_iter().map(|f| CellFace {
                cell: first_cell + f.cell,
                face: f.face,
            });
            let set = sets.faces.entry(FACE_SETS[axis][side].to_owned());
            set.or_default().extend(faces);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BoxMesh, generate_slice};
    use crate::comm::run_threads;
    use crate::test_meshes::cell_volume;
    use crate::{CellType, Comm};
    use std::collections::{BTreeMap, BTreeSet};

    fn spec(cell_type: CellType, cells: [usize; 3]) -> BoxMesh {
        BoxMesh {
            size: [3.0, 2.0, 1.5],
            cells,
            cell_type,
            origin: [1.0, 0.0, -1.0],
        }
    }

    #[test]
    fn every_type_fills_the_box_with_the_nodes_it_has() {
        for cell_type in CellType::SOLIDS {
            let spec = spec(cell_type, [3, 2, 4]);
            let mesh = generate_slice(&spec, &Comm::alone(), None).unwrap();
            assert_eq!(mesh.n_cells() as u64, spec.n_cells());
            assert_eq!(mesh.n_nodes() as u64, spec.n_nodes());
            let volumes: Vec<f64> = (0..mesh.n_cells()).map(|c| cell_volume(&mesh, c)).collect();
            assert!(volumes.iter().all(|&v| v > 0.0), "{cell_type}");
            assert!((volumes.iter().sum::<f64>() - 9.0).abs() < 1e-12);
            let used: BTreeSet<u32> = mesh.cells.nodes.iter().copied().collect();
            assert_eq!(
                used.len(),
                mesh.n_nodes(),
                "{cell_type} leaves no node unused"
            );
            let mut ids = mesh.node_ids.clone();
            ids.sort_unstable();
            assert!(ids.iter().zip(1..).all(|(&id, n)| id == n));
            assert!(mesh.cell_ids.iter().zip(1..).all(|(&id, n)| id == n));
        }
    }

    #[test]
    fn mid_nodes_stand_halfway() {
        for cell_type in CellType::SOLIDS.into_iter().filter(|t| t.order() == 2) {
            let mesh = generate_slice(&spec(cell_type, [2, 2, 2]), &Comm::alone(), None).unwrap();
            for cell in 0..mesh.n_cells() {
                let nodes = mesh.cells.nodes_of(cell);
                let edges = cell_type.edges().iter().map(|edge| &edge[..]);
                let around = edges.chain(cell_type.inner_nodes().iter().copied());
                for (around, mid) in around.zip(&nodes[cell_type.n_corners()..]) {
                    for d in 0..3 {
                        let of_corner = |&i: &u8| mesh.coords[nodes[usize::from(i)] as usize][d];
                        let mean = around.iter().map(of_corner).sum::<f64>() / around.len() as f64;
                        assert!((mesh.coords[*mid as usize][d] - mean).abs() < 1e-14);
                    }
                }
            }
        }
    }

    #[test]
    fn cells_conform_and_face_sets_are_the_surface() {
        for cell_type in CellType::SOLIDS {
            let mesh = generate_slice(&spec(cell_type, [2, 3, 2]), &Comm::alone(), None).unwrap();
            let listed: usize = mesh.sets.faces.values().map(Vec::len).sum();
            let n_faces: usize = mesh.cells.types.iter().map(|t| t.faces().len()).sum();
            let n_inside = crate::adjacency::dual_graph(&mesh.cells).targets.len();
            assert_eq!(n_faces - n_inside, listed);
            for &face in &mesh.sets.faces["xmax"] {
                let (_, mut nodes) = mesh.cells.nodes_of_face(face);
                assert!(nodes.all(|n| mesh.coords[n as usize][0] == 4.0));
            }
            for &face in &mesh.sets.faces["zmin"] {
                let (_, mut nodes) = mesh.cells.nodes_of_face(face);
                assert!(nodes.all(|n| mesh.coords[n as usize][2] == -1.0));
            }
        }
    }

    #[test]
    fn slices_of_any_number_of_ranks_make_the_same_box() {
        for cell_type in CellType::SOLIDS {
            let spec = spec(cell_type, [3, 1, 2]);
            let whole = generate_slice(&spec, &Comm::alone(), None).unwrap();
            let nodes_of = |mesh: &crate::Mesh, cell: usize| -> Vec<u64> {
                mesh.cells
                    .nodes_of(cell)
                    .iter()
                    .map(|&n| mesh.node_ids[n as usize])
                    .collect()
            };
            let coords: BTreeMap<u64, [f64; 3]> = whole
                .node_ids
                .iter()
                .copied()
                .zip(whole.coords.iter().copied())
                .collect();
            for n_ranks in 1..=9 {
                run_threads(n_ranks, |comm| {
                    let slice = generate_slice(&spec, comm, None).unwrap();
                    for (id, x) in slice.node_ids.iter().zip(&slice.coords) {
                        assert_eq!(coords[id], *x);
                    }
                    for (cell, &id) in slice.cell_ids.iter().enumerate() {
                        assert_eq!(nodes_of(&slice, cell), nodes_of(&whole, id as usize - 1));
                    }
                    assert_eq!(comm.sum_u64(slice.n_cells() as u64), spec.n_cells());
                    assert_eq!(slice.sets.cells["all"].len(), slice.n_cells());
                    for (name, faces) in &whole.sets.faces {
                        let here = slice.sets.faces[name].len() as u64;
                        assert_eq!(comm.sum_u64(here), faces.len() as u64);
                    }
                });
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let good = spec(CellType::Hex8, [2, 2, 2]);
        let bad = [
            BoxMesh {
                cells: [2, 0, 2],
                ..good.clone()
            },
            BoxMesh {
                cells: [2, usize::MAX, 2],
                ..good.clone()
            },
            BoxMesh {
                size: [1.0, -1.0, 1.0],
                ..good.clone()
            },
            BoxMesh {
                size: [1.0, f64::NAN, 1.0],
                ..good.clone()
            },
            BoxMesh {
                origin: [f64::INFINITY, 0.0, 0.0],
                ..good.clone()
            },
            BoxMesh {
                cell_type: CellType::Quad4,
                ..good.clone()
            },
            BoxMesh {
                cells: [2000, 2000, 2000],
                ..good.clone()
            },
        ];
        for spec in bad {
            let error = generate_slice(&spec, &Comm::alone(), None).unwrap_err();
            assert_eq!(error.exit_code(), 2);
        }
        for weights in [vec![], vec![-1.0], vec![0.0], vec![f64::NAN]] {
            assert!(generate_slice(&good, &Comm::alone(), Some(&weights)).is_err());
        }
    }
}
