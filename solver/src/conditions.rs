//! What the material of each cell does at each of its points: the law in global axes, thermal and initial strain, initial
//! stress. Assembly and recovery ask here, so that stiffness, loads and stresses cannot disagree.
//!
//! Nodal temperatures are interpolated in a cell no finer than its strains, as is usual to keep stresses from
//! oscillating (and as CalculiX does): the mean over its nodes in hex8, in hex20 and hex27 the trilinear function through the
//! values at its 2x2x2 Gauss points, in other types by the shape functions.
//!
//! Invariant: reads the model; stress = D (strain - thermal strain - initial strain) + initial stress.

use crate::element::{MAX_NODES, Purpose, Tabulation};
use crate::material::{Elastic, Isotropic, Law, Orientation};
use crate::model::{GLOBAL_AXES, Load, Model};
use fem_mesh::CellType;

/// Initial strain and initial stress, Pa.
type InitialState = [[f64; 6]; 2];
const UNSTRAINED: InitialState = [[0.0; 6]; 2];

/// The conditions of all local cells.
pub struct Conditions<'a> {
    model: &'a Model,
    /// By material, of those that depend neither on temperature nor on direction.
    isotropic: Vec<Option<Isotropic>>,
    /// Change of temperature by local cell, K; empty if no load gives one.
    changes: Vec<f64>,
    /// By local cell; empty if no load gives one.
    states: Vec<InitialState>,
}

impl<'a> Conditions<'a> {
    /// The conditions that the materials, orientations, temperatures and loads of the model make.
    pub fn new(model: &'a Model) -> Self {
        Conditions {
            model,
            isotropic: model
                .materials
                .iter()
                .map(|material| material.law.as_isotropic())
                .collect(),
            changes: changes(model),
            states: states(model),
        }
    }

    /// Whether the stress at a node follows from mean strain and temperature by the law of its material: all laws are
    /// isotropic and constant, and there is no initial stress or strain and no field of temperature.
    pub fn are_simple(&self) -> bool {
        self.model.temperatures.is_none()
            && self.isotropic.iter().all(Option::is_some)
            && self.states.iter().all(|state| *state == UNSTRAINED)
    }

    /// Law of the cell and change of temperature, K, if they say all of it at all points.
    pub fn uniform(&self, cell: usize) -> Option<(Isotropic, f64)> {
        let law = self.isotropic[self.material(cell)]?;
        let is_uniform = self.model.temperatures.is_none() && self.state(cell) == UNSTRAINED;
        is_uniform.then(|| (law, self.change(cell)))
    }

    /// Lame constants lambda and mu of the cell, Pa, if it is isotropic and they are the same at all its points.
    pub fn lame(&self, cell: usize) -> Option<[f64; 2]> {
        if let Some(law) = &self.isotropic[self.material(cell)] {
            return Some([law.lambda, law.mu]);
        }
        let law = &self.model.materials[self.material(cell)].law;
        if law.has_constant_stiffness() {
            return law.lame_at(law.reference_temperature());
        }
        let of_cell = self.of_cell(cell);
        let (first, others) = of_cell.current.split_first()?;
        let n = self.model.mesh.cells.types[cell].n_nodes();
        let is_even = others[..n - 1].iter().all(|t| t == first);
        is_even.then(|| law.lame_at(*first)).flatten()
    }

    /// Change of temperature of the cell by loads on elements, K.
    pub fn change(&self, cell: usize) -> f64 {
        self.changes.get(cell).copied().unwrap_or_default()
    }

    /// Whether thermal strain, initial strain or initial stress act on the cell.
    pub fn has_initial_force(&self, cell: usize) -> bool {
        let is_strained = self.change(cell) != 0.0 || self.state(cell) != UNSTRAINED;
        is_strained || self.model.temperatures.is_some()
    }

