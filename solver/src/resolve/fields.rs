//! Axes of material by cell and temperatures by node, from the tables of the case.
//!
//! Invariant: names become local numbers; what a temperature or an axis does is not known here.

use super::Names;
use crate::model::{GLOBAL_AXES, Temperatures};
use fem_io::case::{Case, TemperatureInput, TemperatureValue};
use fem_io::check::SetUse;
use fem_mesh::{Comm, Halo, LocalMesh, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Collective. Index of the orientation of each local cell; empty if the case has none.
pub(super) fn cell_orientation(comm: &Comm, case: &Case, names: &Names) -> Result<Vec<u16>> {
    if case.orientations.is_empty() {
        return Ok(Vec::new());
    }
    comm.all_ok(claimed_cells(case, names))
}

fn claimed_cells(case: &Case, names: &Names) -> Result<Vec<u16>> {
    let mut of_cells = vec![GLOBAL_AXES; names.mesh.n_cells()];
    for (index, orientation) in case.orientations.iter().enumerate() {
        for cell in names.cells(&orientation.elements, SetUse::Orientation) {
            let slot = &mut of_cells[cell as usize];
            if let Some(other) = case.orientations.get(usize::from(*slot)) {
                let what = format!(
                    "element {} has two orientations, \"{}\" and \"{}\"",
                    names.mesh.cell_ids[cell as usize], other.name, orientation.name
                );
                return Err(case
                    .error_at(orientation.place, what)
                    .expected("at most one orientation for each element"));
            }
            *slot = index as u16;
        }
    }
    Ok(of_cells)
}

/// Collective. Temperatures of the local nodes; `None` if the case gives none.
pub(super) fn temperatures(
    comm: &Comm,
    case: &Case,
    names: &Names,
) -> Result<Option<Temperatures>> {
    if case.temperatures.is_empty() {
        return Ok(None);
    }
    let n_nodes = names.mesh.nodes.n_local();
    let mut temperatures = Temperatures {
        initial: vec![f64::NAN; n_nodes],
        current: vec![f64::NAN; n_nodes],
    };
    for input in &case.temperatures {
        let before = (input.share < 1.0).then(|| temperatures.current.clone());
        let values = if input.initial {
            &mut temperatures.initial
        } else {
            &mut temperatures.current
        };
        match &input.value {
            TemperatureValue::Field(field) => {
                for node in names.nodes(&input.on, SetUse::Temperature) {
                    values[node as usize] = field.value_at(names.mesh.coords[node as usize]);
                }
            }
            TemperatureValue::ByNode(given) => {
                let found = set_by_node(names.mesh, given, values);
                check_found(comm, case, input, given, found)?;
            }
        }
        if let Some(before) = before {
            go_part_of_the_way(&mut temperatures, &before, input.share);
        }
    }
    // A ghost can belong to a set through cells that are not on this rank.
    let halo = Halo::new(comm, &names.mesh.nodes);
    for values in [&mut temperatures.initial, &mut temperatures.current] {
        let (owned, ghosts) = values.split_at_mut(names.mesh.nodes.n_owned());
        halo.forward(comm, owned, ghosts, 1);
    }
    Ok(Some(temperatures))
}

/// Takes the current temperatures that a table has changed back to a share of the way from `before`, or from the initial
/// ones where there were none.
fn go_part_of_the_way(temperatures: &mut Temperatures, before: &[f64], share: f64) {
    let initial = &temperatures.initial;
    let nodes = temperatures.current.iter_mut().zip(before).zip(initial);
    for ((current, &before), &initial) in nodes {
        if current.to_bits() != before.to_bits() {
            let from = if before.is_nan() { initial } else { before };
            *current = from + (*current - from) * share;
        }
    }
}

/// Sets the values of the owned nodes among those given by number; returns the numbers found.
fn set_by_node(mesh: &LocalMesh, given: &[(u64, f64)], values: &mut [f64]) -> BTreeSet<u64> {
    let ids = mesh.node_ids[..mesh.nodes.n_owned()].iter();
    let local: BTreeMap<u64, usize> = ids.enumerate().map(|(node, &id)| (id, node)).collect();
    let mut found = BTreeSet::new();
    for &(id, value) in given {
        if let Some(&node) = local.get(&id) {
            values[node] = value;
            found.insert(id);
        }
    }
    found
}

/// Collective. An error if a node number given is that of no node.
fn check_found(
    comm: &Comm,
    case: &Case,
    input: &TemperatureInput,
    given: &[(u64, f64)],
    found: BTreeSet<u64>,
) -> Result<()> {
    let numbers: BTreeSet<u64> = given.iter().map(|(id, _)| *id).collect();
    if comm.sum_u64(found.len() as u64) == numbers.len() as u64 {
        return Ok(());
    }
    let found = found.into_iter().collect::<Vec<_>>();
    let found: BTreeSet<u64> = comm.all_gather(&found).concat().into_iter().collect();
    let missing: Vec<String> = (numbers.difference(&found).take(10))
        .map(u64::to_string)
        .collect();
    let what = format!(
        "`by_node` names nodes that the mesh does not have: {}",
        missing.join(", ")
    );
    Err(case
        .error_at(input.place, what)
        .expected("numbers of nodes of the mesh file"))
}

#[cfg(test)]
mod tests {
    use super::super::{Resolved, resolve};
    use crate::assembly::test_models::{distorted_box, split};
    use crate::model::GLOBAL_AXES;
    use fem_io::case::parse;
    use fem_mesh::comm::run_threads;
    use fem_mesh::{CellType, Comm, Error};
    use std::path::Path;

    const HEAD: &str = "[mesh]\nfile = \"a.msh\"\n[[material]]\nname = \"m\"\nyoung = 1\npoisson = 0\n\
                        [[set]]\nname = \"low\"\nelements_in_box = { max = [\"inf\", \"inf\", 1.1] }\n\
                        [[set]]\nname = \"bottom\"\nnodes_in_box = { max = [\"inf\", \"inf\", 0.0] }\n";

    fn resolved(comm: &Comm, keys: &str) -> Result<Resolved, Error> {
        let case = parse(Path::new("case.toml"), &format!("{HEAD}{keys}")).unwrap();
        let mesh = distorted_box(CellType::Hex8, [2, 2, 2], false);
        resolve(comm, &case, split(comm, &mesh))
    }

    #[test]
    fn orientations_claim_cells_once() {
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let one = "[[orientation]]\nname = \"x\"\nelements = \"low\"\na = [1, 0, 0]\nb = [0, 1, 0]\n";
                let model = resolved(comm, one).unwrap().model;
                for (cell, orientation) in model.cell_orientation.iter().enumerate() {
                    let nodes = model.mesh.cells.nodes_of(cell);
                    let low = nodes
                        .iter()
                        .all(|&n| model.mesh.coords[n as usize][2] < 1.1);
                    assert_eq!(*orientation, if low { 0 } else { GLOBAL_AXES });
                }
                let two = one.replace("\"x\"", "\"y\"").replace("\"low\"", "\"all\"");
                let error = resolved(comm, &format!("{one}{two}")).err().unwrap();
                assert!(
                    error
                        .to_string()
                        .contains("has two orientations, \"x\" and \"y\""),
                    "{error}"
                );
            });
        }
    }

    #[test]
    fn later_temperatures_count_and_ghosts_have_those_of_their_owners() {
        let keys = "[[temperature]]\non = \"all\"\nvalue = { value = 5, gradient = [1, 0, 0] }\n\
                    [[temperature]]\non = \"bottom\"\nvalue = 40\n\
                    [[temperature]]\nby_node = [[1, 7.0]]\n\
                    [[temperature]]\non = \"bottom\"\nvalue = 3\ninitial = true\n";
        for n_ranks in 1..=4 {
            run_threads(n_ranks, |comm| {
                let model = resolved(comm, keys).unwrap().model;
                let temperatures = model.temperatures.unwrap();
                for (node, x) in model.mesh.coords.iter().enumerate() {
                    let bottom = x[2] < 1e-9;
                    let expected = match (model.mesh.node_ids[node], bottom) {
                        (1, _) => 7.0,
                        (_, true) => 40.0,
                        (_, false) => 5.0 + x[0],
                    };
                    assert_eq!(temperatures.current[node], expected);
                    let initial = temperatures.initial[node];
                    assert!(if bottom {
                        initial == 3.0
                    } else {
                        initial.is_nan()
                    });
                }
                let keys = "[[temperature]]\nby_node = [[1, 7.0], [99, 0.0], [12345, 1]]\n";
                let error = resolved(comm, keys).err().unwrap();
                assert!(
                    error.to_string().contains("does not have: 99, 12345"),
                    "{error}"
                );
            });
        }
    }
}
