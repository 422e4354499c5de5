//! Strain and stress at the nodes, averaged over the cells of one material.
//!
//! Each cell extrapolates the strains of its recovery points to its nodes; a node takes the plain mean over the cells
//! that touch it, for each material of its own: at an interface it has a value on either side. The stress follows
//! from the means of strain and temperature by the law, which is the mean of the stresses since the law is linear.
//! An owned node sees all its cells locally; ghost nodes get the means of their owners.
//!
//! Invariant: each (node, material) sums its cells in ascending local order, whatever the number of threads.

use super::stress::{Deformation, extrapolation, node_slabs};
use crate::assembly::slabs::cells_touching;
use crate::material::Isotropic;
use crate::model::Model;
use fem_mesh::{Comm, Halo};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Sum or mean over cells: strain (6), change of temperature in K, number of cells.
type Mean = [f64; 8];
const TEMPERATURE: usize = 6;
const N_CELLS: usize = 7;
/// In messages: a node with fewer materials than others.
const NO_MATERIAL: u16 = u16::MAX;

/// Strain and stress of each local node, ghosts included, for each material whose cells touch it.
pub struct NodalTensors {
    laws: Vec<Isotropic>,
    pairs: Pairs,
    means: Vec<Mean>,
}

/// The (node, material) pairs: those of node n are `materials[start[n]..start[n + 1]]`, ascending.
#[derive(Default)]
struct Pairs {
    start: Vec<usize>,
    materials: Vec<u16>,
}

/// Collective. Strain and stress at all local nodes from the displacement `u`, m, 3 a local node (owned nodes first,
/// then ghosts). `halo` is that of the nodes.
pub fn compute_nodal_tensors(comm: &Comm, model: &Model, halo: &Halo, u: &[f64]) -> NodalTensors {
    let deformation = Deformation::new(model, u);
    let mut pairs = Pairs::of_owned_nodes(model);
    let mut means = average(&deformation, &pairs);
    receive_ghosts(comm, model.mesh.nodes.n_ghosts(), halo, &mut pairs, &mut means);
    NodalTensors { laws: deformation.laws().to_vec(), pairs, means }
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
        let temperature_change = self.mean(node, material)[TEMPERATURE];
        self.laws[usize::from(material)].stress(&self.strain_at(node, material), temperature_change)
    }

    fn mean(&self, node: usize, material: u16) -> &Mean {
        match self.pairs.find(node, material) {
            Some(at) => &self.means[at],
            None => panic!("no cell of material {material} touches local node {node}"),
        }
    }
}

impl Pairs {
    fn of_owned_nodes(model: &Model) -> Self {
        let (cells, n_owned) = (&model.mesh.cells, model.mesh.nodes.n_owned());
        // Most nodes have one material: remembering the last leaves about one pair a node to sort.
        let mut last = vec![NO_MATERIAL; n_owned];
        let mut pairs: Vec<(u32, u16)> = Vec::with_capacity(n_owned);
        for (cell, &material) in model.cell_material.iter().enumerate() {
            for &node in cells.nodes_of(cell) {
                if let Some(last) = last.get_mut(node as usize).filter(|last| **last != material) {
                    *last = material;
                    pairs.push((node, material));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut by_node = Pairs { start: vec![0], materials: Vec::with_capacity(pairs.len()) };
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

/// Means of the owned nodes.
fn average(deformation: &Deformation, pairs: &Pairs) -> Vec<Mean> {
    let cells = &deformation.model.mesh.cells;
    let mut means = vec![[0.0; 8]; pairs.materials.len()];
    let slabs = node_slabs(&deformation.model.mesh);
    let parts = slabs.split(&mut means, |node| pairs.start[node]);
    let jobs: Vec<_> = slabs.rows().zip(parts).collect();
    jobs.into_par_iter().for_each(|(nodes, sums)| {
        let first = pairs.start[nodes.start];
        for cell in cells_touching(cells, nodes.clone()) {
            let (strains, n_points) = deformation.recovery_strains(cell);
            let temperature = deformation.temperature_change(cell);
            let material = deformation.model.cell_material[cell];
            let weights = extrapolation(cells.types[cell]).chunks_exact(n_points);
            for (&node, weights) in cells.nodes_of(cell).iter().zip(weights) {
                if !nodes.contains(&(node as usize)) {
                    continue;
                }
                let Some(at) = pairs.find(node as usize, material) else { continue };
                add(&mut sums[at - first], &strains[..n_points], weights, temperature);
            }
        }
        for sum in sums {
            let n_cells = sum[N_CELLS];
            sum[..N_CELLS].iter_mut().for_each(|value| *value /= n_cells);
        }
    });
    means
}

/// Adds what one cell says about a node.
fn add(sum: &mut Mean, strains: &[[f64; 6]], weights: &[f64], temperature: f64) {
    let mut strain = [0.0; 6];
    for (point, weight) in strains.iter().zip(weights) {
        for i in 0..6 {
            strain[i] += weight * point[i];
        }
    }
    for i in 0..6 {
        sum[i] += strain[i];
    }
    sum[TEMPERATURE] += temperature;
    sum[N_CELLS] += 1.0;
}

/// Collective. Appends the materials and means of the ghost nodes, one material of each node at a time.
fn receive_ghosts(comm: &Comm, n_ghosts: usize, halo: &Halo, pairs: &mut Pairs, means: &mut Vec<Mean>) {
    let n_owned = pairs.start.len() - 1;
    let widest = (0..n_owned).map(|node| pairs.of(node).len()).max().unwrap_or(0);
    let n_passes = comm.max(widest as f64) as usize;
    let passes: Vec<(Vec<u16>, Vec<Mean>)> = (0..n_passes)
        .map(|pass| {
            let at: Vec<Option<usize>> = (0..n_owned).map(|node| pairs.of(node).nth(pass)).collect();
            let materials: Vec<u16> = at.iter().map(|at| at.map_or(NO_MATERIAL, |at| pairs.materials[at])).collect();
            let values: Vec<Mean> = at.iter().map(|at| at.map_or([0.0; 8], |at| means[at])).collect();
            let mut ghosts = (vec![NO_MATERIAL; n_ghosts], vec![[0.0; 8]; n_ghosts]);
            halo.forward(comm, &materials, &mut ghosts.0, 1);
            halo.forward(comm, values.as_flattened(), ghosts.1.as_flattened_mut(), 8);
            ghosts
        })
        .collect();
    for ghost in 0..n_ghosts {
        let here = || passes.iter().map(|(m, v)| (m[ghost], v[ghost])).take_while(|(m, _)| *m != NO_MATERIAL);
        pairs.push(here().map(|(material, _)| material));
        means.extend(here().map(|(_, mean)| mean));
    }
}
