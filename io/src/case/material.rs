//! Types of `[[material]]`, `[[orientation]]` and `[[temperature]]`, and the matrix that elastic constants stand for.
//!
//! Invariant: plain data; constants of one material in its own axes; knows no mesh and no field of temperature.

use super::Place;

/// A matrix of stress over strain, Pa, in the order xx yy zz xy yz zx with engineering shear strains.
pub type Stiffness = [[f64; 6]; 6];

/// Pivots of a stiffness matrix below this share of their diagonal entry count as zero.
const PIVOT_TOLERANCE: f64 = 1e-12;
/// Places of the tensor pairs 11 22 33 12 13 23, in which stiffness terms are given, in the order xx yy zz xy yz zx.
const PLACES: [usize; 6] = [0, 1, 2, 3, 5, 4];

/// `[[material]]`: linear elastic.
#[derive(Clone, Debug, PartialEq)]
pub struct MaterialInput {
    /// Unique name.
    pub name: String,
    /// Element sets, at least one; `all` by default.
    pub elements: Vec<String>,
    /// Elastic constants by ascending temperature, at least one entry; a single one holds at every temperature.
    /// Between entries they are interpolated (Young's modulus and Poisson's ratio, of other kinds the terms of the
    /// stiffness), outside they are those of the nearest.
    pub elastic: Vec<AtTemperature<ElasticInput>>,
    /// Thermal expansion by ascending temperature, 1/K; empty if there is none. Each holds, in material axes, the
    /// strains xx yy zz xy yz zx per kelvin (engineering shear), as a mean from `reference_temperature` on (secant).
    pub expansion: Vec<AtTemperature<[f64; 6]>>,
    /// Temperature from which the mean coefficients of expansion count, 0 by default.
    pub reference_temperature: f64,
    /// Density, kg/m3, >= 0; needed by gravity and centrifugal loads.
    pub density: Option<f64>,
    /// Thermal conductivity, W/(m K), > 0; not used by statics.
    pub conductivity: Option<f64>,
    /// Specific heat, J/(kg K), > 0; not used by statics.
    pub specific_heat: Option<f64>,
    /// Place of `elements`, or of the table where that is left out.
    pub place: Place,
}

impl MaterialInput {
    /// The largest Poisson's ratio of an isotropic material, `None` of others.
    pub fn poisson(&self) -> Option<f64> {
        let of = |entry: &AtTemperature<ElasticInput>| match entry.value {
            ElasticInput::Isotropic { poisson, .. } => Some(poisson),
            _ => None,
        };
        self.elastic.iter().filter_map(of).reduce(f64::max)
    }

    /// Whether anything of the material depends on temperature: expansion or elastic constants.
    pub fn feels_temperature(&self) -> bool {
        !self.expansion.is_empty() || self.elastic.len() > 1
    }
}

/// A property at a temperature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtTemperature<V> {
    /// The temperature.
    pub temperature: f64,
    /// The property.
    pub value: V,
}

/// Elastic constants in material axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ElasticInput {
    /// The same in all directions.
    Isotropic {
        /// Young's modulus E, Pa, > 0.
        young: f64,
        /// Poisson's ratio, in (-1, 0.5).
        poisson: f64,
    },
    /// Engineering constants of an orthotropic material.
    Engineering {
        /// Young's moduli E1, E2, E3, Pa, > 0.
        young: [f64; 3],
        /// nu12, nu13, nu23: nu12 is the contraction along 2 per stretch along 1 under tension along 1.
        poisson: [f64; 3],
        /// Shear moduli G12, G13, G23, Pa, > 0.
        shear: [f64; 3],
    },
    /// Stiffness terms D1111 D1122 D2222 D1133 D2233 D3333 D1212 D1313 D2323, Pa.
    Orthotropic([f64; 9]),
    /// Stiffness terms, Pa, of the upper triangle by columns, pairs in the order 11 22 33 12 13 23: D1111, D1122 D2222,
    /// D1133 D2233 D3333, D1112 D2212 D3312 D1212, D1113 D2213 D3313 D1213 D1313, D1123 D2223 D3323 D1223 D1323 D2323.
    Anisotropic([f64; 21]),
}

