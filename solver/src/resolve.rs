//! From the case and this rank's mesh to the `Model`: names become local numbers, totals become densities.
//!
//! Invariant: the last place where set and material names are read; decides nothing about assembly or solution.

use crate::assembly::loads::face_area;
use crate::model::{Load, Material, Model};
use fem_io::case::{Case, ConstraintInput, LoadInput, LoadKind, MaterialInput, Selection};
use fem_io::check;
use fem_mesh::select::{self, Region};
use fem_mesh::{CellFace, Comm, Error, LocalMesh, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Share of the size of the model by which a box of a `[[set]]` is widened.
const BOX_TOLERANCE: f64 = 1e-9;
/// How many element numbers a message lists.
const LISTED: usize = 10;

/// Collective. The model of this rank, and warnings (the same on every rank).
///
/// # Errors
/// Sets that do not exist or have the wrong kind, elements without or with two materials, a degree of freedom
/// prescribed twice with different values, a load that needs a property its material lacks.
pub fn resolve(comm: &Comm, case: &Case, mut mesh: LocalMesh) -> Result<(Model, Vec<String>)> {
    define_sets(comm, case, &mut mesh)?;
    let warnings = check::check_against_sets(case, &catalog(comm, &mesh))?;
    let cell_material = assign_materials(comm, case, &mesh)?;
    let fixed = comm.all_ok(fixed_dofs(case, &mesh))?;
    let mut loads = Vec::new();
    for load in &case.loads {
        comm.all_ok(require_properties(case, load, &mesh, &cell_material))?;
        loads.push(resolve_load(comm, case, load, &mesh)?);
    }
    let materials = case.materials.iter().map(material).collect();
    Ok((Model { mesh, materials, cell_material, fixed, loads }, warnings))
}

fn material(input: &MaterialInput) -> Material {
    Material {
        name: input.name.clone(),
        young: input.young,
        poisson: input.poisson,
        density: input.density.unwrap_or(0.0),
        expansion: input.expansion.unwrap_or(0.0),
    }
}

/// Collective. Adds the `[[set]]`s of the case to the sets of the mesh.
fn define_sets(comm: &Comm, case: &Case, mesh: &mut LocalMesh) -> Result<()> {
    if case.sets.is_empty() {
        return Ok(());
    }
    let whole = select::bounds(comm, mesh);
    let size = (0..3).map(|i| (whole.max[i] - whole.min[i]).powi(2)).sum::<f64>().sqrt();
    for set in &case.sets {
        let taken = mesh.sets.nodes.contains_key(&set.name)
            || mesh.sets.cells.contains_key(&set.name)
            || mesh.sets.faces.contains_key(&set.name);
        if taken {
            let what = format!("set `{}` is defined here, but the mesh already has a set of that name", set.name);
            return Err(case.error_at(set.place, what).advice("choose another name"));
        }
        let widened = |min, max| Region { min, max }.widened(BOX_TOLERANCE * size);
        match set.selection {
            Selection::NodesInBox { min, max } => {
                mesh.sets.nodes.insert(set.name.clone(), select::nodes_in(mesh, &widened(min, max)));
            }
            Selection::ElementsInBox { min, max } => {
                mesh.sets.cells.insert(set.name.clone(), select::cells_in(mesh, &widened(min, max)));
            }
            Selection::FacesInBox { min, max } => {
                let faces = select::boundary_faces_in(comm, mesh, &widened(min, max));
                mesh.sets.faces.insert(set.name.clone(), faces);
            }
        }
    }
    Ok(())
}

/// Collective. Names, kinds and global sizes of the sets.
fn catalog(comm: &Comm, mesh: &LocalMesh) -> check::SetCatalog {
    let n_owned = mesh.nodes.n_owned();
    let count = |n: usize| comm.sum_u64(n as u64);
    let mut catalog = check::SetCatalog::default();
    for (name, nodes) in &mesh.sets.nodes {
        let n = nodes.iter().filter(|&&n| (n as usize) < n_owned).count();
        catalog.nodes.insert(name.clone(), count(n));
    }
    for (name, cells) in &mesh.sets.cells {
        let n = cells.iter().filter(|&&c| (c as usize) < mesh.n_owned_cells).count();
        catalog.cells.insert(name.clone(), count(n));
    }
    for (name, faces) in &mesh.sets.faces {
        let n = faces.iter().filter(|f| (f.cell as usize) < mesh.n_owned_cells).count();
        catalog.faces.insert(name.clone(), count(n));
    }
    catalog
}

/// The set of that name: exactly, or else without regard to case.
pub fn find_set<'a, V>(sets: &'a BTreeMap<String, Vec<V>>, name: &str) -> Option<&'a Vec<V>> {
    sets.get(name).or_else(|| sets.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v))
}

