//! Local systems of axes at nodes: what is prescribed, loaded or written in equations there is in their directions.
//!
//! Invariant: knows coordinates and directions; no matrix.

use super::{Equation, Preparation};
use crate::model::Load;
use crate::resolve::Names;
use fem_io::case::{Case, SystemInput};
use fem_io::check::SetUse;
use fem_mesh::{LocalMesh, Result};
use nalgebra::Vector3;
use std::collections::BTreeMap;

/// Axes of a system: row k is the direction of local component k.
pub type Frame = [[f64; 3]; 3];

/// Direction cosines closer to 0 than this are 0.
const STRAIGHT: f64 = 1e-14;
/// A node closer to the axis of a cylindrical system, relative to its distance from the first point, is on it.
const ON_AXIS: f64 = 1e-12;

/// The axes of `system` at `x`. On the axis of a cylindrical system any direction across it serves as radial.
pub(super) fn frame(system: &SystemInput, x: [f64; 3]) -> Frame {
    let rows = match *system {
        SystemInput::Rectangular { a, b } => {
            let (a, b) = (Vector3::from(a), Vector3::from(b));
            let e1 = a.normalize();
            let e3 = a.cross(&b).normalize();
            [e1, e3.cross(&e1), e3]
        }
        SystemInput::Cylindrical { a, b } => {
            let (a, b, x) = (Vector3::from(a), Vector3::from(b), Vector3::from(x));
            let e3 = (b - a).normalize();
            let arm = x - a;
            let radius = arm - e3 * e3.dot(&arm);
            let e1 = if radius.norm() > ON_AXIS * arm.norm().max((b - a).norm()) {
                radius.normalize()
            } else {
                across(e3)
            };
            [e1, e3.cross(&e1), e3]
        }
    };
    rows.map(|row| <[f64; 3]>::from(row).map(|c: f64| if c.abs() < STRAIGHT { 0.0 } else { c }))
}

/// A unit vector across `axis`.
pub(super) fn across(axis: Vector3<f64>) -> Vector3<f64> {
    let least = axis.iamin();
    let other = Vector3::ith(least, 1.0);
    (other - axis * axis.dot(&other)).normalize()
}

/// Index of the `[[transform]]` of each local node that has one.
///
/// # Errors
/// A node with two.
pub fn frames_of_nodes(case: &Case, names: &Names) -> Result<BTreeMap<u32, Frame>> {
    let mut frames: BTreeMap<u32, Frame> = BTreeMap::new();
    for transform in &case.links.transforms {
        for node in names.nodes(&transform.on, SetUse::Constraint) {
            let here = frame(&transform.system, names.mesh.coords[node as usize]);
            if let Some(before) = frames.insert(node, here)
                && before != here
            {
                let id = names.mesh.node_ids[node as usize];
                let what = format!("node {id} has two local systems");
                return Err(case
                    .error_at(transform.place, what)
                    .expected("one [[transform]] for each node"));
            }
        }
    }
    Ok(frames)
}

/// Terms of local component `component` at a node: global degree of freedom and direction cosine.
pub(super) fn local_terms(
    node: u64,
    frame: Option<&Frame>,
    component: usize,
) -> impl Iterator<Item = (u64, f64)> {
    let mut axis = [0.0; 3];
    match frame {
        Some(frame) => axis = frame[component],
        None => axis[component] = 1.0,
    }
    // The largest first: it is the one to solve for.
    let mut order = [0, 1, 2];
    order.sort_by(|&i, &j| axis[j].abs().total_cmp(&axis[i].abs()));
    let terms = order.map(move |i| (3 * node + i as u64, axis[i]));
    terms.into_iter().filter(|(_, cosine)| *cosine != 0.0)
}

/// Prescribed values of local components, turned to global ones: values of global components where the axes allow it,
/// and equations of owned nodes where they do not. `fixed` ascends.
pub(super) fn turn_prescribed(
    mesh: &LocalMesh,
    prepared: &Preparation,
    fixed: &[(u32, f64)],
    origin: u32,
) -> (Vec<(u32, f64)>, Vec<Equation>) {
    let mut turned = Vec::with_capacity(fixed.len());
    let mut equations = Vec::new();
    for of_node in fixed.chunk_by(|a, b| a.0 / 3 == b.0 / 3) {
        let node = of_node[0].0 / 3;
        let Some(frame) = prepared.frames.get(&node) else {
            turned.extend_from_slice(of_node);
            continue;
        };
        if of_node.len() == 3 {
            let value = |i: usize| (0..3).map(|k| frame[k][i] * of_node[k].1).sum();
            turned.extend((0..3).map(|i| (3 * node + i as u32, value(i))));
            continue;
        }
        for &(dof, value) in of_node {
            let global = mesh.nodes.global(node as usize);
            let terms: Vec<(u64, f64)> =
                local_terms(global, Some(frame), dof as usize % 3).collect();
            match terms[..] {
                [(global_dof, cosine)] => {
                    turned.push((3 * node + (global_dof % 3) as u32, value / cosine))
                }
                _ if (node as usize) < mesh.nodes.n_owned() => equations.push(Equation {
                    terms,
                    constant: value,
                    origin,
                }),
                _ => {}
            }
        }
    }
    turned.sort_by_key(|(dof, _)| *dof);
    (turned, equations)
}

/// Nodal forces with those at nodes that have local axes turned to global directions.
pub(super) fn turn_forces(prepared: &Preparation, loads: Vec<Load>) -> Vec<Load> {
    if prepared.frames.is_empty() {
        return loads;
    }
    let mut turned = Vec::with_capacity(loads.len());
    for load in loads {
        let Load::NodalForce { nodes, force } = load else {
            turned.push(load);
            continue;
        };
        let (local, global): (Vec<u32>, Vec<u32>) = nodes
            .into_iter()
            .partition(|node| prepared.frames.contains_key(node));
        turned.push(Load::NodalForce {
            nodes: global,
            force,
        });
        for node in local {
            let frame = &prepared.frames[&node];
            let force = [0, 1, 2].map(|i| (0..3).map(|k| frame[k][i] * force[k]).sum());
            turned.push(Load::NodalForce {
                nodes: vec![node],
                force,
            });
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::frame;
    use fem_io::case::SystemInput;

    #[test]
    fn axes_are_orthonormal_and_point_where_they_should() {
        let rectangular = SystemInput::Rectangular {
            a: [0.0, 2.0, 0.0],
            b: [-1.0, 5.0, 0.0],
        };
        let expected = [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
        assert_eq!(frame(&rectangular, [7.0; 3]), expected);
        let cylindrical = SystemInput::Cylindrical {
            a: [1.0, 1.0, 0.0],
            b: [1.0, 1.0, 4.0],
        };
        let at = |x| frame(&cylindrical, x);
        assert_eq!(at([1.0, 3.0, 9.0]), expected);
        assert_eq!(
            at([3.0, 1.0, 9.0]),
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        );
        let on_axis = at([1.0, 1.0, 2.0]);
        for (i, a) in on_axis.iter().enumerate() {
            for (j, b) in on_axis.iter().enumerate() {
                let product: f64 = (0..3).map(|k| a[k] * b[k]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-14);
            }
        }
    }
}