impl ElasticInput {
    /// Stress over strain in material axes.
    pub fn stiffness(&self) -> Stiffness {
        match *self {
            ElasticInput::Isotropic { young, poisson } => {
                let mu = young / (2.0 * (1.0 + poisson));
                let lambda = young * poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson));
                let mut d = [[0.0; 6]; 6];
                for i in 0..3 {
                    d[i][..3].fill(lambda);
                    d[i][i] = lambda + 2.0 * mu;
                    d[3 + i][3 + i] = mu;
                }
                d
            }
            ElasticInput::Engineering {
                young,
                poisson,
                shear,
            } => engineering(young, poisson, shear),
            ElasticInput::Orthotropic(terms) => {
                let mut all = [0.0; 21];
                all[..6].copy_from_slice(&terms[..6]);
                (all[9], all[14], all[20]) = (terms[6], terms[7], terms[8]);
                upper_triangle(&all)
            }
            ElasticInput::Anisotropic(terms) => upper_triangle(&terms),
        }
    }

    /// What keeps the constants from being those of a stable material, `None` if nothing does: every strain must cost
    /// energy.
    pub fn fault(&self) -> Option<String> {
        if let ElasticInput::Isotropic { .. } = self {
            // Their ranges say it all.
            return None;
        }
        if let ElasticInput::Engineering { young, poisson, .. } = self {
            for (nu, (i, j)) in poisson.iter().zip([(0, 1), (0, 2), (1, 2)]) {
                let limit = (young[i] / young[j]).sqrt();
                if nu.abs() >= limit {
                    let (i, j) = (i + 1, j + 1);
                    return Some(format!(
                        "nu{i}{j} is {nu}, but |nu{i}{j}| must be less than sqrt(E{i} / E{j}) = {limit:.4}"
                    ));
                }
            }
            if determinant(&normalized(young, poisson)) <= PIVOT_TOLERANCE {
                return Some(
                    "Poisson's ratios are too large together: some state of stress would cost no energy".to_owned(),
                );
            }
            return None;
        }
        first_bad_pivot(self.stiffness()).map(|k| {
            format!(
                "the stiffness matrix is not positive definite: its leading block of size {} is not",
                k + 1
            )
        })
    }
}

/// The matrix whose upper triangle is given by columns in the order 11 22 33 12 13 23.
fn upper_triangle(terms: &[f64; 21]) -> Stiffness {
    let mut d = [[0.0; 6]; 6];
    let mut next = terms.iter();
    for column in 0..6 {
        for (row, &term) in (0..=column).zip(&mut next) {
            let (i, j) = (PLACES[row], PLACES[column]);
            d[i][j] = term;
            d[j][i] = term;
        }
    }
    d
}

/// The compliance of the three normal strains with its diagonal scaled to 1.
fn normalized(young: &[f64; 3], [nu12, nu13, nu23]: &[f64; 3]) -> [[f64; 3]; 3] {
    let [c12, c13, c23] = [(nu12, 0, 1), (nu13, 0, 2), (nu23, 1, 2)]
        .map(|(nu, i, j)| -nu * (young[j] / young[i]).sqrt());
    [[1.0, c12, c13], [c12, 1.0, c23], [c13, c23, 1.0]]
}

fn determinant(m: &[[f64; 3]; 3]) -> f64 {
    (0..3).map(|j| m[0][j] * cofactor(m, 0, j)).sum()
}

fn cofactor(m: &[[f64; 3]; 3], i: usize, j: usize) -> f64 {
    let (i1, i2, j1, j2) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
    m[i1][j1] * m[i2][j2] - m[i1][j2] * m[i2][j1]
}

fn engineering(young: [f64; 3], poisson: [f64; 3], [g12, g13, g23]: [f64; 3]) -> Stiffness {
    let compliance = normalized(&young, &poisson);
    let det = determinant(&compliance);
    let mut d = [[0.0; 6]; 6];
    for i in 0..3 {
        for j in 0..3 {
            d[i][j] = cofactor(&compliance, i, j) / det * (young[i] * young[j]).sqrt();
        }
    }
    (d[3][3], d[4][4], d[5][5]) = (g12, g23, g13);
    d
}

/// The first row at which elimination meets a pivot that is not positive.
fn first_bad_pivot(mut d: Stiffness) -> Option<usize> {
    let diagonal = [0, 1, 2, 3, 4, 5].map(|i| d[i][i]);
    for k in 0..6 {
        // NaN is bad, too.
        let is_good = d[k][k] > PIVOT_TOLERANCE * diagonal[k] && diagonal[k] > 0.0;
        if !is_good {
            return Some(k);
        }
        for i in k + 1..6 {
            let factor = d[i][k] / d[k][k];
            for j in k..6 {
                d[i][j] -= factor * d[k][j];
            }
        }
    }
    None
}

