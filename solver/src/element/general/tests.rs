//! Tests of single elements: agreement with the batched kernel, rigid motion, patch conditions, modes, hourglass control.

use super::{Element, GeneralElement, MAX_POINTS, young_of};
use crate::element::formulation::{is_available, is_batched, rule};
use crate::element::solid::{Elements, StiffnessKernel, stiffness_len};
use crate::element::test_cells::distorted;
use crate::element::{Formulation, Hourglass, MAX_NODES};
use crate::material::{Elastic, Isotropic};
use fem_mesh::CellType;
use nalgebra::{DMatrix, DVector, SMatrix};

const LAW: Isotropic = Isotropic {
    lambda: 1.2,
    mu: 0.7,
    expansion: 1e-3,
};

/// A law of no symmetry: positive definite by construction.
fn anisotropic() -> Elastic {
    let a = SMatrix::<f64, 6, 6>::from_fn(|i, j| ((3 * i + 5 * j) as f64).sin());
    let d = a * a.transpose() + SMatrix::<f64, 6, 6>::identity();
    let mut law = Elastic::from(LAW);
    for i in 0..6 {
        for j in 0..6 {
            law.d[i][j] = d[(i, j)];
        }
    }
    law
}

fn every_element() -> Vec<(CellType, Formulation)> {
    let all = Formulation::NAMES.map(|(_, formulation)| formulation);
    (CellType::SOLIDS.into_iter())
        .flat_map(|t| all.map(|f| (t, f)))
        .filter(|&(t, f)| is_available(t, f))
        .collect()
}

fn element(
    cell_type: CellType,
    formulation: Formulation,
    coords: &[[f64; 3]],
    law: &Elastic,
) -> GeneralElement {
    let mut element = GeneralElement::default();
    let min_det = element.set(&Element {
        cell_type,
        formulation,
        coords,
        d: &[law.d],
    });
    assert!(min_det > 0.0, "{cell_type} {formulation:?}");
    element
}

/// The whole stiffness.
fn stiffness(element: &GeneralElement) -> DMatrix<f64> {
    let n = element.n_nodes;
    let mut half = vec![f64::NAN; 9 * n * (n + 1) / 2];
    element.stiffness_into(&mut half);
    full(n, &half)
}

fn full(n: usize, half: &[f64]) -> DMatrix<f64> {
    let mut k = DMatrix::zeros(3 * n, 3 * n);
    let mut blocks = half.chunks_exact(9);
    for a in 0..n {
        for b in a..n {
            for (at, &value) in blocks.next().unwrap().iter().enumerate() {
                let (i, j) = (at / 3, at % 3);
                k[(3 * a + i, 3 * b + j)] = value;
                k[(3 * b + j, 3 * a + i)] = value;
            }
        }
    }
    k
}

#[test]
fn plain_isotropic_elements_are_those_of_the_batched_kernel() {
    for (cell_type, formulation) in every_element() {
        if !is_batched(cell_type, formulation) {
            continue;
        }
        let coords = distorted(cell_type, 0.06);
        let mut half = vec![0.0; stiffness_len(cell_type)];
        let elements = Elements {
            cell_type,
            rule: rule(formulation),
            coords: &coords,
            lame: &[[LAW.lambda, LAW.mu]],
        };
        StiffnessKernel::default().compute(elements, &mut half, &mut [0.0]);
        if formulation == Formulation::Reduced {
            let young = LAW.mu * (3.0 * LAW.lambda + 2.0 * LAW.mu) / (LAW.lambda + LAW.mu);
            Hourglass::new(cell_type, &coords, young).add_to(&mut half);
        }
        let expected = full(cell_type.n_nodes(), &half);
        let k = stiffness(&element(cell_type, formulation, &coords, &LAW.into()));
        let error = (&k - &expected).norm() / expected.norm();
        assert!(error < 1e-14, "{cell_type} {formulation:?}: {error:e}");
    }
}

/// Six rigid motions and six displacements of unit strain, as columns.
fn linear_fields(coords: &[[f64; 3]]) -> (DMatrix<f64>, DMatrix<f64>) {
    let field = |f: &dyn Fn([f64; 3]) -> [f64; 3]| -> Vec<f64> {
        coords.iter().flat_map(|&x| f(x)).collect()
    };
    let rigid: [&dyn Fn([f64; 3]) -> [f64; 3]; 6] = [
        &|_| [1.0, 0.0, 0.0],
        &|_| [0.0, 1.0, 0.0],
        &|_| [0.0, 0.0, 1.0],
        &|[x, y, _]| [-y, x, 0.0],
        &|[_, y, z]| [0.0, -z, y],
        &|[x, _, z]| [z, 0.0, -x],
    ];
    let strained: [&dyn Fn([f64; 3]) -> [f64; 3]; 6] = [
        &|[x, _, _]| [x, 0.0, 0.0],
        &|[_, y, _]| [0.0, y, 0.0],
        &|[_, _, z]| [0.0, 0.0, z],
        &|[_, y, _]| [y, 0.0, 0.0],
        &|[_, _, z]| [0.0, z, 0.0],
        &|[x, _, _]| [0.0, 0.0, x],
    ];
    let n = 3 * coords.len();
    let columns = |fields: [&dyn Fn([f64; 3]) -> [f64; 3]; 6]| {
        let all: Vec<f64> = fields.iter().flat_map(|f| field(*f)).collect();
        DMatrix::from_vec(n, 6, all)
    };
    (columns(rigid), columns(strained))
}