    /// The conditions of one cell, to be asked point by point.
    pub fn of_cell(&self, cell: usize) -> CellConditions<'a> {
        let model = self.model;
        let mesh = &model.mesh;
        let law = &model.materials[self.material(cell)].law;
        let change = self.change(cell);
        let mut of_cell = CellConditions {
            cell_type: mesh.cells.types[cell],
            law,
            orientation: self.orientation(cell),
            coords: [[0.0; 3]; MAX_NODES],
            initial: [law.reference_temperature(); MAX_NODES],
            current: [law.reference_temperature() + change; MAX_NODES],
            change: model.temperatures.is_none().then_some(change),
            state: self.state(cell),
            constant: None,
        };
        mesh.gather_coords(cell, &mut of_cell.coords);
        if let Some(temperatures) = &model.temperatures {
            for (a, &node) in mesh.cells.nodes_of(cell).iter().enumerate() {
                let given = |values: &[f64], otherwise: f64| {
                    let value = values[node as usize];
                    if value.is_nan() { otherwise } else { value }
                };
                let initial = given(&temperatures.initial, law.reference_temperature());
                of_cell.initial[a] = initial;
                of_cell.current[a] = given(&temperatures.current, initial) + change;
            }
        }
        of_cell.constant = of_cell.constant_stiffness();
        of_cell
    }

    fn material(&self, cell: usize) -> usize {
        usize::from(self.model.cell_material[cell])
    }

    fn state(&self, cell: usize) -> InitialState {
        self.states.get(cell).copied().unwrap_or(UNSTRAINED)
    }

    /// Axes of the material of a cell; `None` for the global ones.
    pub fn orientation(&self, cell: usize) -> Option<&'a Orientation> {
        let index = self.model.cell_orientation.get(cell)?;
        (*index != GLOBAL_AXES).then(|| &self.model.orientations[*index as usize])
    }
}

fn changes(model: &Model) -> Vec<f64> {
    let mut changes = Vec::new();
    for load in &model.loads {
        if let Load::TemperatureChange { cells, change } = load {
            changes.resize(model.mesh.n_cells(), 0.0);
            for &cell in cells {
                changes[cell as usize] += change;
            }
        }
    }
    changes
}

fn states(model: &Model) -> Vec<InitialState> {
    let mut states = Vec::new();
    for load in &model.loads {
        let (cells, which, tensor) = match load {
            Load::InitialStrain { cells, strain } => (cells, 0, strain),
            Load::InitialStress { cells, stress } => (cells, 1, stress),
            _ => continue,
        };
        states.resize(model.mesh.n_cells(), UNSTRAINED);
        for &cell in cells {
            let sum = &mut states[cell as usize][which];
            (0..6).for_each(|i| sum[i] += tensor[i]);
        }
    }
    states
}

/// The conditions of one cell.
pub struct CellConditions<'a> {
    cell_type: CellType,
    law: &'a Law,
    orientation: Option<&'a Orientation>,
    coords: [[f64; 3]; MAX_NODES],
    initial: [f64; MAX_NODES],
    current: [f64; MAX_NODES],
    /// Change of temperature, K, where it is the same at all points of the cell.
    change: Option<f64>,
    state: InitialState,
    /// The elastic constants in global axes, where they are the same at all points.
    constant: Option<[[f64; 6]; 6]>,
}

/// The law at a point, in global axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointLaw {
    /// Stress over elastic strain, Pa.
    pub d: [[f64; 6]; 6],
    /// Thermal plus initial strain: what the strain is without stress.
    pub free_strain: [f64; 6],
    /// Initial stress, Pa.
    pub initial_stress: [f64; 6],
}

/// D e.
#[inline]
fn stress_of(d: &[[f64; 6]; 6], strain: &[f64; 6]) -> [f64; 6] {
    d.map(|row| {
        let mut sum = 0.0;
        for (d, e) in row.iter().zip(strain) {
            sum += d * e;
        }
        sum
    })
}

impl PointLaw {
    /// The stress that keeps the point from straining, Pa: D times the free strain less the initial stress.
    pub fn held_stress(&self) -> [f64; 6] {
        self.stress(&[0.0; 6]).map(|s| -s)
    }

    /// Stress, Pa, at a total strain.
    #[inline]
    pub fn stress(&self, strain: &[f64; 6]) -> [f64; 6] {
        let mut stress = stress_of(&self.d, &self.elastic_strain(strain));
        for i in 0..6 {
            stress[i] += self.initial_stress[i];
        }
        stress
    }

