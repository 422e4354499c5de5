//! Strain and stress at the nodes, averaged over the cells of one material.
//!
//! Each cell extrapolates the strains of its recovery points to its nodes; a node takes the plain mean over the cells
//! that touch it, for each material of its own: at an interface it has a value on either side. Where all laws are constant
//! and isotropic the stress follows from the means of strain and temperature, which is the mean of the stresses since the
//! law is linear; else the stresses of the recovery points are extrapolated and averaged as the strains are.
//! An owned node sees all its cells locally; ghost nodes get the means of their owners.
//!
//! Invariant: each (node, material) sums its cells in ascending local order, whatever the number of threads.

use super::stress::{Deformation, MAX_RECOVERY_POINTS, node_slabs};
use crate::assembly::slabs::cells_touching;
use crate::element::formulation::extrapolation;
use crate::material::Isotropic;
use crate::model::Model;
use fem_mesh::{Comm, Halo};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Sum or mean over cells: strain (6), change of temperature in K, number of cells; or stress (6), 0, number of cells.
type Mean = [f64; 8];
const TEMPERATURE: usize = 6;
const N_CELLS: usize = 7;
/// In messages: a node with fewer materials than others.
const NO_MATERIAL: u16 = u16::MAX;

/// Strain and stress of each local node, ghosts included, for each material whose cells touch it.
pub struct NodalTensors {
    stresses: Stresses,
    pairs: Pairs,
    means: Vec<Mean>,
}

/// Where the stresses come from.
enum Stresses {
    /// From the means, by the law of each material.
    ByLaw(Vec<Isotropic>),
    /// They have been averaged themselves.
    Means(Vec<Mean>),
}

/// The (node, material) pairs: those of node n are `materials[start[n]..start[n + 1]]`, ascending.
struct Pairs {
    start: Vec<usize>,
    materials: Vec<u16>,
}

/// Collective. Strain and stress at all local nodes from the displacement `u`, m, 3 a local node (owned nodes first,
/// then ghosts). `halo` is that of the nodes.
pub fn compute_nodal_tensors(comm: &Comm, model: &Model, halo: &Halo, u: &[f64]) -> NodalTensors {
    let deformation = Deformation::new(model, u);
    let mut pairs = Pairs::of_owned_nodes(model);
    let mut means = average(&deformation, &pairs, |cell| {
        deformation.recovery_strains(cell)
    });
    // The ranks must agree on what they send.
    let is_simple = !comm.any(!deformation.conditions().are_simple());
    let laws = (model.materials.iter()).map(|material| material.law.as_isotropic());
    let by_law = laws
        .collect::<Option<Vec<Isotropic>>>()
        .filter(|_| is_simple);
    let mut stresses = match by_law {
        Some(laws) => Stresses::ByLaw(laws),
        None => Stresses::Means(average(&deformation, &pairs, |cell| {
            deformation.recovery_stresses(cell)
        })),
    };
    let mut fields = vec![&mut means];
    if let Stresses::Means(stresses) = &mut stresses {
        fields.push(stresses);
    }
    receive_ghosts(
        comm,
        model.mesh.nodes.n_ghosts(),
        halo,
        &mut pairs,
        &mut fields,
    );
    NodalTensors {
        stresses,
        pairs,
        means,
    }
}

impl NodalTensors {
    /// Materials of the cells that touch a local node, ascending.
    pub fn materials_of(&self, node: usize) -> &[u16] {
        &self.pairs.materials[self.pairs.of(node)]
    }

    /// Strain (engineering shears) at a local node in the cells of a material.
    ///
    /// # Panics
    /// If no cell of that material touches the node.
    pub fn strain_at(&self, node: usize, material: u16) -> [f64; 6] {
        let [xx, yy, zz, xy, yz, zx, ..] = *self.mean(node, material);
        [xx, yy, zz, xy, yz, zx]
    }

