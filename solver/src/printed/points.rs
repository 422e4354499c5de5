//! Printed values at the integration points of elements, and of whole elements.
//!
//! The points are those of the stiffness, in the order of its rule: the first natural coordinate runs fastest, which is
//! also CalculiX's order.
//!
//! Invariant: owned elements only.

use super::{Sent, Titles, gathered};
use crate::analysis::linear_static::Solution;
use crate::model::Model;
use crate::post::stress::{Deformation, PointValues};
use crate::resolve::Names;
use fem_io::case::{PrintQuantity, PrintRequest};
use fem_io::check::SetUse;
use fem_io::printed::Table;
use fem_mesh::Comm;

/// Places of the printed components xx yy zz xy xz yz among xx yy zz xy yz zx.
const PRINTED: [usize; 6] = [0, 1, 2, 3, 5, 4];

/// What all tables of elements are made from.
pub(super) struct PointPrinter<'a> {
    names: &'a Names<'a>,
    model: &'a Model,
    deformation: Deformation<'a>,
}

impl<'a> PointPrinter<'a> {
    pub(super) fn new(names: &'a Names<'a>, model: &'a Model, solution: &'a Solution) -> Self {
        PointPrinter {
            names,
            model,
            deformation: Deformation::new(model, &solution.displacement),
        }
    }

    /// Collective.
    pub(super) fn tables(
        &self,
        comm: &Comm,
        request: &PrintRequest,
        quantity: PrintQuantity,
    ) -> Vec<Table> {
        let set = std::slice::from_ref(&request.set);
        let mesh = &self.model.mesh;
        let cells = self.names.cells(set, SetUse::PrintElements);
        let mut rows = Vec::new();
        let mut points = Vec::new();
        for cell in cells.into_iter().map(|cell| cell as usize) {
            if cell >= mesh.n_owned_cells {
                continue;
            }
            points.clear();
            self.deformation.point_values(cell, &mut points);
            let id = mesh.cell_ids[cell];
            if is_of_whole_elements(quantity) {
                let sum = points.iter().map(|point| whole(point, quantity)).sum();
                rows.push(Sent::new(id, 0, [sum]));
                continue;
            }
            for (q, point) in points.iter().enumerate() {
                let values = self.values(cell, point, request.global, quantity);
                rows.push(Sent::new(id, q as u64 + 1, values));
            }
        }
        gathered(comm, &titles(quantity), &request.set, request.totals, &rows)
    }

    /// The numbers of a row.
    fn values(
        &self,
        cell: usize,
        point: &PointValues,
        global: bool,
        quantity: PrintQuantity,
    ) -> [f64; 6] {
        let tensor = match quantity {
            PrintQuantity::S => point.stress,
            PrintQuantity::E => halved_shears(point.strain),
            PrintQuantity::Me => halved_shears(point.elastic_strain),
            PrintQuantity::Coord => {
                let [x, y, z] = point.x;
                return [x, y, z, 0.0, 0.0, 0.0];
            }
            _ => return [point.energy, 0.0, 0.0, 0.0, 0.0, 0.0],
        };
        let axes = (self.deformation.conditions())
            .orientation(cell)
            .filter(|_| !global);
        let tensor = match axes {
            Some(orientation) => in_axes(&tensor, &orientation.axes_at(point.x)),
            None => tensor,
        };
        PRINTED.map(|i| tensor[i])
    }
}

const fn is_of_whole_elements(quantity: PrintQuantity) -> bool {
    matches!(quantity, PrintQuantity::Else | PrintQuantity::Evol)
}

/// What a point adds to the value of its element.
fn whole(point: &PointValues, quantity: PrintQuantity) -> f64 {
    match quantity {
        PrintQuantity::Else => point.volume * point.energy,
        _ => point.volume,
    }
}

/// Tensor components of engineering strains.
fn halved_shears([xx, yy, zz, xy, yz, zx]: [f64; 6]) -> [f64; 6] {
    [xx, yy, zz, 0.5 * xy, 0.5 * yz, 0.5 * zx]
}

/// Components of a tensor xx yy zz xy yz zx along axes, whose rows are directions.
fn in_axes([xx, yy, zz, xy, yz, zx]: &[f64; 6], axes: &[[f64; 3]; 3]) -> [f64; 6] {
    let tensor = [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]];
    let along = |a: [f64; 3], b: [f64; 3]| -> f64 {
        let mut sum = 0.0;
        for i in 0..3 {
            for j in 0..3 {
                sum += a[i] * tensor[i][j] * b[j];
            }
        }
        sum
    };
    let [e1, e2, e3] = *axes;
    [
        along(e1, e1),
        along(e2, e2),
        along(e3, e3),
        along(e1, e2),
        along(e2, e3),
        along(e3, e1),
    ]
}

fn titles(quantity: PrintQuantity) -> Titles {
    let (rows, total, n_values) = match quantity {
        PrintQuantity::S => (
            "stresses (elem, integ.pnt.,sxx,syy,szz,sxy,sxz,syz)",
            None,
            6,
        ),
        PrintQuantity::E => (
            "strains (elem, integ.pnt.,exx,eyy,ezz,exy,exz,eyz)",
            None,
            6,
        ),
        PrintQuantity::Me => (
            "mechanical strains (elem, integ.pnt.,exx,eyy,ezz,exy,exz,eyz)",
            None,
            6,
        ),
        PrintQuantity::Coord => ("global coordinates (elem, integ.pnt.,x,y,z)", None, 3),
        PrintQuantity::Else => (
            "internal energy (element, energy)",
            Some("total internal energy"),
            1,
        ),
        PrintQuantity::Evol => ("volume (element, volume)", Some("total volume"), 1),
        _ => ("internal energy density (elem, integ.pnt.,energy)", None, 1),
    };
    Titles {
        rows,
        total,
        n_values,
    }
}

#[cfg(test)]
mod tests {
    use super::in_axes;

    #[test]
    fn a_tensor_turned_by_a_quarter_exchanges_its_components() {
        let axes = [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
        let turned = in_axes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &axes);
        assert_eq!(turned, [2.0, 1.0, 3.0, -4.0, -6.0, 5.0]);
    }
}
