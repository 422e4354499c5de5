//! Fills a [`Case`] from the tables of the case file.
//!
//! Invariant: pure; the same text gives the same case or the same error on every rank.

use super::build_links;
use super::build_material::{material, orientation, temperature};
use super::build_steps::{amplitude, print, steps};
use super::consistency;
use super::reader::Section;
use super::tree::{Source, Table};
use super::{
    Analysis, AnalysisKind, Balance, BoxInput, Case, Check, ConstraintInput, ElementInput, Field,
    Formulation, LinearField, LoadInput, LoadKind, MeshInput, MeshSource, Method, Origins,
    OutputOptions, ParallelOptions, Partitioner, Preconditioner, Probe, ProbeAt, Reductions,
    Selection, SetDefinition, SolverOptions,
};
use fem_mesh::{CellType, Result};
use std::path::{Path, PathBuf};

/// Builds the case from the tree of the file.
pub(super) fn case(source: Source<'_>, table: &Table) -> Result<Case> {
    let root = Section::root(source, table)?;
    let mesh = root.section("mesh")?;
    let case = Case {
        path: source.path.to_path_buf(),
        overrides: source.overrides.to_vec(),
        origins: Origins::default(),
        title: root.text("title")?.unwrap_or_default(),
        units: root.text("units")?.unwrap_or_default(),
        mesh: mesh_input(&root.required("mesh", mesh)?, source.path)?,
        analysis: analysis(root.section("analysis")?)?,
        materials: each(&root, "material", material)?,
        elements: each(&root, "element", element)?,
        orientations: each(&root, "orientation", orientation)?,
        constraints: each(&root, "constraint", constraint)?,
        links: build_links::links(&root)?,
        loads: each(&root, "load", load)?,
        temperatures: each(&root, "temperature", temperature)?,
        steps: steps(&root)?,
        amplitudes: each(&root, "amplitude", amplitude)?,
        prints: each(&root, "print", print)?,
        sets: each(&root, "set", set)?,
        solver: solver(root.section("solver")?)?,
        parallel: parallel(root.section("parallel")?)?,
        output: output(root.section("output")?)?,
        probes: each(&root, "probe", probe)?,
        checks: each(&root, "check", check)?,
    };
    if case.materials.is_empty() {
        return root.required("material", None);
    }
    consistency::check(&case)?;
    Ok(case)
}

pub(super) fn each<T>(
    root: &Section<'_>,
    key: &'static str,
    build: impl Fn(&Section<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    root.sections(key)?.iter().map(build).collect()
}

pub(super) fn name(section: &Section<'_>) -> Result<String> {
    let name = section.required("name", section.text("name")?)?;
    if name.trim().is_empty() {
        return Err(section.error(
            section.place_of("name"),
            format!("{} has an empty name", section.title()),
        ));
    }
    Ok(name)
}

/// `name` of a set that a table makes up; empty if it is left out.
pub(super) fn name_of_set(section: &Section<'_>) -> Result<String> {
    if section.has("name") {
        name(section)
    } else {
        Ok(String::new())
    }
}

fn mesh_input(section: &Section<'_>, case_path: &Path) -> Result<MeshInput> {
    let (given, place) = section.exactly_one()?;
    let source = match given {
        "box" => MeshSource::Box(box_input(
            &section.required("box", section.section("box")?)?,
        )?),
        _ => MeshSource::File(mesh_file(section, case_path)?),
    };
    Ok(MeshInput {
        source,
        scale: section.number("scale")?.unwrap_or(1.0),
        place,
    })
}

fn mesh_file(section: &Section<'_>, case_path: &Path) -> Result<PathBuf> {
    let file = section.required("file", section.text("file")?)?;
    if file.trim().is_empty() {
        return Err(section
            .error(section.place_of("file"), "`file` is empty")
            .expected("the path of a mesh file"));
    }
    Ok(case_path
        .parent()
        .map_or_else(|| PathBuf::from(&file), |folder| folder.join(&file)))
}

fn box_input(section: &Section<'_>) -> Result<BoxInput> {
    let elements = CellType::SOLIDS.map(|cell_type| (cell_type.name(), cell_type));
    Ok(BoxInput {
        size: section.required("size", section.vector("size")?)?,
        cells: section.required("cells", section.counts("cells")?)?,
        element: section
            .choice("element", &elements)?
            .unwrap_or(CellType::Hex8),
        origin: section.vector("origin")?.unwrap_or_default(),
    })
}

fn analysis(section: Option<Section<'_>>) -> Result<Analysis> {
    let kind = section
        .map(|section| section.choice("type", &AnalysisKind::NAMES))
        .transpose()?
        .flatten();
    Ok(Analysis {
        kind: kind.unwrap_or(AnalysisKind::Static),
    })
}

fn element(section: &Section<'_>) -> Result<ElementInput> {
    let formulation = section.choice("formulation", &Formulation::NAMES)?;
    Ok(ElementInput {
        elements: section
            .names("elements")?
            .unwrap_or_else(|| vec!["all".to_owned()]),
        formulation: formulation.unwrap_or_default(),
        place: section.place_of("elements"),
    })
}

pub(super) fn constraint(section: &Section<'_>) -> Result<ConstraintInput> {
    let on = section.required("on", section.names("on")?)?;
    if !section.has("displacement") && !section.has("rotation") {
        return section.required("displacement", None);
    }
    let prescribed = |key: &'static str| {
        let values = section.displacement(key)?;
        if values == Some([None; 3]) {
            let what = format!("all components of `{key}` are \"free\"");
            let error = section.error(section.place_of(key), what);
            return Err(error
                .expected("at least one number")
                .advice("leave the constraint out if nothing is to be held"));
        }
        Ok(values.unwrap_or_default())
    };
    Ok(ConstraintInput {
        on,
        displacement: prescribed("displacement")?,
        rotation: prescribed("rotation")?,
        amplitude: section.text("amplitude")?,
        layer: 0,
        share: 1.0,
        place: section.place_of("on"),
    })
}