/// Local nodes of the face, node or element set of that name (the first kind that exists), ascending.
pub fn nodes_of_set(mesh: &LocalMesh, name: &str) -> Vec<u32> {
    let mut nodes: Vec<u32> = if let Some(faces) = find_set(&mesh.sets.faces, name) {
        faces.iter().flat_map(|&f| mesh.cells.nodes_of_face(f).1).collect()
    } else if let Some(nodes) = find_set(&mesh.sets.nodes, name) {
        nodes.clone()
    } else if let Some(cells) = find_set(&mesh.sets.cells, name) {
        cells.iter().flat_map(|&c| mesh.cells.nodes_of(c as usize).iter().copied()).collect()
    } else {
        Vec::new()
    };
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Collective. Index of the material of each local cell.
fn assign_materials(comm: &Comm, case: &Case, mesh: &LocalMesh) -> Result<Vec<u16>> {
    const NONE: u16 = u16::MAX;
    let mut of_cell = vec![NONE; mesh.n_cells()];
    let mut clash = None;
    for (index, material) in case.materials.iter().enumerate() {
        for name in &material.elements {
            for &cell in find_set(&mesh.sets.cells, name).map_or(&[][..], Vec::as_slice) {
                let slot = &mut of_cell[cell as usize];
                if *slot != NONE && *slot != index as u16 && clash.is_none() {
                    clash = Some((usize::from(*slot), index, mesh.cell_ids[cell as usize]));
                }
                *slot = index as u16;
            }
        }
    }
    let no_clash = clash.map_or(Ok(()), |(first, second, id)| {
        let [a, b] = [first, second].map(|i| &case.materials[i]);
        let what = format!("materials `{}` and `{}` both claim element {id}", a.name, b.name);
        Err(case.error_at(b.place, what).expected("one material for each element"))
    });
    comm.all_ok(no_clash)?;
    let bare = (0..mesh.n_owned_cells).filter(|&c| of_cell[c] == NONE).map(|c| mesh.cell_ids[c]);
    let bare: Vec<u64> = bare.collect();
    let n_bare = comm.sum_u64(bare.len() as u64);
    if n_bare > 0 {
        let mut ids: Vec<u64> = comm.all_gather(&bare[..bare.len().min(LISTED)]).concat();
        ids.sort_unstable();
        let listed: Vec<String> = ids.iter().take(LISTED).map(u64::to_string).collect();
        let more = if n_bare > listed.len() as u64 { ", ..." } else { "" };
        let what = format!("{n_bare} element(s) have no material: {}{more}", listed.join(", "));
        let advice = "add their element set to `elements` of a [[material]]";
        return Err(Error::input(what).in_file(&case.path).advice(advice));
    }
    Ok(of_cell)
}

/// Prescribed degrees of freedom of local nodes, ascending.
fn fixed_dofs(case: &Case, mesh: &LocalMesh) -> Result<Vec<(u32, f64)>> {
    let mut all: Vec<(u32, f64, usize)> = Vec::new();
    for (index, constraint) in case.constraints.iter().enumerate() {
        for node in constraint.on.iter().flat_map(|name| nodes_of_set(mesh, name)) {
            let prescribed = constraint.displacement.iter().enumerate();
            all.extend(prescribed.filter_map(|(c, v)| v.map(|v| (3 * node + c as u32, v, index))));
        }
    }
    all.sort_by_key(|&(dof, _, index)| (dof, index));
    if let Some(pair) = all.windows(2).find(|p| p[0].0 == p[1].0 && p[0].1 != p[1].1) {
        return Err(twice_prescribed(case, mesh, pair, &case.constraints[pair[1].2]));
    }
    all.dedup_by_key(|(dof, _, _)| *dof);
    Ok(all.into_iter().map(|(dof, value, _)| (dof, value)).collect())
}

fn twice_prescribed(case: &Case, mesh: &LocalMesh, pair: &[(u32, f64, usize)], second: &ConstraintInput) -> Error {
    let (dof, component) = (pair[0].0, ["x", "y", "z"][pair[0].0 as usize % 3]);
    let id = mesh.node_ids[dof as usize / 3];
    let what =
        format!("displacement {component} of node {id} is prescribed twice, as {} and as {}", pair[0].1, pair[1].1);
    case.error_at(second.place, what).advice("leave it \"free\" in one of the constraints, or take the node out of one set")
}

/// Whether the materials of the loaded cells have what the load multiplies.
fn require_properties(case: &Case, load: &LoadInput, mesh: &LocalMesh, cell_material: &[u16]) -> Result<()> {
    let (property, has): (&str, fn(&MaterialInput) -> bool) = match load.kind {
        LoadKind::Gravity(_) | LoadKind::Centrifugal { .. } => ("density", |m| m.density.is_some()),
        LoadKind::TemperatureChange(_) => ("expansion", |m| m.expansion.is_some()),
        _ => return Ok(()),
    };
    let cells = union_of_sets(&mesh.sets.cells, &load.on);
    let used: BTreeSet<u16> = cells.iter().map(|&c| cell_material[c as usize]).collect();
    match used.iter().map(|&m| &case.materials[usize::from(m)]).find(|m| !has(m)) {
        None => Ok(()),
        Some(m) => {
            let what = format!("{} needs the {property} of material `{}`, which has none", load.kind.name(), m.name);
            Err(case.error_at(load.place, what).advice(format!("give `{property}` in that [[material]]")))
        }
    }
}

/// Collective. One load on the union of its sets.
fn resolve_load(comm: &Comm, case: &Case, load: &LoadInput, mesh: &LocalMesh) -> Result<Load> {
    let faces = || union_of_sets(&mesh.sets.faces, &load.on);
    let cells = || union_of_sets(&mesh.sets.cells, &load.on);
    Ok(match load.kind {
        LoadKind::Traction(traction) => Load::Traction { faces: faces(), traction },
        LoadKind::Pressure(pressure) => Load::Pressure { faces: faces(), pressure },
        LoadKind::Force(total) => return spread_force(comm, case, load, mesh, total),
        LoadKind::BodyForce(body_force) => Load::BodyForce { cells: cells(), body_force },
        LoadKind::Gravity(acceleration) => Load::Gravity { cells: cells(), acceleration },
        LoadKind::Centrifugal { origin, axis, omega } => {
            let length = axis.iter().map(|v| v * v).sum::<f64>().sqrt();
            Load::Centrifugal { cells: cells(), origin, axis: axis.map(|v| v / length), omega }
        }
        LoadKind::TemperatureChange(change) => Load::TemperatureChange { cells: cells(), change },
    })
}

/// Members of any of the sets, ascending, each once.
fn union_of_sets<V: Copy + Ord>(sets: &BTreeMap<String, Vec<V>>, names: &[String]) -> Vec<V> {
    let mut members: Vec<V> = names.iter().filter_map(|name| find_set(sets, name)).flatten().copied().collect();
    members.sort_unstable();
    members.dedup();
    members
}

/// Collective. A total force: over the faces of its face sets by area, or over the nodes of its node sets evenly.
fn spread_force(comm: &Comm, case: &Case, load: &LoadInput, mesh: &LocalMesh, total: [f64; 3]) -> Result<Load> {
    let is_face_set = |name: &String| find_set(&mesh.sets.faces, name).is_some();
    let n_face_sets = load.on.iter().filter(|name| is_face_set(name)).count();
    if n_face_sets > 0 && n_face_sets < load.on.len() {
        let what = "a total force acts on face sets and node sets at once, which leaves open how it is shared";
        return Err(case.error_at(load.place, what).advice("write one [[load]] for each set"));
    }
    if n_face_sets > 0 {
        let faces = union_of_sets(&mesh.sets.faces, &load.on);
        let owned: Vec<CellFace> =
            faces.iter().copied().filter(|f| (f.cell as usize) < mesh.n_owned_cells).collect();
        let area = comm.sum(face_area(mesh, &owned));
        if area <= 0.0 {
            return Err(case.error_at(load.place, "the loaded faces have no area"));
        }
        return Ok(Load::Traction { faces, traction: total.map(|f| f / area) });
    }
    let nodes = union_of_sets(&mesh.sets.nodes, &load.on);
    let owned = nodes.iter().filter(|&&n| (n as usize) < mesh.nodes.n_owned()).count();
    let n_nodes = comm.sum_u64(owned as u64).max(1) as f64;
    Ok(Load::NodalForce { nodes, force: total.map(|f| f / n_nodes) })
}