/// `[[orientation]]`: axes of material of an element set.
#[derive(Clone, Debug, PartialEq)]
pub struct OrientationInput {
    /// Unique name.
    pub name: String,
    /// Element sets, at least one; `all` by default.
    pub elements: Vec<String>,
    /// How `a` and `b` are read.
    pub system: OrientationSystem,
    /// Rectangular: a vector along axis 1. Cylindrical: a point on the axis of the cylinder, m.
    pub a: [f64; 3],
    /// Rectangular: a vector in the plane of axes 1 and 2, not along `a`. Cylindrical: another point on the axis, m.
    pub b: [f64; 3],
    /// A rotation of these axes about one of them: the axis (0, 1 or 2) and the angle in degrees, positive by the
    /// right-hand rule.
    pub rotation: Option<(usize, f64)>,
    /// Place of `elements`, or of the table where that is left out.
    pub place: Place,
}

/// How an orientation is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrientationSystem {
    /// The same axes at every point: 1 along `a`, 2 in the plane of `a` and `b`, 3 normal to both.
    Rectangular,
    /// At each point 1 radial, 2 tangential, 3 along the axis from `a` to `b`.
    Cylindrical,
}

impl OrientationSystem {
    /// Names in case files.
    pub const NAMES: [(&'static str, Self); 2] = [
        ("rectangular", OrientationSystem::Rectangular),
        ("cylindrical", OrientationSystem::Cylindrical),
    ];
}

/// `[[temperature]]`: temperatures of nodes. Of several tables for one node the last counts.
#[derive(Clone, Debug, PartialEq)]
pub struct TemperatureInput {
    /// Sets whose nodes have the temperature; empty if `value` names nodes.
    pub on: Vec<String>,
    /// The temperature.
    pub value: TemperatureValue,
    /// Whether it is that before loading, at which the body is free of thermal strain, or that of the loaded body. A
    /// node without the first has the reference temperature of its material, one without the second keeps the first.
    pub initial: bool,
    /// Share of the way from what tables before this one say (the initial temperature without) to this; 1 but within a
    /// step.
    pub share: f64,
    /// Place of `on`, or of `by_node`.
    pub place: Place,
}

/// The values of a `[[temperature]]`.
#[derive(Clone, Debug, PartialEq)]
pub enum TemperatureValue {
    /// At the nodes of the sets.
    Field(LinearField),
    /// Node number of the input and temperature.
    ByNode(Vec<(u64, f64)>),
}

/// A scalar that is linear in space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearField {
    /// Value at `at`.
    pub value: f64,
    /// Its increase per unit of length along x, y, z.
    pub gradient: [f64; 3],
    /// A point, m, after `mesh.scale`.
    pub at: [f64; 3],
}

impl LinearField {
    /// The same value everywhere.
    pub const fn constant(value: f64) -> Self {
        LinearField {
            value,
            gradient: [0.0; 3],
            at: [0.0; 3],
        }
    }

