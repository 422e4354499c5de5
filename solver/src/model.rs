//! `Model`: the case resolved on one rank's part of the mesh; after it nobody reads strings.
//!
//! Invariant: holds numbers by local index only; makes no decision about how the system is solved.

use crate::element::Formulation;
use crate::links::Links;
use crate::material::{Law, Orientation};
use fem_io::case::LinearField;
use fem_mesh::{CellFace, LocalMesh};

/// One material of the case.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// Name in the case file.
    pub name: String,
    /// Elastic constants and thermal expansion.
    pub law: Law,
    /// Density rho, kg/m3; 0 where the case gives none.
    pub density: f64,
}

impl Material {
    /// A material without density of a Young's modulus, Pa, a Poisson's ratio and a coefficient of expansion, 1/K.
    pub fn isotropic(name: &str, young: f64, poisson: f64, expansion: f64) -> Self {
        Material {
            name: name.to_owned(),
            law: Law::isotropic(young, poisson, expansion),
            density: 0.0,
        }
    }
}

/// One load of the case, resolved on local cells, faces and nodes (owned and ghost).
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Force per area on faces, N/m2.
    Traction {
        /// Loaded faces of local cells.
        faces: Vec<CellFace>,
        /// Traction vector.
        traction: [f64; 3],
    },
    /// Pressure on faces, N/m2; positive pushes into the surface.
    Pressure {
        /// Loaded faces of local cells.
        faces: Vec<CellFace>,
        /// Pressure.
        pressure: f64,
    },
    /// Pressure on faces that is linear in space, N/m2; positive pushes into the surface.
    PressureField {
        /// Loaded faces of local cells.
        faces: Vec<CellFace>,
        /// Pressure as a function of place.
        pressure: LinearField,
    },
    /// The same force on each node, N.
    NodalForce {
        /// Loaded local nodes.
        nodes: Vec<u32>,
        /// Force on each of them.
        force: [f64; 3],
    },
    /// Force per volume on cells, N/m3.
    BodyForce {
        /// Loaded local cells.
        cells: Vec<u32>,
        /// Force per volume.
        body_force: [f64; 3],
    },
    /// Acceleration times density on cells, m/s2.
    Gravity {
        /// Loaded local cells.
        cells: Vec<u32>,
        /// Acceleration vector.
        acceleration: [f64; 3],
    },
    /// Rotation: density times omega squared times the distance vector from the axis.
    Centrifugal {
        /// Loaded local cells.
        cells: Vec<u32>,
        /// A point on the axis, m.
        origin: [f64; 3],
        /// Unit vector along the axis.
        axis: [f64; 3],
        /// Angular speed, rad/s.
        omega: f64,
    },
    /// Uniform change of temperature of cells, K: thermal strain.
    TemperatureChange {
        /// Heated local cells.
        cells: Vec<u32>,
        /// Change of temperature.
        change: f64,
    },
    /// Stress of cells that are not deformed, Pa.
    InitialStress {
        /// Local cells.
        cells: Vec<u32>,
        /// Stress in global axes.
        stress: [f64; 6],
    },
    /// Strain of cells that are free of stress.
    InitialStrain {
        /// Local cells.
        cells: Vec<u32>,
        /// Strain in global axes, engineering shear.
        strain: [f64; 6],
    },
}

/// Temperatures of the local nodes, ghosts included; NaN where the case gives none.
#[derive(Clone, Debug, PartialEq)]
pub struct Temperatures {
    /// Before loading, when the body is free of thermal strain; where none is given, the reference temperature of the
    /// material.
    pub initial: Vec<f64>,
    /// Of the loaded body; where none is given, the initial one.
    pub current: Vec<f64>,
}

/// In `Model::cell_orientation`: a cell whose material has the global axes.
pub const GLOBAL_AXES: u32 = u32::MAX;

/// What one rank needs to know to assemble, solve and recover a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// This rank's cells and nodes.
    pub mesh: LocalMesh,
    /// Materials of the case.
    pub materials: Vec<Material>,
    /// Index into `materials` of each local cell, ghost cells included.
    pub cell_material: Vec<u16>,
    /// Formulation of each local cell, ghost cells included; one that its type has.
    pub cell_formulation: Vec<Formulation>,
    /// Axes of material.
    pub orientations: Vec<Orientation>,
    /// Index into `orientations` of each local cell, or [`GLOBAL_AXES`]; empty if there are no orientations.
    pub cell_orientation: Vec<u32>,
    /// Temperatures of nodes; `None` if the case gives none.
    pub temperatures: Option<Temperatures>,
    /// Prescribed degrees of freedom, ascending: local number (3 * local node + component, ghosts included), value, m.
    pub fixed: Vec<(u32, f64)>,
    /// Loads.
    pub loads: Vec<Load>,
    /// Constraints between degrees of freedom.
    pub links: Links,
}
