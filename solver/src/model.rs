//! `Model`: the case resolved on one rank's part of the mesh; after it nobody reads strings.
//!
//! Invariant: holds numbers by local index only; makes no decision about how the system is solved.

use crate::links::Links;
use fem_mesh::{CellFace, LocalMesh};

/// One material of the case.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// Name in the case file.
    pub name: String,
    /// Young's modulus E, Pa.
    pub young: f64,
    /// Poisson's ratio nu.
    pub poisson: f64,
    /// Density rho, kg/m3; 0 where the case gives none.
    pub density: f64,
    /// Coefficient of thermal expansion alpha, 1/K; 0 where the case gives none.
    pub expansion: f64,
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
}

/// What one rank needs to know to assemble, solve and recover a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// This rank's cells and nodes.
    pub mesh: LocalMesh,
    /// Materials of the case.
    pub materials: Vec<Material>,
    /// Index into `materials` of each local cell, ghost cells included.
    pub cell_material: Vec<u16>,
    /// Prescribed degrees of freedom, ascending: local number (3 * local node + component, ghosts included), value, m.
    pub fixed: Vec<(u32, f64)>,
    /// Loads.
    pub loads: Vec<Load>,
    /// Constraints between degrees of freedom.
    pub links: Links,
}
