//! Types of the single tables of a case: mesh, analysis, solver, parallel, output, with their defaults.
//!
//! Invariant: plain data; a value that exists here is legal.

use super::Place;
use fem_mesh::CellType;
use std::path::PathBuf;

/// `[mesh]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshInput {
    /// File or box.
    pub source: MeshSource,
    /// Coordinates are multiplied by this, > 0; 1 by default.
    pub scale: f64,
    /// Place of `file` or `box`.
    pub place: Place,
}

/// Where the mesh comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshSource {
    /// A mesh file; relative paths have been joined to the folder of the case file.
    File(PathBuf),
    /// A structured box, generated.
    Box(BoxInput),
}

/// `mesh.box`.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxInput {
    /// Edge lengths, m, > 0.
    pub size: [f64; 3],
    /// Number of (hexahedral) cells along each edge, >= 1.
    pub cells: [usize; 3],
    /// Element type; hex8 by default.
    pub element: CellType,
    /// Corner with the smallest coordinates; 0 by default.
    pub origin: [f64; 3],
}

/// `[analysis]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Kind; static by default.
    pub kind: AnalysisKind,
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalysisKind {
    /// Linear static elasticity.
    Static,
}

impl AnalysisKind {
    /// Every kind with its name in case files.
    pub const NAMES: [(&'static str, AnalysisKind); 1] = [("static", AnalysisKind::Static)];

    /// The name in case files and summaries.
    pub const fn name(self) -> &'static str {
        match self {
            AnalysisKind::Static => "static",
        }
    }
}

/// How the stiffness of an element is formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Formulation {
    /// Full integration of the displacement element.
    #[default]
    Full,
    /// Fewer quadrature points: hex8 one with hourglass control (C3D8R), hex20 2 x 2 x 2 (C3D20R), wedge6 two (C3D6).
    Reduced,
    /// The dilatation is its mean over the element, so that nearly incompressible material does not lock: hex8, wedge6.
    BBar,
    /// Nine internal modes that bend the element, as in C3D8I: hex8.
    IncompatibleModes,
}

impl Formulation {
    /// Every formulation with its name in case files.
    pub const NAMES: [(&'static str, Formulation); 4] = [
        ("full", Formulation::Full),
        ("reduced", Formulation::Reduced),
        ("b_bar", Formulation::BBar),
        ("incompatible_modes", Formulation::IncompatibleModes),
    ];

    /// The name in case files.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// The element types that have it.
    pub const fn cell_types(self) -> &'static [CellType] {
        match self {
            Formulation::Full => &CellType::SOLIDS,
            Formulation::Reduced => &[CellType::Hex8, CellType::Hex20, CellType::Wedge6],
            Formulation::BBar => &[CellType::Hex8, CellType::Wedge6],
            Formulation::IncompatibleModes => &[CellType::Hex8],
        }
    }
}

/// `[solver]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SolverOptions {
    /// Method.
    pub method: Method,
    /// Preconditioner of an iterative method.
    pub preconditioner: Preconditioner,
    /// Bound on the true residual ‖b - A x‖ / ‖b‖, in (0, 1).
    pub tolerance: f64,
    /// Iterations after which the solver gives up, >= 1.
    pub max_iterations: usize,
    /// How many sums over the ranks an iteration waits for.
    pub reductions: Reductions,
}

impl Default for SolverOptions {
    fn default() -> Self {
        SolverOptions {
            method: Method::Auto,
            preconditioner: Preconditioner::Auto,
            tolerance: 1e-8,
            max_iterations: 2000,
            reductions: Reductions::Auto,
        }
    }
}

/// How the linear system is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The program chooses and says why.
    Auto,
    /// Conjugate gradients.
    Cg,
    /// Sparse Cholesky factorization.
    Direct,
}

impl Method {
    /// Every method with its name in case files.
    pub const NAMES: [(&'static str, Method); 3] = [
        ("auto", Method::Auto),
        ("cg", Method::Cg),
        ("direct", Method::Direct),
    ];
}

/// Preconditioner of the conjugate gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preconditioner {
    /// The program chooses.
    Auto,
    /// Algebraic multigrid by smoothed aggregation.
    Amg,
    /// Diagonal.
    Jacobi,
    /// Diagonal blocks of one node.
    BlockJacobi,
}

impl Preconditioner {
    /// Every preconditioner with its name in case files.
    pub const NAMES: [(&'static str, Preconditioner); 4] = [
        ("auto", Preconditioner::Auto),
        ("amg", Preconditioner::Amg),
        ("jacobi", Preconditioner::Jacobi),
        ("block_jacobi", Preconditioner::BlockJacobi),
    ];
}

/// How many sums over the ranks an iteration of the conjugate gradients waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reductions {
    /// Two on one host; on several hosts whichever is faster, by measurement.
    Auto,
    /// One, at the price of more work on vectors.
    One,
    /// Two.
    Two,
}