pub(super) fn load(section: &Section<'_>) -> Result<LoadInput> {
    let (given, _) = section.exactly_one()?;
    let vector = |key| {
        section
            .vector(key)
            .and_then(|value| section.required(key, value))
    };
    let number = |key| {
        section
            .number(key)
            .and_then(|value| section.required(key, value))
    };
    let kind = match given {
        "traction" => LoadKind::Traction(vector("traction")?),
        "pressure" => match field(section, "pressure")? {
            LinearField {
                value,
                gradient: [0.0, 0.0, 0.0],
                ..
            } => LoadKind::Pressure(value),
            field => LoadKind::PressureField(field),
        },
        "force" => LoadKind::Force(vector("force")?),
        "moment" => LoadKind::Moment(vector("moment")?),
        "body_force" => LoadKind::BodyForce(vector("body_force")?),
        "gravity" => LoadKind::Gravity(vector("gravity")?),
        "nodal_force" => LoadKind::NodalForce(vector("nodal_force")?),
        "initial_stress" => LoadKind::InitialStress(tensor(section, "initial_stress")?),
        "initial_strain" => LoadKind::InitialStrain(tensor(section, "initial_strain")?),
        "temperature_change" => LoadKind::TemperatureChange(number("temperature_change")?),
        _ => centrifugal(&section.required("centrifugal", section.section("centrifugal")?)?)?,
    };
    let on = section.required("on", section.names("on")?)?;
    Ok(LoadInput {
        on,
        kind,
        amplitude: section.text("amplitude")?,
        place: section.place_of("on"),
    })
}

/// Six numbers of a symmetric tensor.
fn tensor(section: &Section<'_>, key: &'static str) -> Result<[f64; 6]> {
    let numbers = section.required(key, section.numbers(key)?)?;
    // The key allows no other length.
    Ok(std::array::from_fn(|i| numbers[i]))
}

/// A number or a linear field.
pub(super) fn field(section: &Section<'_>, key: &'static str) -> Result<LinearField> {
    Ok(match section.required(key, section.field(key)?)? {
        Ok(value) => LinearField::constant(value),
        Err(field) => LinearField {
            value: field.required("value", field.number("value")?)?,
            gradient: field.required("gradient", field.vector("gradient")?)?,
            at: field.vector("at")?.unwrap_or_default(),
        },
    })
}

fn centrifugal(section: &Section<'_>) -> Result<LoadKind> {
    let axis = section.required("axis", section.vector("axis")?)?;
    if axis == [0.0; 3] {
        let error = section.error(section.place_of("axis"), "`axis` has length 0");
        return Err(
            error.expected("the direction of the axis of rotation, such as [0.0, 0.0, 1.0]")
        );
    }
    let origin = section.vector("origin")?.unwrap_or_default();
    Ok(LoadKind::Centrifugal {
        origin,
        axis,
        omega: section.required("omega", section.number("omega")?)?,
    })
}