    /// Stress, Pa, at a local node in the cells of a material.
    ///
    /// # Panics
    /// If no cell of that material touches the node.
    pub fn stress_at(&self, node: usize, material: u16) -> [f64; 6] {
        match &self.stresses {
            Stresses::ByLaw(laws) => {
                let temperature_change = self.mean(node, material)[TEMPERATURE];
                laws[usize::from(material)]
                    .stress(&self.strain_at(node, material), temperature_change)
            }
            Stresses::Means(means) => {
                let [xx, yy, zz, xy, yz, zx, ..] = means[self.place(node, material)];
                [xx, yy, zz, xy, yz, zx]
            }
        }
    }

    fn mean(&self, node: usize, material: u16) -> &Mean {
        &self.means[self.place(node, material)]
    }

    fn place(&self, node: usize, material: u16) -> usize {
        match self.pairs.find(node, material) {
            Some(at) => at,
            None => panic!("no cell of material {material} touches local node {node}"),
        }
    }
}

impl Pairs {
    /// Of the owned nodes, in their order.
    fn of_owned_nodes(model: &Model) -> Self {
        let (cells, n_owned) = (&model.mesh.cells, model.mesh.nodes.n_owned());
        // Most nodes have one material: remembering the last leaves about one pair a node to sort.
        let mut last = vec![NO_MATERIAL; n_owned];
        let mut pairs: Vec<(u32, u16)> = Vec::with_capacity(n_owned);
        for (cell, &material) in model.cell_material.iter().enumerate() {
            for &node in cells.nodes_of(cell) {
                if let Some(last) = last
                    .get_mut(node as usize)
                    .filter(|last| **last != material)
                {
                    *last = material;
                    pairs.push((node, material));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut by_node = Pairs {
            start: vec![0],
            materials: Vec::with_capacity(pairs.len()),
        };
        let mut rest = &pairs[..];
        for node in 0..n_owned as u32 {
            let n = rest.iter().take_while(|pair| pair.0 == node).count();
            by_node.push(rest[..n].iter().map(|pair| pair.1));
            rest = &rest[n..];
        }
        by_node
    }

    /// Appends a node.
    fn push(&mut self, materials: impl Iterator<Item = u16>) {
        self.materials.extend(materials);
        self.start.push(self.materials.len());
    }

    fn of(&self, node: usize) -> Range<usize> {
        self.start[node]..self.start[node + 1]
    }

    fn find(&self, node: usize, material: u16) -> Option<usize> {
        self.of(node).find(|&at| self.materials[at] == material)
    }
}

/// Tensors at the recovery points of a cell, and their number.
type AtPoints = ([[f64; 6]; MAX_RECOVERY_POINTS], usize);

/// Means of the tensors of the cells at the owned nodes.
fn average(
    deformation: &Deformation,
    pairs: &Pairs,
    tensors: impl Fn(usize) -> AtPoints + Sync,
) -> Vec<Mean> {
    let cells = &deformation.model.mesh.cells;
    let mut means = vec![[0.0; 8]; pairs.materials.len()];
    let slabs = node_slabs(&deformation.model.mesh);
    let parts = slabs.split(&mut means, |node| pairs.start[node]);
    let jobs: Vec<_> = slabs.rows().zip(parts).collect();
    jobs.into_par_iter().for_each(|(nodes, sums)| {
        let first = pairs.start[nodes.start];
        for cell in cells_touching(cells, nodes.clone()) {
            let (tensors, n_points) = tensors(cell);
            let temperature = deformation.conditions().change(cell);
            let material = deformation.model.cell_material[cell];
            let (cell_type, formulation) = deformation.element_of(cell);
            let weights = extrapolation(cell_type, formulation).chunks_exact(n_points);
            for (&node, weights) in cells.nodes_of(cell).iter().zip(weights) {
                if !nodes.contains(&(node as usize)) {
                    continue;
                }
                let Some(at) = pairs.find(node as usize, material) else {
                    continue;
                };
                add(
                    &mut sums[at - first],
                    &tensors[..n_points],
                    weights,
                    temperature,
                );
            }
        }
        for sum in sums {
            let n_cells = sum[N_CELLS];
            sum[..N_CELLS]
                .iter_mut()
                .for_each(|value| *value /= n_cells);
        }
    });
    means
}

/// Adds what one cell says about a node.
fn add(sum: &mut Mean, tensors: &[[f64; 6]], weights: &[f64], temperature: f64) {
    let mut tensor = [0.0; 6];
    for (point, weight) in tensors.iter().zip(weights) {
        for i in 0..6 {
            tensor[i] += weight * point[i];
        }
    }
    for i in 0..6 {
        sum[i] += tensor[i];
    }
    sum[TEMPERATURE] += temperature;
    sum[N_CELLS] += 1.0;
}

/// Collective. Appends the materials of the ghost nodes and their means in each of `fields`, one material of each node at
/// a time.
fn receive_ghosts(
    comm: &Comm,
    n_ghosts: usize,
    halo: &Halo,
    pairs: &mut Pairs,
    fields: &mut [&mut Vec<Mean>],
) {
    if comm.n_ranks() == 1 {
        return;
    }
    let n_owned = pairs.start.len() - 1;
    let widest = (0..n_owned)
        .map(|node| pairs.of(node).len())
        .max()
        .unwrap_or(0);
    let n_passes = comm.max(widest as f64) as usize;
    let passes: Vec<(Vec<u16>, Vec<Vec<Mean>>)> = (0..n_passes)
        .map(|pass| {
            let at: Vec<Option<usize>> =
                (0..n_owned).map(|node| pairs.of(node).nth(pass)).collect();
            let materials: Vec<u16> = at
                .iter()
                .map(|at| at.map_or(NO_MATERIAL, |at| pairs.materials[at]))
                .collect();
            let mut of_ghosts = vec![NO_MATERIAL; n_ghosts];
            halo.forward(comm, &materials, &mut of_ghosts, 1);
            let values = fields.iter().map(|means| {
                let owned: Vec<Mean> = at
                    .iter()
                    .map(|at| at.map_or([0.0; 8], |at| means[at]))
                    .collect();
                let mut ghosts = vec![[0.0; 8]; n_ghosts];
                halo.forward(comm, owned.as_flattened(), ghosts.as_flattened_mut(), 8);
                ghosts
            });
            (of_ghosts, values.collect())
        })
        .collect();
    for ghost in 0..n_ghosts {
        let here = || passes.iter().take_while(|(m, _)| m[ghost] != NO_MATERIAL);
        pairs.push(here().map(|(materials, _)| materials[ghost]));
        for (k, means) in fields.iter_mut().enumerate() {
            means.extend(here().map(|(_, values)| values[k][ghost]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mean, NodalTensors, compute_nodal_tensors};
    use crate::assembly::test_models::{
        EXPANSION, POISSON, YOUNG, distorted_box, mixed_mesh, model, split,
    };
    use crate::material::Isotropic;
    use crate::model::{Load, Material, Model};
    use crate::post::stress::Deformation;
    use crate::post::test_fields::{assert_close, linear, linear_strain, meshes, sample, wavy};
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellType, Comm, Halo, Mesh};
    use std::collections::BTreeMap;

    fn recover(comm: &Comm, model: &Model, field: impl Fn([f64; 3]) -> [f64; 3]) -> NodalTensors {
        let halo = Halo::new(comm, &model.mesh.nodes);
        compute_nodal_tensors(comm, model, &halo, &sample(&model.mesh, field))
    }

    #[test]
    fn constant_strain_is_exact_at_every_node_of_every_type() {
        for mesh in [meshes(false), meshes(true)].concat() {
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = model(split(comm, &mesh));
                    let expected =
                        Isotropic::new(YOUNG, POISSON, 0.0).stress(&linear_strain(), 0.0);
                    let tensors = recover(comm, &model, linear);
                    for node in 0..model.mesh.nodes.n_local() {
                        assert_eq!(tensors.materials_of(node), [0]);
                        assert_close(&tensors.strain_at(node, 0), &linear_strain(), 1e-13);
                        assert_close(&tensors.stress_at(node, 0), &expected, 1e-11);
                    }
                });
            }
        }
    }

    /// A box whose lower half (z < 1) is of material 0 and whose upper half is of material 1, with a flat interface.
    fn two_halves(comm: &Comm, mesh: &Mesh) -> Model {
        let height = |mesh: &Mesh, cell: usize| {
            let nodes = mesh.cells.nodes_of(cell);
            let sum: f64 = nodes.iter().map(|&n| mesh.coords[n as usize][2]).sum();
            sum / nodes.len() as f64
        };
        // Nodes between the halves, which the distortion has moved, go back to height 1.
        let mut mesh = mesh.clone();
        let mut halves = vec![[false; 2]; mesh.coords.len()];
        for cell in 0..mesh.cells.types.len() {
            let half = usize::from(height(&mesh, cell) > 1.0);
            for &node in mesh.cells.nodes_of(cell) {
                halves[node as usize][half] = true;
            }
        }
        for (x, halves) in mesh.coords.iter_mut().zip(&halves) {
            if *halves == [true; 2] {
                x[2] = 1.0;
            }
        }
        let mut model = model(split(comm, &mesh));
        model.materials = [(200.0, 0), (50.0, 1)]
            .map(|(young, i)| Material::isotropic(&format!("{i}"), young, 0.0, 0.0))
            .to_vec();
        let local = &model.mesh;
        let is_upper = |cell: usize| {
            let nodes = local.cells.nodes_of(cell);
            let sum: f64 = nodes.iter().map(|&n| local.coords[n as usize][2]).sum();
            sum > nodes.len() as f64
        };
        model.cell_material = (0..local.n_cells())
            .map(|c| u16::from(is_upper(c)))
            .collect();
        model
    }

    #[test]
    fn the_jump_at_an_interface_is_kept() {
        // Tension of 10 along two bars in series, and the same strain across both.
        let field = |[x, _, z]: [f64; 3]| {
            [
                0.01 * x,
                0.0,
                if z > 1.0 {
                    0.05 + 0.2 * (z - 1.0)
                } else {
                    0.05 * z
                },
            ]
        };
        for cell_type in CellType::SOLIDS {
            let mesh = distorted_box(cell_type, [2, 2, 2], false);
            for n_ranks in 1..=4 {
                run_threads(n_ranks, |comm| {
                    let model = two_halves(comm, &mesh);
                    let tensors = recover(comm, &model, field);
                    for (node, x) in model.mesh.coords.iter().enumerate() {
                        let materials: &[u16] = if x[2] == 1.0 {
                            &[0, 1]
                        } else if x[2] < 1.0 {
                            &[0]
                        } else {
                            &[1]
                        };
                        assert_eq!(
                            tensors.materials_of(node),
                            materials,
                            "{cell_type} at {x:?}"
                        );
                        for &material in materials {
                            let (across, along) = [(2.0, 0.05), (0.5, 0.2)][usize::from(material)];
                            let stress = [across, 0.0, 10.0, 0.0, 0.0, 0.0];
                            assert_close(&tensors.stress_at(node, material), &stress, 1e-11);
                            let strain = [0.01, 0.0, along, 0.0, 0.0, 0.0];
                            assert_close(&tensors.strain_at(node, material), &strain, 1e-13);
                        }
                    }
                });
            }
        }
    }

    #[test]
    fn free_expansion_causes_no_stress() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let mut model = model(split(comm, &mixed_mesh()));
                let all: Vec<u32> = (0..model.mesh.n_cells() as u32).collect();
                for change in [30.0, 20.0] {
                    model.loads.push(Load::TemperatureChange {
                        cells: all.clone(),
                        change,
                    });
                }
                let thermal = EXPANSION * 50.0;
                let tensors = recover(comm, &model, |x| x.map(|x| thermal * x));
                for node in 0..model.mesh.nodes.n_local() {
                    let scale = YOUNG * thermal;
                    assert!(
                        tensors
                            .stress_at(node, 0)
                            .iter()
                            .all(|s| s.abs() < 1e-11 * scale)
                    );
                    assert_close(&tensors.strain_at(node, 0)[..3], &[thermal; 3], 1e-13);
                }
            });
        }
    }

    #[test]
    fn a_node_has_the_plain_mean_of_its_cells() {
        let comm = Comm::alone();
        let model = model(split(
            &comm,
            &distorted_box(CellType::Tet4, [2, 2, 2], false),
        ));
        let u = sample(&model.mesh, wavy);
        let deformation = Deformation::new(&model, &u);
        let mut by_node: BTreeMap<u32, Vec<[f64; 6]>> = BTreeMap::new();
        for cell in 0..model.mesh.n_cells() {
            for &node in model.mesh.cells.nodes_of(cell) {
                by_node
                    .entry(node)
                    .or_default()
                    .push(deformation.recovery_strains(cell).0[0]);
            }
        }
        let tensors = recover(&comm, &model, wavy);
        for (node, strains) in by_node {
            let mean: Vec<f64> = (0..6)
                .map(|i| strains.iter().map(|s| s[i]).sum::<f64>() / strains.len() as f64)
                .collect();
            assert_close(&tensors.strain_at(node as usize, 0), &mean, 1e-15);
        }
    }

    /// Means with bits of their numbers, by global node and material, of owned and ghost nodes.
    fn by_global_node(model: &Model, tensors: &NodalTensors) -> Vec<((u64, u16), Mean)> {
        let mut all = Vec::new();
        for node in 0..model.mesh.nodes.n_local() {
            let global = model.mesh.nodes.global(node);
            all.extend(
                tensors
                    .materials_of(node)
                    .iter()
                    .map(|&m| ((global, m), *tensors.mean(node, m))),
            );
        }
        all
    }

    #[test]
    fn ranks_agree_and_ghosts_have_the_bits_of_their_owners() {
        let mesh = mixed_mesh();
        let thirds = |model: &mut Model| {
            let ids = &model.mesh.cell_ids;
            model.cell_material = ids.iter().map(|id| (id % 3) as u16).collect();
            model.materials = vec![model.materials[0].clone(); 3];
            let cells = (0..ids.len() as u32)
                .filter(|&cell| ids[cell as usize].is_multiple_of(2))
                .collect();
            model.loads = vec![Load::TemperatureChange {
                cells,
                change: 10.0,
            }];
        };
        let alone = Comm::alone();
        let mut whole = model(split(&alone, &mesh));
        thirds(&mut whole);
        let expected: BTreeMap<_, _> = by_global_node(&whole, &recover(&alone, &whole, wavy))
            .into_iter()
            .collect();
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let mut part = model(split(comm, &mesh));
                thirds(&mut part);
                let found = by_global_node(&part, &recover(comm, &part, wavy));
                let mine = part.mesh.nodes.offset()
                    ..part.mesh.nodes.offset() + part.mesh.nodes.n_owned() as u64;
                let numbers: Vec<[u64; 10]> = (found.iter())
                    .map(|((node, m), mean)| {
                        std::array::from_fn(|i| match i {
                            0 => *node,
                            1 => u64::from(*m),
                            _ => mean[i - 2].to_bits(),
                        })
                    })
                    .collect();
                let all = comm.all_gather(numbers.as_flattened()).concat();
                for entry in all
                    .chunks_exact(10)
                    .filter(|entry| mine.contains(&entry[0]))
                {
                    assert!(
                        numbers.iter().any(|own| own == entry),
                        "a ghost differs from its owner"
                    );
                }
                for (key, mean) in &found {
                    assert_close(mean, &expected[key], 1e-13);
                }
                let n_pairs = comm
                    .sum_u64(found.iter().filter(|((n, _), _)| mine.contains(n)).count() as u64);
                assert_eq!(n_pairs, expected.len() as u64);
            });
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        let comm = Comm::alone();
        let model = model(split(&comm, &mixed_mesh()));
        let with = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(n_threads)
                .build()
                .unwrap();
            pool.install(|| recover(&Comm::alone(), &model, wavy).means)
        };
        let one = with(1);
        assert_eq!(one, with(2));
        assert_eq!(one, with(5));
    }
}
