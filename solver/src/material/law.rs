//! The law of one material of the case: elastic constants and thermal expansion as functions of temperature.
//!
//! Isotropic constants are interpolated between temperatures as Young's modulus and Poisson's ratio, other constants as
//! terms of the stiffness. The thermal strain of secant coefficients a(T) from the reference temperature R is
//! a(T) (T - R) - a(T0) (T0 - R), with T0 the temperature at which the body is free of thermal strain.
//!
//! Invariant: in material axes; no state.

use super::curve::Curve;
use super::{Elastic, Isotropic};
use fem_io::case::{AtTemperature, ElasticInput, MaterialInput};

/// A linear elastic law with thermal expansion.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    constants: Constants,
    expansion: Curve<6>,
    reference_temperature: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Constants {
    /// Young's modulus and Poisson's ratio.
    Isotropic(Curve<2>),
    /// Rows of the stiffness one after another.
    Directional(Box<Curve<36>>),
}

impl Law {
    /// The law of a Young's modulus, Pa, a Poisson's ratio and a coefficient of thermal expansion, 1/K, at any
    /// temperature; reference temperature 0.
    pub fn isotropic(young: f64, poisson: f64, expansion: f64) -> Self {
        let a = expansion;
        Law {
            constants: Constants::Isotropic(Curve::constant([young, poisson])),
            expansion: Curve::constant([a, a, a, 0.0, 0.0, 0.0]),
            reference_temperature: 0.0,
        }
    }

    /// The law of a material of the case.
    pub fn new(input: &MaterialInput) -> Self {
        let isotropic = points(&input.elastic, |constants| match *constants {
            ElasticInput::Isotropic { young, poisson } => Some([young, poisson]),
            _ => None,
        });
        let constants = match isotropic.and_then(Curve::through) {
            Some(curve) => Constants::Isotropic(curve),
            None => {
                let stiffness = points(&input.elastic, |constants| {
                    let d = constants.stiffness();
                    Some(std::array::from_fn(|k| d[k / 6][k % 6]))
                });
                let curve = stiffness.and_then(Curve::through);
                // A case gives every material at least one entry.
                Constants::Directional(Box::new(curve.unwrap_or(Curve::constant([0.0; 36]))))
            }
        };
        let expansion = points(&input.expansion, |values| Some(*values));
        Law {
            constants,
            expansion: expansion
                .and_then(Curve::through)
                .unwrap_or(Curve::constant([0.0; 6])),
            reference_temperature: input.reference_temperature,
        }
    }

    /// The law if nothing in it depends on direction or temperature.
    pub fn as_isotropic(&self) -> Option<Isotropic> {
        let Constants::Isotropic(curve) = &self.constants else {
            return None;
        };
        let [young, poisson] = curve.as_constant()?;
        let expansion = self.expansion.as_constant()?;
        let a = expansion[0];
        (expansion == [a, a, a, 0.0, 0.0, 0.0]).then(|| Isotropic::new(young, poisson, a))
    }

    /// Lame constants lambda and mu at a temperature, Pa, of an isotropic material.
    pub fn lame_at(&self, temperature: f64) -> Option<[f64; 2]> {
        match &self.constants {
            Constants::Isotropic(curve) => {
                let [young, poisson] = curve.at(temperature);
                let law = Isotropic::new(young, poisson, 0.0);
                Some([law.lambda, law.mu])
            }
            Constants::Directional(_) => None,
        }
    }

    /// Whether the elastic constants are the same at every temperature.
    pub fn has_constant_stiffness(&self) -> bool {
        match &self.constants {
            Constants::Isotropic(curve) => curve.as_constant().is_some(),
            Constants::Directional(curve) => curve.as_constant().is_some(),
        }
    }

    /// Constants and coefficients of expansion at a temperature, in material axes.
    pub fn at(&self, temperature: f64) -> Elastic {
        let d = match &self.constants {
            Constants::Isotropic(curve) => {
                let [young, poisson] = curve.at(temperature);
                Elastic::from(Isotropic::new(young, poisson, 0.0)).d
            }
            Constants::Directional(curve) => {
                let terms = curve.at(temperature);
                std::array::from_fn(|i| std::array::from_fn(|j| terms[6 * i + j]))
            }
        };
        Elastic {
            d,
            expansion: self.expansion.at(temperature),
        }
    }

