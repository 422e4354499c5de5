//! Builds materials, orientations and temperatures from their tables.
//!
//! Invariant: pure; refuses constants of a material that no stable material has.

use super::build::{field, name};
use super::reader::Section;
use super::{
    AtTemperature, ElasticInput, MaterialInput, OrientationInput, OrientationSystem,
    TemperatureInput, TemperatureValue,
};
use fem_mesh::Result;

/// Sine of the angle between `a` and `b` of an orientation below which they count as parallel.
const PARALLEL: f64 = 1e-9;

pub(super) fn material(section: &Section<'_>) -> Result<MaterialInput> {
    let (given, _) = section.exactly_one()?;
    let rows = section.sections("table")?;
    let mut elastic: Vec<AtTemperature<ElasticInput>> = Vec::new();
    let mut expansion = Vec::new();
    match given {
        "table" => {
            elastic = by_temperature(&rows, elastic_constants)?;
            same_form(&rows, &elastic)?;
        }
        _ => elastic.push(constant(elastic_constants(section)?)),
    }
    if let Some(value) = expansion_of(section)? {
        expansion.push(constant(value));
    }
    for values in [
        row_expansions(&rows)?,
        by_temperature(&section.sections("expansion_table")?, required_expansion)?,
    ] {
        if !values.is_empty() && !expansion.is_empty() {
            let what = "the thermal expansion is given twice";
            return Err(section.error(section.place, what).expected(
                "one of `expansion`, `expansion` in each row of `table`, `expansion_table`",
            ));
        }
        expansion.extend(values);
    }
    Ok(MaterialInput {
        name: name(section)?,
        elements: section
            .names("elements")?
            .unwrap_or_else(|| vec!["all".to_owned()]),
        elastic,
        expansion,
        reference_temperature: section.number("reference_temperature")?.unwrap_or(0.0),
        density: section.number("density")?,
        conductivity: section.number("conductivity")?,
        specific_heat: section.number("specific_heat")?,
        place: section.place_of("elements"),
    })
}

fn constant<V>(value: V) -> AtTemperature<V> {
    AtTemperature {
        temperature: 0.0,
        value,
    }
}

