//! The `[[element]]` tables of a case on this rank's cells, and what the user should know of the formulations in use.
//!
//! Invariant: decides which formulation a cell has, not what it does.

use crate::element::Formulation;
use crate::element::formulation::is_available;
use crate::resolve::Names;
use fem_io::case::{Case, ElementInput};
use fem_io::check::SetUse;
use fem_mesh::{CellType, Comm, LocalMesh, Result};

/// Poisson's ratio above which fully integrated linear elements are known to lock.
const LOCKING_POISSON: f64 = 0.49;

/// Collective. Formulation of each local cell, and warnings, the same on every rank.
///
/// # Errors
/// An element has two formulations; a formulation that none of the elements of its table has.
pub fn cell_formulations(
    comm: &Comm,
    case: &Case,
    names: &Names,
) -> Result<(Vec<Formulation>, Vec<String>)> {
    let mut formulations = vec![Formulation::Full; names.mesh.n_cells()];
    let mut tables: Vec<Option<usize>> = vec![None; names.mesh.n_cells()];
    let mut warnings = Vec::new();
    for (table, input) in case.elements.iter().enumerate() {
        let cells = names.cells(&input.elements, SetUse::Material);
        let other = |cell: &u32| tables[*cell as usize].map(|t| case.elements[t].formulation);
        let differs = |cell: &&u32| other(cell).is_some_and(|f| f != input.formulation);
        let ids = cells
            .iter()
            .filter(differs)
            .map(|&c| names.mesh.cell_ids[c as usize]);
        refuse_second(comm, case, input, ids.min())?;
        for &cell in &cells {
            tables[cell as usize] = Some(table);
            if is_available(names.mesh.cells.types[cell as usize], input.formulation) {
                formulations[cell as usize] = input.formulation;
            }
        }
        warnings.extend(warn_of_others(comm, case, input, names.mesh, &cells)?);
    }
    Ok((formulations, warnings))
}

/// Collective. An error if any rank has an element that another table gives another formulation.
fn refuse_second(comm: &Comm, case: &Case, input: &ElementInput, id: Option<u64>) -> Result<()> {
    let first = comm.all_gather(&[id.unwrap_or(u64::MAX)]).concat();
    match first.into_iter().min() {
        Some(id) if id != u64::MAX => {
            let what = format!("element {id} has two formulations");
            let error = case.error_at(input.place, what);
            Err(error.expected("one formulation for each element"))
        }
        _ => Ok(()),
    }
}

/// Collective. Names the types of a table that lack its formulation.
///
/// # Errors
/// No element of the table has it.
fn warn_of_others(
    comm: &Comm,
    case: &Case,
    input: &ElementInput,
    mesh: &LocalMesh,
    cells: &[u32],
) -> Result<Option<String>> {
    let owned = |c: &&u32| (**c as usize) < mesh.n_owned_cells;
    let mut counts = CellType::SOLIDS.map(|_| 0.0);
    for &cell in cells.iter().filter(owned) {
        let cell_type = mesh.cells.types[cell as usize];
        if let Some(at) = CellType::SOLIDS.iter().position(|t| *t == cell_type) {
            counts[at] += 1.0;
        }
    }
    comm.sum_into(&mut counts);
    let (mut lacking, mut n_fitting) = (Vec::new(), 0.0);
    for (cell_type, n) in CellType::SOLIDS.into_iter().zip(counts) {
        if is_available(cell_type, input.formulation) {
            n_fitting += n;
        } else if n > 0.0 {
            lacking.push(format!("{n} {cell_type}"));
        }
    }
    if lacking.is_empty() {
        return Ok(None);
    }
    let name = input.formulation.name();
    let lacking = lacking.join(", ");
    if n_fitting == 0.0 {
        let types = input.formulation.cell_types().iter();
        let types: Vec<&str> = types.map(|t| t.name()).collect();
        let what = format!("formulation \"{name}\" is none of the elements here ({lacking})");
        let error = case.error_at(input.place, what);
        return Err(error
            .expected(format!("elements of type {}", types.join(", ")))
            .advice("leave the table out for elements that are integrated fully"));
    }
    Ok(Some(format!(
        "formulation \"{name}\" does not exist for {lacking} elements: they are integrated fully"
    )))
}

/// Collective. Warnings about nearly incompressible material in elements that lock there.
pub fn locking_warnings(
    comm: &Comm,
    case: &Case,
    mesh: &LocalMesh,
    cell_material: &[u16],
    cell_formulation: &[Formulation],
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, material) in case
        .materials
        .iter()
        .enumerate()
        .filter(|(_, m)| m.poisson().is_some_and(|nu| nu > LOCKING_POISSON))
    {
        for cell_type in [
            CellType::Tet4,
            CellType::Hex8,
            CellType::Wedge6,
            CellType::Pyramid5,
        ] {
            let locks = |c: &usize| {
                usize::from(cell_material[*c]) == index
                    && mesh.cells.types[*c] == cell_type
                    && cell_formulation[*c] == Formulation::Full
            };
            let n = comm.sum_u64((0..mesh.n_owned_cells).filter(locks).count() as u64);
            if n > 0 {
                let advice = if is_available(cell_type, Formulation::BBar) {
                    "use second-order elements, or formulation \"b_bar\" in an [[element]] table"
                } else {
                    "use second-order elements"
                };
                warnings.push(format!(
                    "material \"{}\" is nearly incompressible (poisson {}) in {n} {cell_type} elements, which lock \
                     there: displacements come out several times too small; {advice}",
                    material.name, material.poisson().unwrap_or_default()
                ));
            }
        }
    }
    warnings
}