    /// Thermal strain in material axes at `temperature` in a body that has none at `initial`.
    pub fn thermal_strain(&self, initial: f64, temperature: f64) -> [f64; 6] {
        if let Some(a) = self.expansion.as_constant() {
            return a.map(|a| a * (temperature - initial));
        }
        let (now, before) = (self.expansion.at(temperature), self.expansion.at(initial));
        let reference = self.reference_temperature;
        std::array::from_fn(|i| {
            now[i] * (temperature - reference) - before[i] * (initial - reference)
        })
    }

    /// Temperature from which the coefficients of expansion are means.
    pub fn reference_temperature(&self) -> f64 {
        self.reference_temperature
    }
}

/// Points of a curve; `None` if `f` has none for one of the entries.
fn points<V, const N: usize>(
    entries: &[AtTemperature<V>],
    f: impl Fn(&V) -> Option<[f64; N]>,
) -> Option<Vec<(f64, [f64; N])>> {
    let point = |entry: &AtTemperature<V>| f(&entry.value).map(|v| (entry.temperature, v));
    entries.iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::Law;
    use crate::material::Isotropic;
    use fem_io::case::{Case, parse};
    use std::path::Path;

    fn law(keys: &str) -> Law {
        let text = format!("[mesh]\nfile = \"a.msh\"\n[[material]]\nname = \"m\"\n{keys}\n");
        let case: Case = parse(Path::new("case.toml"), &text).unwrap();
        Law::new(&case.materials[0])
    }

    #[test]
    fn constant_isotropic_constants_give_the_simple_law() {
        let simple = law("young = 200.0\npoisson = 0.25\nexpansion = 1e-5");
        assert_eq!(
            simple.as_isotropic(),
            Some(Isotropic::new(200.0, 0.25, 1e-5))
        );
        assert_eq!(simple, Law::isotropic(200.0, 0.25, 1e-5));
        let directed = law("young = 200.0\npoisson = 0.25\nexpansion = [1e-5, 1e-5, 2e-5]");
        assert_eq!(directed.as_isotropic(), None);
        assert!(directed.has_constant_stiffness());
        let one_row =
            law("table = [{ temperature = 20, young = 200.0, poisson = 0.25, expansion = 1e-5 }]");
        assert_eq!(one_row.as_isotropic(), simple.as_isotropic());
    }

    #[test]
    fn constants_follow_temperature() {
        let steel = law(
            "table = [{ temperature = 0, young = 210.0, poisson = 0.3 }, { temperature = 1000, young = 100.0, poisson = 0.2 }]",
        );
        assert!(!steel.has_constant_stiffness() && steel.as_isotropic().is_none());
        let expected = Isotropic::new(155.0, 0.25, 0.0);
        let [lambda, mu] = steel.lame_at(500.0).unwrap();
        assert!((lambda - expected.lambda).abs() < 1e-12 && (mu - expected.mu).abs() < 1e-12);
        let crystal = law(
            "table = [{ temperature = 0, stiffness = [4, 1, 4, 1, 1, 4, 1, 1, 1] }, { temperature = 10, stiffness = [8, 3, 8, 3, 3, 8, 2, 2, 2] }]",
        );
        let d = crystal.at(5.0).d;
        assert_eq!([d[0][0], d[0][2], d[4][4]], [6.0, 2.0, 1.5]);
        assert_eq!(crystal.lame_at(5.0), None);
    }

    #[test]
    fn secant_coefficients_count_from_the_reference_temperature() {
        let secant = law(
            "young = 1\npoisson = 0\nreference_temperature = 20\nexpansion_table = [{ temperature = 0, expansion = 10e-6 }, { temperature = 1000, expansion = 20e-6 }]",
        );
        let strain = |initial, now| secant.thermal_strain(initial, now)[0];
        // a(520) = 15.2e-6, a(120) = 11.2e-6.
        assert!((strain(20.0, 520.0) - 15.2e-6 * 500.0).abs() < 1e-18);
        assert!((strain(120.0, 520.0) - (15.2e-6 * 500.0 - 11.2e-6 * 100.0)).abs() < 1e-18);
        assert_eq!(strain(300.0, 300.0), 0.0);
        let tensor =
            law("young = 1\npoisson = 0\nexpansion = [1e-6, 2e-6, 3e-6, 4e-6, 5e-6, 6e-6]");
        let expected = [1e-6, 2e-6, 3e-6, 8e-6, 12e-6, 10e-6].map(|a| a * 10.0);
        assert_eq!(tensor.thermal_strain(5.0, 15.0), expected);
    }
}