/// What `read` finds in each row, by ascending temperature.
fn by_temperature<V>(
    rows: &[Section<'_>],
    read: impl Fn(&Section<'_>) -> Result<V>,
) -> Result<Vec<AtTemperature<V>>> {
    let mut values: Vec<AtTemperature<V>> = Vec::with_capacity(rows.len());
    for row in rows {
        let temperature = row.required("temperature", row.number("temperature")?)?;
        if let Some(last) = values.last()
            && last.temperature >= temperature
        {
            let what = format!("`temperature` is {temperature} after {}", last.temperature);
            return Err(row
                .error(row.place_of("temperature"), what)
                .expected("temperatures that ascend from row to row"));
        }
        values.push(AtTemperature {
            temperature,
            value: read(row)?,
        });
    }
    Ok(values)
}

/// The expansion in the rows of `table`: in all or in none.
fn row_expansions(rows: &[Section<'_>]) -> Result<Vec<AtTemperature<[f64; 6]>>> {
    if !rows.iter().any(|row| row.has("expansion")) {
        return Ok(Vec::new());
    }
    by_temperature(rows, required_expansion)
}

/// All rows must be of one kind to be interpolated.
fn same_form(rows: &[Section<'_>], elastic: &[AtTemperature<ElasticInput>]) -> Result<()> {
    let is_isotropic =
        |e: &AtTemperature<ElasticInput>| matches!(e.value, ElasticInput::Isotropic { .. });
    let odd = (elastic.iter().zip(rows))
        .find(|(entry, _)| is_isotropic(entry) != elastic.first().is_some_and(is_isotropic));
    match odd {
        Some((_, row)) => Err(row
            .error(row.place, "the rows of `table` are of different kinds")
            .expected("`young` and `poisson` in every row, or in none")),
        None => Ok(()),
    }
}

/// The elastic constants that a table holds.
fn elastic_constants(section: &Section<'_>) -> Result<ElasticInput> {
    let (given, _) = section.exactly_one()?;
    let (constants, place) = match given {
        "young" => (isotropic(section)?, section.place_of("young")),
        "orthotropic" => {
            let inner = section.required("orthotropic", section.section("orthotropic")?)?;
            let constants = ElasticInput::Engineering {
                young: inner.required("young", inner.vector("young")?)?,
                poisson: inner.required("poisson", inner.vector("poisson")?)?,
                shear: inner.required("shear", inner.vector("shear")?)?,
            };
            (constants, inner.place_of("poisson"))
        }
        _ => {
            let terms = section.required("stiffness", section.numbers("stiffness")?)?;
            let constants = match <[f64; 9]>::try_from(&terms[..]) {
                Ok(nine) => ElasticInput::Orthotropic(nine),
                // The key allows no other length.
                Err(_) => ElasticInput::Anisotropic(std::array::from_fn(|k| terms[k])),
            };
            (constants, section.place_of("stiffness"))
        }
    };
    match constants.fault() {
        Some(fault) => Err(section
            .error(place, fault)
            .expected("constants of a stable material: every strain costs energy")
            .advice("check the order of the numbers and which Poisson's ratios are meant: nu12 = nu21 E1 / E2")),
        None => Ok(constants),
    }
}

fn isotropic(section: &Section<'_>) -> Result<ElasticInput> {
    if section.is_number("poisson", 0.5) {
        let what = "`poisson` is 0.5: elements in displacements cannot represent an incompressible material";
        let error = section.error(section.place_of("poisson"), what);
        return Err(error.expected("a number between -1 and 0.5 (both excluded)").advice(
            "use 0.49 for a nearly incompressible material such as rubber, with elements of second order",
        ));
    }
    Ok(ElasticInput::Isotropic {
        young: section.required("young", section.number("young")?)?,
        poisson: section.required("poisson", section.number("poisson")?)?,
    })
}

fn required_expansion(section: &Section<'_>) -> Result<[f64; 6]> {
    section.required("expansion", expansion_of(section)?)
}

/// Strain per kelvin, xx yy zz xy yz zx with engineering shear, from the terms 11 22 33 12 13 23 of a tensor.
fn expansion_of(section: &Section<'_>) -> Result<Option<[f64; 6]>> {
    Ok(section.numbers("expansion")?.map(|terms| match terms[..] {
        [a11, a22, a33] => [a11, a22, a33, 0.0, 0.0, 0.0],
        [a11, a22, a33, a12, a13, a23] => [a11, a22, a33, 2.0 * a12, 2.0 * a23, 2.0 * a13],
        _ => {
            let a = terms.first().copied().unwrap_or_default();
            [a, a, a, 0.0, 0.0, 0.0]
        }
    }))
}

pub(super) fn orientation(section: &Section<'_>) -> Result<OrientationInput> {
    let system = section
        .choice("type", &OrientationSystem::NAMES)?
        .unwrap_or(OrientationSystem::Rectangular);
    let a = section.required("a", section.vector("a")?)?;
    let b = section.required("b", section.vector("b")?)?;
    let orientation = OrientationInput {
        name: name(section)?,
        elements: section
            .names("elements")?
            .unwrap_or_else(|| vec!["all".to_owned()]),
        system,
        a,
        b,
        rotation: rotation(section.section("rotate")?)?,
        place: section.place_of("elements"),
    };
    match orientation.fault() {
        Some(fault) => Err(section
            .error(section.place_of("b"), fault)
            .expected(match system {
                OrientationSystem::Rectangular => "two vectors that are not parallel",
                OrientationSystem::Cylindrical => "two different points on the axis",
            })),
        None => Ok(orientation),
    }
}

fn rotation(section: Option<Section<'_>>) -> Result<Option<(usize, f64)>> {
    let Some(section) = section else {
        return Ok(None);
    };
    let axis = section.required("axis", section.count("axis")?)?;
    if axis > 3 {
        let what = format!("`axis` is {axis}");
        return Err(section
            .error(section.place_of("axis"), what)
            .expected("1, 2 or 3"));
    }
    let angle = section.required("angle", section.number("angle")?)?;
    Ok(Some((axis - 1, angle)))
}

impl OrientationInput {
    /// Why `a` and `b` do not make axes, `None` if they do.
    pub fn fault(&self) -> Option<String> {
        let length = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let [a, b] = [self.a, self.b];
        match self.system {
            OrientationSystem::Rectangular => {
                let normal = [1, 2, 0].map(|i| {
                    let (j, k) = ((i + 1) % 3, (i + 2) % 3);
                    a[j] * b[k] - a[k] * b[j]
                });
                // NaN is a fault, too.
                let is_good = length(normal) > PARALLEL * length(a) * length(b);
                (!is_good)
                    .then(|| "`a` and `b` are parallel, or one of them has length 0".to_owned())
            }
            OrientationSystem::Cylindrical => {
                let apart = length([0, 1, 2].map(|i| b[i] - a[i]));
                let is_good = apart > PARALLEL * (length(a) + length(b));
                (!is_good).then(|| "`a` and `b` are one point".to_owned())
            }
        }
    }
}

pub(super) fn temperature(section: &Section<'_>) -> Result<TemperatureInput> {
    let (given, _) = section.exactly_one()?;
    let initial = section.flag("initial")?.unwrap_or(false);
    if given == "value" {
        let value = field(section, "value")?;
        return Ok(TemperatureInput {
            on: section.required("on", section.names("on")?)?,
            value: TemperatureValue::Field(value),
            initial,
            share: 1.0,
            place: section.place_of("on"),
        });
    }
    let nodes = section.required("by_node", section.pairs("by_node")?)?;
    if section.has("on") {
        let what = "`by_node` names its nodes, and so does `on`";
        return Err(section
            .error(section.place_of("on"), what)
            .expected("`on` with `value`, or `by_node` alone"));
    }
    Ok(TemperatureInput {
        on: Vec::new(),
        value: TemperatureValue::ByNode(nodes),
        initial,
        share: 1.0,
        place: section.place_of("by_node"),
    })
}
