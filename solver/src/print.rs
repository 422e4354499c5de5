//! The tables of the `.dat` file: values of a solution over sets, gathered on rank 0 in the order of the input's numbers.
//!
//! Invariant: reads the solution; the layout is that of [`fem_io::printed`].

use crate::analysis::linear_static::Solution;
use crate::model::{GLOBAL_AXES, Model};
use crate::post::internal_force;
use crate::post::points::{CellPoint, cell_points};
use crate::post::section::section_forces;
use crate::post::stress::Deformation;
use crate::resolve::Resolved;
use bytemuck::{Pod, Zeroable};
use fem_io::case::{Case, Frame, PrintKind, PrintQuantity, PrintRequest, PrintTotals};
use fem_io::check::SetUse;
use fem_io::printed::{Printed, PrintedRow};
use fem_mesh::Comm;

/// Rows that a rank sends at a time.
const ROWS_AT_A_TIME: usize = 1 << 20;

/// A row as ranks send it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Row {
    id: u64,
    point: u64,
    values: [f64; 6],
}

/// Collective. Appends all that the case prints of a frame; the text grows on rank 0.
pub fn print_frame(
    comm: &Comm,
    case: &Case,
    resolved: &Resolved,
    solution: &Solution,
    (frame, time): (&Frame, f64),
    printed: &mut Printed,
) {
    if case.prints.is_empty() {
        return;
    }
    printed.start_frame(frame);
    let wants_forces = case
        .prints
        .iter()
        .any(|print| print.quantities.contains(&PrintQuantity::Rf));
    let forces = if wants_forces {
        internal_force(&resolved.model, &solution.displacement)
    } else {
        Vec::new()
    };
    for print in &case.prints {
        match print.kind {
            PrintKind::Section => {
                let faces = resolved
                    .names()
                    .faces(std::slice::from_ref(&print.set), SetUse::SurfaceLoad);
                let section = section_forces(comm, &resolved.model, &solution.tensors, &faces);
                printed.add_section(&print.set, time, &section);
            }
            _ => {
                for &quantity in &print.quantities {
                    let here = match print.kind {
                        PrintKind::Nodes => of_nodes(resolved, solution, &forces, print, quantity),
                        _ => of_elements(resolved, solution, print, quantity),
                    };
                    let rows = gather(comm, here, n_values(quantity));
                    add(printed, print, quantity, time, &rows);
                }
            }
        }
    }
}

fn add(
    printed: &mut Printed,
    print: &PrintRequest,
    quantity: PrintQuantity,
    time: f64,
    rows: &[PrintedRow],
) {
    let can_sum = matches!(
        quantity,
        PrintQuantity::Rf | PrintQuantity::Else | PrintQuantity::Evol
    );
    if print.totals != PrintTotals::Only || !can_sum {
        printed.add_table(quantity, &print.set, time, rows);
    }
    if print.totals != PrintTotals::No && can_sum {
        printed.add_total(quantity, &print.set, time, rows);
    }
}

const fn n_values(quantity: PrintQuantity) -> usize {
    match quantity {
        PrintQuantity::U | PrintQuantity::Rf | PrintQuantity::Coord => 3,
        PrintQuantity::S | PrintQuantity::E | PrintQuantity::Me => 6,
        _ => 1,
    }
}

/// Rows of the owned nodes of a set.
fn of_nodes(
    resolved: &Resolved,
    solution: &Solution,
    forces: &[f64],
    print: &PrintRequest,
    quantity: PrintQuantity,
) -> Vec<Row> {
    let model = &resolved.model;
    let mesh = &model.mesh;
    let nodes = resolved
        .names()
        .nodes(std::slice::from_ref(&print.set), SetUse::Temperature);
    let owned = nodes
        .into_iter()
        .filter(|&node| (node as usize) < mesh.nodes.n_owned());
    let row = |node: u32| {
        let k = node as usize;
        let three = |values: &[f64]| -> [f64; 3] { [0, 1, 2].map(|i| values[3 * k + i]) };
        let vector = match quantity {
            PrintQuantity::U => three(&solution.displacement),
            PrintQuantity::Rf => three(forces),
            _ => [temperature(model, k), 0.0, 0.0],
        };
        let axes = resolved.node_axes().get(&node);
        let vector = match axes.filter(|_| !print.global && quantity != PrintQuantity::Nt) {
            Some(axes) => axes.map(|axis| (0..3).map(|i| axis[i] * vector[i]).sum()),
            None => vector,
        };
        let mut values = [0.0; 6];
        values[..3].copy_from_slice(&vector);
        Row {
            id: mesh.node_ids[k],
            point: 0,
            values,
        }
    };
    owned.map(row).collect()
}