#[test]
fn rigid_motions_cause_no_force_and_nothing_else_is_soft_but_known_modes() {
    for (cell_type, formulation) in every_element() {
        let coords = distorted(cell_type, 0.06);
        let k = stiffness(&element(cell_type, formulation, &coords, &anisotropic()));
        let (rigid, _) = linear_fields(&coords);
        let force = (&k * &rigid).norm() / (k.norm() * rigid.norm());
        assert!(force < 1e-13, "{cell_type} {formulation:?}: {force:e}");
        let mut eigenvalues: Vec<f64> = k.symmetric_eigenvalues().iter().copied().collect();
        eigenvalues.sort_by(f64::total_cmp);
        let largest = eigenvalues[eigenvalues.len() - 1];
        // Less than a millionth is the stiffness against what reduced elements do not see.
        let n_zero = eigenvalues.iter().filter(|e| **e < 1e-5 * largest).count();
        // Hex20 at 2 x 2 x 2 points: 54 deformations and 48 strains. Wedge6 at 2 points: 12 of each, but one deformation
        // strains none of the two.
        let expected = match (cell_type, formulation) {
            (CellType::Hex20, Formulation::Reduced) => 12,
            (CellType::Wedge6, Formulation::Reduced) => 7,
            _ => 6,
        };
        assert_eq!(
            n_zero, expected,
            "{cell_type} {formulation:?} {eigenvalues:?}"
        );
    }
}

/// The condition of every patch test: a linear field gives its constant strain, and its forces are those of the
/// constant stress on the surface, whatever the formulation.
#[test]
fn constant_strains_are_exact_and_their_forces_are_those_of_full_integration() {
    for (cell_type, formulation) in every_element() {
        // Straight edges, for which all rules are exact.
        let coords = match cell_type.order() {
            1 => distorted(cell_type, 0.06),
            _ => distorted(cell_type, 0.0),
        };
        let law = anisotropic();
        let tested = element(cell_type, formulation, &coords, &law);
        let full = stiffness(&element(cell_type, Formulation::Full, &coords, &law));
        let k = stiffness(&tested);
        let (_, strained) = linear_fields(&coords);
        let expected = &full * &strained;
        let error = (&k * &strained - &expected).norm() / expected.norm();
        assert!(error < 1e-13, "{cell_type} {formulation:?}: {error:e}");
        for (kind, u) in strained.column_iter().enumerate() {
            let u = DVector::from(u);
            let mut strains = [[0.0; 6]; MAX_POINTS];
            tested.strains_into(u.as_slice().as_chunks().0, &[], &mut strains);
            for strain in &strains[..tested.n_points()] {
                for (i, e) in strain.iter().enumerate() {
                    let expected = if i == kind { 1.0 } else { 0.0 };
                    assert!((e - expected).abs() < 1e-12, "{cell_type} {formulation:?}");
                }
            }
        }
    }
}

/// Some displacement, and some initial strain at each point.
fn motion(cell_type: CellType) -> [[f64; 3]; MAX_NODES] {
    let mut u = [[0.0; 3]; MAX_NODES];
    for (a, u) in u.iter_mut().enumerate().take(cell_type.n_nodes()) {
        *u = [0, 1, 2].map(|i| ((7 * a + 3 * i) as f64).sin());
    }
    u
}