fn set(section: &Section<'_>) -> Result<SetDefinition> {
    let name = name(section)?;
    let selection = match section.exactly_one()?.0 {
        "nodes_in_box" => {
            limits(section, "nodes_in_box").map(|(min, max)| Selection::NodesInBox { min, max })
        }
        "faces_in_box" => {
            limits(section, "faces_in_box").map(|(min, max)| Selection::FacesInBox { min, max })
        }
        _ => limits(section, "elements_in_box")
            .map(|(min, max)| Selection::ElementsInBox { min, max }),
    }?;
    Ok(SetDefinition {
        name,
        selection,
        place: section.place_of("name"),
    })
}

fn limits(section: &Section<'_>, key: &'static str) -> Result<([f64; 3], [f64; 3])> {
    let limits = section.required(key, section.section(key)?)?;
    let min = limits
        .bound("min", f64::NEG_INFINITY)?
        .unwrap_or([f64::NEG_INFINITY; 3]);
    let max = limits
        .bound("max", f64::INFINITY)?
        .unwrap_or([f64::INFINITY; 3]);
    match (0..3).find(|&i| min[i] > max[i]) {
        Some(i) => {
            let what = format!(
                "the box of `{key}` is empty: min {:?} is greater than max {:?}",
                min[i], max[i]
            );
            Err(section
                .error(limits.place_of("max"), what)
                .expected("min <= max in x, y and z"))
        }
        None => Ok((min, max)),
    }
}

fn solver(section: Option<Section<'_>>) -> Result<SolverOptions> {
    let mut options = SolverOptions::default();
    let Some(section) = section else {
        return Ok(options);
    };
    set_if(
        &mut options.method,
        section.choice("method", &Method::NAMES)?,
    );
    set_if(
        &mut options.preconditioner,
        section.choice("preconditioner", &Preconditioner::NAMES)?,
    );
    set_if(&mut options.tolerance, section.number("tolerance")?);
    set_if(
        &mut options.max_iterations,
        section.count("max_iterations")?,
    );
    set_if(
        &mut options.reductions,
        section.choice("reductions", &Reductions::NAMES)?,
    );
    Ok(options)
}

fn parallel(section: Option<Section<'_>>) -> Result<ParallelOptions> {
    let mut options = ParallelOptions::default();
    let Some(section) = section else {
        return Ok(options);
    };
    set_if(&mut options.threads, section.count_or_auto("threads")?);
    set_if(
        &mut options.partitioner,
        section.choice("partitioner", &Partitioner::NAMES)?,
    );
    set_if(
        &mut options.balance,
        section.choice("balance", &Balance::NAMES)?,
    );
    Ok(options)
}

fn output(section: Option<Section<'_>>) -> Result<OutputOptions> {
    let mut options = OutputOptions::default();
    let Some(section) = section else {
        return Ok(options);
    };
    if let Some(directory) = section.text("directory")? {
        if directory.trim().is_empty() {
            let error = section.error(section.place_of("directory"), "`directory` is empty");
            return Err(error.expected("the path of a directory"));
        }
        options.directory = PathBuf::from(directory);
    }
    set_if(
        &mut options.fields,
        section.choices("fields", &Field::NAMES)?,
    );
    set_if(&mut options.report, section.flag("report")?);
    set_if(
        &mut options.integration_points,
        section.flag("integration_points")?,
    );
    Ok(options)
}

fn set_if<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

fn probe(section: &Section<'_>) -> Result<Probe> {
    let name = name(section)?;
    let (given, place) = section.exactly_one()?;
    let at = match given {
        "at" => ProbeAt::Point(section.required("at", section.vector("at")?)?),
        _ => ProbeAt::Set(section.required("set", section.text("set")?)?),
    };
    let field = section.required("field", section.choice("field", &Field::NAMES)?)?;
    if field == Field::Reaction && given == "at" {
        let what = "a reaction is a force on the nodes of a support and has no value at a point";
        let error = section.error(place, what);
        return Err(error
            .expected("a set: the sum of the reactions of its nodes is reported")
            .advice("use `set = \"...\"` with the set that is held"));
    }
    Ok(Probe {
        name,
        at,
        field,
        step: section.text("step")?,
        place,
    })
}

fn check(section: &Section<'_>) -> Result<Check> {
    Ok(Check {
        probe: section.required("probe", section.text("probe")?)?,
        component: section.count("component")?,
        expected: section.required("expected", section.number("expected")?)?,
        tolerance: section.required("tolerance", section.number("tolerance")?)?,
        source: section.text("source")?.unwrap_or_default(),
        place: section.place_of(if section.has("component") {
            "component"
        } else {
            "probe"
        }),
    })
}