    /// The value at `x`.
    pub fn value_at(&self, x: [f64; 3]) -> f64 {
        let rise = (0..3).map(|i| self.gradient[i] * (x[i] - self.at[i]));
        self.value + rise.sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::{ElasticInput, LinearField};

    const STEEL: ElasticInput = ElasticInput::Isotropic {
        young: 200.0,
        poisson: 0.3,
    };

    fn assert_same(a: ElasticInput, b: ElasticInput) {
        for (a, b) in a
            .stiffness()
            .as_flattened()
            .iter()
            .zip(b.stiffness().as_flattened())
        {
            assert!((a - b).abs() < 1e-11, "{a} {b}");
        }
    }

    #[test]
    fn every_form_of_an_isotropic_material_is_the_same() {
        assert_eq!(STEEL.fault(), None);
        let d = STEEL.stiffness();
        let engineering = ElasticInput::Engineering {
            young: [200.0; 3],
            poisson: [0.3; 3],
            shear: [d[3][3]; 3],
        };
        assert_eq!(engineering.fault(), None);
        assert_same(STEEL, engineering);
        let (a, l, g) = (d[0][0], d[0][1], d[3][3]);
        let nine = ElasticInput::Orthotropic([a, l, a, l, l, a, g, g, g]);
        assert_same(STEEL, nine);
        let mut terms = [0.0; 21];
        terms[..6].copy_from_slice(&[a, l, a, l, l, a]);
        (terms[9], terms[14], terms[20]) = (g, g, g);
        assert_same(STEEL, ElasticInput::Anisotropic(terms));
        assert_eq!(ElasticInput::Anisotropic(terms).fault(), None);
    }

    #[test]
    fn terms_stand_where_their_indices_say() {
        // Term k of the list is k + 1.
        let d = ElasticInput::Anisotropic(std::array::from_fn(|k| k as f64 + 1.0)).stiffness();
        // D1122, D2233, D3312, D1213, D1323 with xy = 12, yz = 23, zx = 13.
        assert_eq!(
            [d[0][1], d[1][2], d[2][3], d[3][5], d[5][4]],
            [2.0, 5.0, 9.0, 14.0, 20.0]
        );
        assert_eq!([d[3][3], d[5][5], d[4][4]], [10.0, 15.0, 21.0]);
        assert!((0..6).all(|i| (0..6).all(|j| d[i][j] == d[j][i])));
        let d = ElasticInput::Orthotropic(std::array::from_fn(|k| k as f64 + 1.0)).stiffness();
        assert_eq!([d[3][3], d[5][5], d[4][4]], [7.0, 8.0, 9.0]);
    }

    #[test]
    fn engineering_constants_are_what_tension_and_shear_measure() {
        let (young, poisson) = ([140.0, 10.0, 9.0], [0.3, 0.25, 0.4]);
        let law = ElasticInput::Engineering {
            young,
            poisson,
            shear: [5.0, 4.0, 3.0],
        };
        assert_eq!(law.fault(), None);
        let d = law.stiffness();
        // Strains under a stress of 1 along each axis.
        let strains = [
            [1.0 / 140.0, -0.3 / 140.0, -0.25 / 140.0],
            [-0.3 / 140.0, 1.0 / 10.0, -0.4 / 10.0],
            [-0.25 / 140.0, -0.4 / 10.0, 1.0 / 9.0],
        ];
        for (axis, strain) in strains.iter().enumerate() {
            for (i, row) in d[..3].iter().enumerate() {
                let stress: f64 = row.iter().zip(strain).map(|(d, e)| d * e).sum();
                let expected = if i == axis { 1.0 } else { 0.0 };
                assert!((stress - expected).abs() < 1e-14);
            }
        }
        assert_eq!([d[3][3], d[4][4], d[5][5]], [5.0, 3.0, 4.0]);
    }

    #[test]
    fn unstable_constants_are_found() {
        let engineering = |young, poisson| ElasticInput::Engineering {
            young,
            poisson,
            shear: [1.0; 3],
        };
        let fault = engineering([10.0, 40.0, 10.0], [0.6, 0.1, 0.1])
            .fault()
            .unwrap();
        assert!(
            fault.contains("|nu12| must be less than sqrt(E1 / E2) = 0.5000"),
            "{fault}"
        );
        let fault = engineering([10.0; 3], [0.6; 3]).fault().unwrap();
        assert!(fault.contains("too large together"), "{fault}");
        assert_eq!(engineering([10.0; 3], [-0.4; 3]).fault(), None);
        let fault = ElasticInput::Orthotropic([2.0, 3.0, 2.0, 0.0, 0.0, 2.0, 1.0, 1.0, 1.0]);
        assert!(fault.fault().unwrap().contains("block of size 2"));
        let fault = ElasticInput::Orthotropic([2.0, 1.0, 2.0, 0.0, 0.0, 2.0, 1.0, 0.0, 1.0]);
        assert!(fault.fault().unwrap().contains("block of size 6"));
    }

    #[test]
    fn a_linear_field_rises_along_its_gradient() {
        let field = LinearField {
            value: 3.0,
            gradient: [0.0, 1.0, -2.0],
            at: [1.0, 1.0, 1.0],
        };
        assert_eq!(field.value_at([9.0, 2.0, 3.0]), 0.0);
        assert_eq!(LinearField::constant(4.0).value_at([1.0, 2.0, 3.0]), 4.0);
    }
}
