//! Fills the tables that join degrees of freedom, see [`super::links`].
//!
//! Invariant: pure; the same text gives the same tables or the same error on every rank.

use super::build::{each, name_of_set};
use super::links::{
    CouplingInput, CouplingKind, CyclicInput, EquationInput, LinkInputs, MpcInput, MpcKind,
    NodeInput, RigidBodyInput, SystemInput, TermInput, TieInput, TransformInput,
};
use super::reader::Section;
use fem_mesh::Result;

/// Axes whose directions differ by less than this, relative to their lengths, span no plane.
const PARALLEL: f64 = 1e-9;

/// All of them.
pub(super) fn links(root: &Section<'_>) -> Result<LinkInputs> {
    Ok(LinkInputs {
        nodes: each(root, "node", node)?,
        transforms: each(root, "transform", transform)?,
        equations: each(root, "equation", equation)?,
        couplings: each(root, "coupling", coupling)?,
        rigid_bodies: each(root, "rigid_body", rigid_body)?,
        ties: each(root, "tie", tie)?,
        cyclic: each(root, "cyclic_symmetry", cyclic)?,
        mpcs: each(root, "mpc", mpc)?,
    })
}

fn node(section: &Section<'_>) -> Result<NodeInput> {
    Ok(NodeInput {
        number: section.required("number", section.count("number")?)? as u64,
        at: section.vector("at")?,
        name: name_of_set(section)?,
        place: section.place_of("number"),
    })
}

fn transform(section: &Section<'_>) -> Result<TransformInput> {
    Ok(TransformInput {
        on: section.required("on", section.names("on")?)?,
        system: system(section)?,
        place: section.place_of("on"),
    })
}

fn system(section: &Section<'_>) -> Result<SystemInput> {
    let kinds = [("rectangular", false), ("cylindrical", true)];
    let is_cylindrical = section.required("kind", section.choice("kind", &kinds)?)?;
    let a = section.required("a", section.vector("a")?)?;
    let b = section.required("b", section.vector("b")?)?;
    let length = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>().sqrt();
    if is_cylindrical {
        if length([0, 1, 2].map(|i| b[i] - a[i])) <= PARALLEL * length(a).max(length(b)) {
            let error = section.error(section.place_of("b"), "`a` and `b` are one point");
            return Err(error.expected("two points on the axis"));
        }
        return Ok(SystemInput::Cylindrical { a, b });
    }
    let normal = [0, 1, 2].map(|i| {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        a[j] * b[k] - a[k] * b[j]
    });
    if length(normal) <= PARALLEL * length(a) * length(b) {
        let what = "`a` and `b` lie in one direction from the origin";
        let error = section.error(section.place_of("b"), what);
        return Err(error.expected("directions of the local x axis and of the local x-y plane"));
    }
    Ok(SystemInput::Rectangular { a, b })
}

fn equation(section: &Section<'_>) -> Result<EquationInput> {
    let terms = section.sections("terms")?;
    let terms: Vec<TermInput> = terms.iter().map(term).collect::<Result<_>>()?;
    if terms.is_empty() {
        let what = "`terms` is missing in [[equation]], or empty";
        return Err(section
            .error(section.place_of("terms"), what)
            .expected("`terms = [{ node = 7, component = \"x\", coefficient = 1.0 }, ...]`"));
    }
    if terms.iter().all(|term| term.coefficient == 0.0) {
        let error = section.error(
            section.place_of("terms"),
            "all coefficients of an [[equation]] are 0",
        );
        return Err(error.expected("at least one term with a coefficient"));
    }
    Ok(EquationInput {
        terms,
        constant: section.number("constant")?.unwrap_or(0.0),
        place: section.place_of("terms"),
    })
}