/// The temperature that the case gives a node, 0 if it gives none.
fn temperature(model: &Model, node: usize) -> f64 {
    let Some(temperatures) = &model.temperatures else {
        return 0.0;
    };
    let given = [temperatures.current[node], temperatures.initial[node]];
    given.into_iter().find(|t| !t.is_nan()).unwrap_or(0.0)
}

/// Rows of the owned elements of a set, or of their integration points.
fn of_elements(
    resolved: &Resolved,
    solution: &Solution,
    print: &PrintRequest,
    quantity: PrintQuantity,
) -> Vec<Row> {
    let model = &resolved.model;
    let mesh = &model.mesh;
    let deformation = Deformation::new(model, &solution.displacement);
    let cells = resolved
        .names()
        .cells(std::slice::from_ref(&print.set), SetUse::BodyLoad);
    let mut rows = Vec::new();
    for cell in cells.into_iter().map(|cell| cell as usize) {
        if cell >= mesh.n_owned_cells {
            continue;
        }
        let id = mesh.cell_ids[cell];
        let points = cell_points(&deformation, cell);
        let sum = |f: fn(&CellPoint) -> f64| points.iter().map(f).sum::<f64>();
        match quantity {
            PrintQuantity::Else => {
                let hourglass = deformation
                    .general(cell)
                    .map_or(0.0, |g| g.element.hourglass_energy(&g.u));
                let energy = sum(|p| p.volume * p.energy_density) + hourglass;
                rows.push(whole(id, energy));
            }
            PrintQuantity::Evol => rows.push(whole(id, sum(|p| p.volume))),
            _ => rows.extend(points.iter().zip(1..).map(|(point, number)| Row {
                id,
                point: number,
                values: of_point(model, cell, point, print.global, quantity),
            })),
        }
    }
    rows
}

fn whole(id: u64, value: f64) -> Row {
    let mut values = [0.0; 6];
    values[0] = value;
    Row {
        id,
        point: 0,
        values,
    }
}

/// In CalculiX's order xx yy zz xy xz yz, shears of strains as of the tensor.
fn of_point(
    model: &Model,
    cell: usize,
    point: &CellPoint,
    global: bool,
    quantity: PrintQuantity,
) -> [f64; 6] {
    let (voigt, shear) = match quantity {
        PrintQuantity::S => (point.stress, 1.0),
        PrintQuantity::E => (point.strain, 0.5),
        PrintQuantity::Me => (point.mechanical_strain, 0.5),
        PrintQuantity::Ener => return [point.energy_density, 0.0, 0.0, 0.0, 0.0, 0.0],
        _ => return [point.x[0], point.x[1], point.x[2], 0.0, 0.0, 0.0],
    };
    let [xx, yy, zz, xy, yz, zx] = voigt;
    let mut tensor = [xx, yy, zz, shear * xy, shear * zx, shear * yz];
    let orientation = model.cell_orientation.get(cell).copied();
    if let Some(k) = orientation.filter(|&k| !global && k != GLOBAL_AXES) {
        let axes = model.orientations[k as usize].axes_at(point.x);
        tensor = turned(&tensor, &axes);
    }
    tensor
}

/// Components xx yy zz xy xz yz of a tensor along other axes.
fn turned(t: &[f64; 6], axes: &[[f64; 3]; 3]) -> [f64; 6] {
    let full = [[t[0], t[3], t[4]], [t[3], t[1], t[5]], [t[4], t[5], t[2]]];
    let along = |a: usize, b: usize| -> f64 {
        (0..3)
            .map(|i| axes[a][i] * (0..3).map(|j| full[i][j] * axes[b][j]).sum::<f64>())
            .sum()
    };
    [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)].map(|(a, b)| along(a, b))
}

/// Collective. The rows of all ranks in ascending order, on rank 0; nothing elsewhere.
fn gather(comm: &Comm, rows: Vec<Row>, n_values: usize) -> Vec<PrintedRow> {
    let n_rounds = comm.max(rows.len().div_ceil(ROWS_AT_A_TIME) as f64) as usize;
    let mut all: Vec<Row> = Vec::new();
    for round in 0..n_rounds {
        let end = rows.len().min((round + 1) * ROWS_AT_A_TIME);
        let start = end.min(round * ROWS_AT_A_TIME);
        all.extend(comm.gather(&rows[start..end]).into_iter().flatten());
    }
    all.sort_by_key(|row| (row.id, row.point));
    let row = |row: Row| PrintedRow {
        id: row.id,
        point: row.point,
        values: row.values[..n_values].to_vec(),
    };
    all.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::turned;

    #[test]
    fn components_turn_with_the_axes() {
        // Axes turned by 90 degrees about z: the first is y.
        let axes = [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
        let turned = turned(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &axes);
        assert_eq!(turned, [2.0, 1.0, 3.0, -4.0, 6.0, -5.0]);
    }
}