#[test]
fn forces_and_energy_are_those_of_the_stiffness_and_of_initial_strains() {
    for (cell_type, formulation) in every_element() {
        let coords = distorted(cell_type, 0.06);
        let law = anisotropic();
        let tested = element(cell_type, formulation, &coords, &law);
        let n = tested.n_points();
        let u = motion(cell_type);
        let initial: Vec<[f64; 6]> = (0..n)
            .map(|q| [0, 1, 2, 3, 4, 5].map(|i| 0.3 * ((5 * q + i) as f64).cos()))
            .collect();
        // Force and energy at u with the initial strains.
        let response = |u: &[[f64; 3]], initial: &[[f64; 6]]| {
            let mut strains = [[0.0; 6]; MAX_POINTS];
            let held: Vec<[f64; 6]> = (initial.iter())
                .map(|e0| super::times(&law.d, e0))
                .collect();
            tested.strains_into(u, &held, &mut strains);
            let mut stresses = [[0.0; 6]; MAX_POINTS];
            let mut energy = tested.hourglass_energy(u);
            for q in 0..n {
                let zero = [0.0; 6];
                let e0 = initial.get(q).unwrap_or(&zero);
                let elastic = [0, 1, 2, 3, 4, 5].map(|i| strains[q][i] - e0[i]);
                stresses[q] = super::times(&law.d, &elastic);
                energy += 0.5 * tested.volumes()[q] * super::dot(&stresses[q], &elastic);
            }
            let mut force = [[0.0; 3]; MAX_NODES];
            tested.forces_into(&stresses, u, &mut force);
            (force, energy)
        };
        let k = stiffness(&tested);
        let n_dofs = 3 * cell_type.n_nodes();
        let as_vector = |v: &[[f64; 3]]| DVector::from_column_slice(&v.as_flattened()[..n_dofs]);
        let (force, energy) = response(&u, &[]);
        let expected = &k * as_vector(&u);
        let error = (as_vector(&force) - &expected).norm() / expected.norm();
        assert!(error < 1e-13, "{cell_type} {formulation:?}: {error:e}");
        let half = 0.5 * expected.dot(&as_vector(&u));
        assert!((energy - half).abs() < 1e-12 * half);
        // The energy is a quadratic function: the central difference is exact for any step.
        let (force, _) = response(&u, &initial);
        for dof in [0, 4, n_dofs - 1] {
            let [high, low] = [0.25, -0.25].map(|step| {
                let mut moved = u;
                moved[dof / 3][dof % 3] += step;
                response(&moved, &initial).1
            });
            let slope = (high - low) / 0.5;
            let error = (slope - force[dof / 3][dof % 3]).abs();
            assert!(
                error < 1e-11 * expected.norm(),
                "{cell_type} {formulation:?}"
            );
        }
    }
}

/// Pure bending of a unit cube of nu = 0, in which incompatible modes hold exactly what beams do.
#[test]
fn incompatible_modes_bend_without_shear() {
    let law = Elastic::from(Isotropic {
        lambda: 0.0,
        mu: 0.5,
        expansion: 0.0,
    });
    let coords = crate::element::shape::natural_nodes(CellType::Hex8);
    let bent: Vec<[f64; 3]> = (coords.iter()).map(|[x, _, z]| [x * z, 0.0, 0.0]).collect();
    let energy = |formulation| {
        let tested = element(CellType::Hex8, formulation, coords, &law);
        let u = DVector::from_column_slice(bent.as_flattened());
        0.5 * u.dot(&(stiffness(&tested) * &u))
    };
    // E / 2 times the integral of z^2 over a cube of edge 2.
    let exact = 0.5 * 8.0 / 3.0;
    assert!((energy(Formulation::IncompatibleModes) - exact).abs() < 1e-13);
    assert!(energy(Formulation::Full) > 1.4 * exact);
    let hourglass = energy(Formulation::Reduced);
    assert!(hourglass > 0.0 && hourglass < 0.1 * exact, "{hourglass}");
}

#[test]
fn b_bar_makes_no_pressure_of_a_dilatation_without_mean() {
    let law = Elastic::from(Isotropic {
        lambda: 1e6,
        mu: 1.0,
        expansion: 0.0,
    });
    for cell_type in [CellType::Hex8, CellType::Wedge6] {
        let coords = crate::element::shape::natural_nodes(cell_type);
        let bent: Vec<f64> = (coords.iter())
            .flat_map(|[x, _, z]| [x * z, 0.0, 0.0])
            .collect();
        let u = DVector::from_vec(bent);
        let energy = |formulation| {
            let tested = element(cell_type, formulation, coords, &law);
            0.5 * u.dot(&(stiffness(&tested) * &u))
        };
        assert!(energy(Formulation::Full) > 1e5, "{cell_type}");
        let with_mean = energy(Formulation::BBar);
        assert!(with_mean < 10.0, "{cell_type} {with_mean}");
    }
}

#[test]
fn young_of_an_isotropic_law_is_its_own_and_the_axes_do_not_matter() {
    let law = Elastic::from(LAW);
    let expected = LAW.mu * (3.0 * LAW.lambda + 2.0 * LAW.mu) / (LAW.lambda + LAW.mu);
    assert!((young_of(&law.d) - expected).abs() < 1e-14);
}

#[test]
fn inverted_elements_are_told() {
    let mut coords = distorted(CellType::Hex8, 0.0);
    coords.swap(0, 6);
    for (_, formulation) in Formulation::NAMES {
        let min_det = GeneralElement::default().set(&Element {
            cell_type: CellType::Hex8,
            formulation,
            coords: &coords,
            d: &[Elastic::from(LAW).d],
        });
        assert!(min_det <= 0.0, "{formulation:?}");
    }
}