impl Reductions {
    /// Every choice with its name in case files.
    pub const NAMES: [(&'static str, Reductions); 3] = [
        ("auto", Reductions::Auto),
        ("one", Reductions::One),
        ("two", Reductions::Two),
    ];
}

/// `[parallel]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ParallelOptions {
    /// Ceiling on the threads of a rank, >= 1; `None`: the program chooses.
    pub threads: Option<usize>,
    /// How cells are dealt to ranks.
    pub partitioner: Partitioner,
    /// What is balanced between ranks.
    pub balance: Balance,
}

impl Default for ParallelOptions {
    fn default() -> Self {
        ParallelOptions {
            threads: None,
            partitioner: Partitioner::Auto,
            balance: Balance::Cells,
        }
    }
}

/// How cells are dealt to ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioner {
    /// The program chooses.
    Auto,
    /// METIS on the graph of neighboring cells.
    Metis,
    /// Recursive coordinate bisection.
    Rcb,
}

impl Partitioner {
    /// Every partitioner with its name in case files.
    pub const NAMES: [(&'static str, Partitioner); 3] = [
        ("auto", Partitioner::Auto),
        ("metis", Partitioner::Metis),
        ("rcb", Partitioner::Rcb),
    ];
}

/// What is balanced between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The same work for every rank.
    Cells,
    /// Work in proportion to the measured speed of each rank.
    Measured,
}

impl Balance {
    /// Every balance with its name in case files.
    pub const NAMES: [(&'static str, Balance); 2] =
        [("cells", Balance::Cells), ("measured", Balance::Measured)];
}

/// `[output]`.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputOptions {
    /// Directory of the results, relative to the working directory; `results` by default.
    pub directory: PathBuf,
    /// Fields written, each once; displacement, stress, von_mises, reaction by default.
    pub fields: Vec<Field>,
    /// Whether `report.html` is written.
    pub report: bool,
    /// Whether the stresses at the integration points are written, as a field of elements.
    pub integration_points: bool,
}

impl Default for OutputOptions {
    fn default() -> Self {
        OutputOptions {
            directory: PathBuf::from("results"),
            fields: vec![
                Field::Displacement,
                Field::Stress,
                Field::VonMises,
                Field::Reaction,
            ],
            report: false,
            integration_points: false,
        }
    }
}

/// A field that can be written or probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Displacement vector, m.
    Displacement,
    /// Reaction force at constrained nodes, N.
    Reaction,
    /// Stress, Pa: xx yy zz xy yz zx.
    Stress,
    /// Strain, xx yy zz xy yz zx with engineering shear.
    Strain,
    /// Von Mises stress, Pa.
    VonMises,
    /// Principal stresses, Pa, largest first.
    PrincipalStress,
    /// Mean stress of an element over its integration points, Pa.
    ElementStress,
    /// Energy norm of the error of the stress of an element, estimated (Zienkiewicz and Zhu 1987).
    ErrorEstimate,
}

impl Field {
    /// Every field with its name in case files and results.
    pub const NAMES: [(&'static str, Field); 8] = [
        ("displacement", Field::Displacement),
        ("reaction", Field::Reaction),
        ("stress", Field::Stress),
        ("strain", Field::Strain),
        ("von_mises", Field::VonMises),
        ("principal_stress", Field::PrincipalStress),
        ("element_stress", Field::ElementStress),
        ("error_estimate", Field::ErrorEstimate),
    ];

    /// The name in case files and results.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// Short names of the components, in their order.
    pub const fn component_names(self) -> &'static [&'static str] {
        match self {
            Field::Displacement => &["ux", "uy", "uz"],
            Field::Reaction => &["fx", "fy", "fz"],
            Field::Stress | Field::ElementStress => &["sxx", "syy", "szz", "sxy", "syz", "szx"],
            Field::Strain => &["exx", "eyy", "ezz", "gxy", "gyz", "gzx"],
            Field::VonMises => &["svm"],
            Field::ErrorEstimate => &["error"],
            Field::PrincipalStress => &["s1", "s2", "s3"],
        }
    }

    /// Whether it has a value for each element, and none at nodes.
    pub const fn is_of_elements(self) -> bool {
        matches!(self, Field::ElementStress | Field::ErrorEstimate)
    }

    /// Number of components.
    pub const fn n_components(self) -> usize {
        match self {
            Field::Displacement | Field::Reaction | Field::PrincipalStress => 3,
            Field::Stress | Field::Strain | Field::ElementStress => 6,
            Field::VonMises | Field::ErrorEstimate => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, Formulation};

    #[test]
    fn names_stand_in_the_order_of_the_variants() {
        for (name, field) in Field::NAMES {
            assert_eq!(field.name(), name);
            assert_eq!(field.component_names().len(), field.n_components());
        }
        for (name, formulation) in Formulation::NAMES {
            assert_eq!(formulation.name(), name);
        }
    }
}