fn term(section: &Section<'_>) -> Result<TermInput> {
    let components = [
        ("x", 0),
        ("y", 1),
        ("z", 2),
        ("rx", 3),
        ("ry", 4),
        ("rz", 5),
    ];
    Ok(TermInput {
        node: section.required("node", section.node_or_set("node")?)?,
        component: section.required("component", section.choice("component", &components)?)?,
        coefficient: section.number("coefficient")?.unwrap_or(1.0),
        place: section.place_of("node"),
    })
}

fn coupling(section: &Section<'_>) -> Result<CouplingInput> {
    let kind = section.required("kind", section.choice("kind", &CouplingKind::NAMES)?)?;
    let given = section.choices("components", &[("x", 0), ("y", 1), ("z", 2)])?;
    if given.is_some() && kind == CouplingKind::Distributing {
        let what = "a distributing coupling has no `components`: it spreads all forces and moments";
        let error = section.error(section.place_of("components"), what);
        return Err(error.expected("no `components`"));
    }
    let components = given.map_or([true; 3], |given| [0, 1, 2].map(|c| given.contains(&c)));
    let system = section.section("system")?;
    Ok(CouplingInput {
        kind,
        reference: section.required("reference", section.node_or_set("reference")?)?,
        on: section.required("on", section.names("on")?)?,
        components,
        system: system.as_ref().map(self::system).transpose()?,
        place: section.place_of("on"),
    })
}

fn rigid_body(section: &Section<'_>) -> Result<RigidBodyInput> {
    Ok(RigidBodyInput {
        on: section.required("on", section.names("on")?)?,
        reference: section.required("reference", section.node_or_set("reference")?)?,
        rotation_node: section.node_or_set("rotation_node")?,
        place: section.place_of("on"),
    })
}

fn tie(section: &Section<'_>) -> Result<TieInput> {
    Ok(TieInput {
        slave: section.required("slave", section.names("slave")?)?,
        master: section.required("master", section.names("master")?)?,
        position_tolerance: section.number("position_tolerance")?,
        adjust: section.flag("adjust")?.unwrap_or(true),
        place: section.place_of("slave"),
    })
}

fn cyclic(section: &Section<'_>) -> Result<CyclicInput> {
    let axis = section.required("axis", section.vector("axis")?)?;
    if axis == [0.0; 3] {
        let error = section.error(section.place_of("axis"), "`axis` has length 0");
        return Err(error.expected("the direction of the axis, such as [0.0, 0.0, 1.0]"));
    }
    Ok(CyclicInput {
        slave: section.required("slave", section.names("slave")?)?,
        master: section.required("master", section.names("master")?)?,
        origin: section.vector("origin")?.unwrap_or_default(),
        axis,
        n_sectors: section.required("n_sectors", section.count("n_sectors")?)?,
        position_tolerance: section.number("position_tolerance")?,
        place: section.place_of("slave"),
    })
}

fn mpc(section: &Section<'_>) -> Result<MpcInput> {
    let kind = section.required("kind", section.choice("kind", &MpcKind::NAMES)?)?;
    let nodes = section.required("nodes", section.node_numbers("nodes")?)?;
    let place = section.place_of("nodes");
    let (fits, expected) = match kind {
        MpcKind::Plane => (
            nodes.len() > 3,
            "at least 4 nodes: three for the plane, the others stay in it",
        ),
        MpcKind::Straight => (
            nodes.len() > 2,
            "at least 3 nodes: two for the line, the others stay on it",
        ),
        MpcKind::Beam => (nodes.len() == 2, "2 nodes"),
    };
    if !fits {
        let what = format!("`nodes` has {} entries", nodes.len());
        return Err(section.error(place, what).expected(expected));
    }
    if let Some((_, twice)) = nodes
        .iter()
        .enumerate()
        .find(|(k, node)| nodes[..*k].contains(node))
    {
        let what = format!("`nodes` names node {twice} twice");
        return Err(section.error(place, what).expected("each node once"));
    }
    Ok(MpcInput { kind, nodes, place })
}