    /// The part of a total strain that costs energy.
    #[inline]
    pub fn elastic_strain(&self, strain: &[f64; 6]) -> [f64; 6] {
        std::array::from_fn(|i| strain[i] - self.free_strain[i])
    }

    /// Energy per volume, J/m3, above the state without elastic strain: half of D e e, and initial stress times e.
    #[inline]
    pub fn energy(&self, strain: &[f64; 6]) -> f64 {
        let elastic = self.elastic_strain(strain);
        let stress = stress_of(&self.d, &elastic);
        let mut energy = 0.0;
        for i in 0..6 {
            energy += (0.5 * stress[i] + self.initial_stress[i]) * elastic[i];
        }
        energy
    }
}

impl CellConditions<'_> {
    /// The law at a point with natural coordinates `xi`, at which the shape functions have the values `shape`.
    pub fn at(&self, xi: [f64; 3], shape: &[f64]) -> PointLaw {
        let weights = temperature_weights(self.cell_type, xi, shape);
        let [initial, current] = [&self.initial, &self.current]
            .map(|nodal| weights.iter().zip(nodal).map(|(w, t)| w * t).sum::<f64>());
        let x = || crate::element::geometry::interpolate(&self.coords, shape);
        let axes = self.orientation.map(|orientation| orientation.axes_at(x()));
        // The weights sum to 1 but for rounding.
        let (initial, current) = match self.change {
            Some(_) => (self.initial[0], self.current[0]),
            None => (initial, current),
        };
        let law = Elastic {
            d: self.constant.unwrap_or_else(|| self.law.at(current).d),
            expansion: self.law.thermal_strain(initial, current),
        };
        let thermal = axes
            .as_ref()
            .map_or(law.expansion, |axes| law.global_expansion(axes));
        let d = match (&axes, self.constant) {
            (Some(axes), None) => law.global_stiffness(axes),
            _ => law.d,
        };
        PointLaw {
            d,
            free_strain: std::array::from_fn(|i| thermal[i] + self.state[0][i]),
            initial_stress: self.state[1],
        }
    }

    /// The elastic constants at the points of a rule, Pa, in global axes; one if they are the same at all.
    pub fn stiffness_at(&self, table: &Tabulation) -> Vec<[[f64; 6]; 6]> {
        match &self.constant {
            Some(d) => vec![*d],
            None => self.at_points(table).map(|law| law.d).collect(),
        }
    }

    /// The laws at the points of a rule.
    pub fn at_points(&self, table: &Tabulation) -> impl Iterator<Item = PointLaw> {
        let points = table.points.iter().enumerate();
        points.map(|(q, point)| self.at(point.xi, table.shape(q)))
    }

    /// The elastic constants in global axes if neither temperature nor axes change them from point to point.
    fn constant_stiffness(&self) -> Option<[[f64; 6]; 6]> {
        let is_even = self.law.has_constant_stiffness() || self.change.is_some();
        let axes = match self.orientation {
            Some(orientation) => Some(orientation.as_constant()?),
            None => None,
        };
        is_even.then(|| {
            let law = self.law.at(self.current[0]);
            axes.map_or(law.d, |axes| law.global_stiffness(axes))
        })
    }
}

/// Weights of the nodal temperatures of a cell for that at a point.
fn temperature_weights(cell_type: CellType, xi: [f64; 3], shape: &[f64]) -> [f64; MAX_NODES] {
    let mut weights = [0.0; MAX_NODES];
    match cell_type {
        CellType::Hex8 => weights[..8].fill(1.0 / 8.0),
        CellType::Hex20 | CellType::Hex27 => {
            let table = Tabulation::of(cell_type, Purpose::Recovery);
            for (q, point) in table.points.iter().enumerate() {
                // The trilinear function that is 1 at this point and 0 at the others.
                let factors = [0, 1, 2].map(|i| 0.5 * (1.0 + xi[i] / point.xi[i]));
                let share = factors[0] * factors[1] * factors[2];
                for (weight, n) in weights.iter_mut().zip(table.shape(q)) {
                    *weight += share * n;
                }
            }
        }
        _ => weights[..shape.len()].copy_from_slice(shape),
    }
    weights
}

#[cfg(test)]
mod tests;
