//! From the case and this rank's mesh to the `Model`: names become local numbers, totals become densities.
//!
//! Invariant: the last place where set and material names are read; decides nothing about assembly or solution.

use crate::assembly::fixed_as_owners_say;
use crate::assembly::loads::face_area;
use crate::formulations::{cell_formulations, locking_warnings};
use crate::links::{self, Links, Preparation, name_node};
use crate::material::{Law, Orientation};
use crate::model::{Load, Material, Model, Temperatures};
use fem_io::case::{Case, ConstraintInput, Frame, LoadInput, LoadKind, MaterialInput, Selection};
use fem_io::check::{self, SetCatalog, SetKind, SetUse};
use fem_mesh::select::{self, Region};
use fem_mesh::{CellFace, Comm, Error, Halo, LocalMesh, Result};
use std::collections::{BTreeMap, BTreeSet};

mod fields;

/// Share of the size of the model by which a box of a `[[set]]` is widened.
const BOX_TOLERANCE: f64 = 1e-9;

/// A case resolved on this rank's mesh.
pub struct Resolved {
    /// The model of this rank.
    pub model: Model,
    /// All sets of the case and its mesh.
    pub catalog: SetCatalog,
    /// What the user should know, the same on every rank.
    pub warnings: Vec<String>,
    /// Reference nodes and local axes.
    prepared: Preparation,
}

/// What changes from frame to frame.
struct State {
    temperatures: Option<Temperatures>,
    fixed: Vec<(u32, f64)>,
    loads: Vec<Load>,
    links: Links,
}

impl Resolved {
    /// Collective. Makes the model that of a frame of the case.
    ///
    /// # Errors
    /// As [`resolve`], of what is prescribed and what acts.
    pub fn enter(&mut self, comm: &Comm, case: &Case, frame: &Frame) -> Result<()> {
        let names = Names {
            catalog: &self.catalog,
            mesh: &self.model.mesh,
        };
        let case = case.at_frame(frame);
        let cell_material = &self.model.cell_material;
        let state = resolve_state(comm, &case, &names, &mut self.prepared, cell_material)?;
        let model = &mut self.model;
        model.temperatures = state.temperatures;
        model.fixed = state.fixed;
        model.loads = state.loads;
        model.links = state.links;
        Ok(())
    }

    /// Finds the members of sets.
    pub fn names(&self) -> Names<'_> {
        Names {
            catalog: &self.catalog,
            mesh: &self.model.mesh,
        }
    }

    /// Axes of the local nodes that have a `[[transform]]`: row k is the direction of local component k.
    pub fn node_axes(&self) -> &BTreeMap<u32, [[f64; 3]; 3]> {
        self.prepared.axes()
    }
}

/// Collective. The model of this rank.
///
/// # Errors
/// Sets that do not exist or have the wrong kind, elements without or with two materials, a degree of freedom
/// prescribed twice with different values, a load that needs a property its material lacks.
pub fn resolve(comm: &Comm, case: &Case, mut mesh: LocalMesh) -> Result<Resolved> {
    check::check_definitions(case, &catalog(comm, &mesh))?;
    define_sets(comm, case, &mut mesh);
    let catalog = catalog(comm, &mesh);
    let mut warnings = check::check_against_sets(case, &catalog)?;
    let mut prepared = links::prepare(comm, case, &catalog, &mut mesh)?;
    let names = Names {
        catalog: &catalog,
        mesh: &mesh,
    };
    let cell_material = assign_materials(comm, case, &names)?;
    let (cell_formulation, of_formulations) = cell_formulations(comm, case, &names)?;
    warnings.extend(of_formulations);
    warnings.extend(locking_warnings(
        comm,
        case,
        &mesh,
        &cell_material,
        &cell_formulation,
    ));
    let cell_orientation = fields::cell_orientation(comm, case, &names)?;
    let frames = case.frames();
    // Errors of later steps are found before the first is solved.
    for end in frames[1..].iter().filter(|frame| frame.is_end()) {
        let state = case.at_frame(end);
        resolve_state(comm, &state, &names, &mut prepared, &cell_material)?;
    }
    let first = case.at_frame(&frames[0]);
    let state = resolve_state(comm, &first, &names, &mut prepared, &cell_material)?;
    let mut of_states = std::mem::take(&mut prepared.warnings);
    let mut seen = BTreeSet::new();
    of_states.retain(|warning| seen.insert(warning.clone()));
    warnings.append(&mut of_states);
    let materials = case.materials.iter().map(material).collect();
    let orientations = case.orientations.iter().map(Orientation::new).collect();
    let model = Model {
        mesh,
        materials,
        cell_material,
        cell_formulation,
        orientations,
        cell_orientation,
        temperatures: state.temperatures,
        fixed: state.fixed,
        loads: state.loads,
        links: state.links,
    };
    Ok(Resolved {
        model,
        catalog,
        warnings,
        prepared,
    })
}

/// Collective. What is prescribed and what acts in one frame.
fn resolve_state(
    comm: &Comm,
    case: &Case,
    names: &Names,
    prepared: &mut Preparation,
    cell_material: &[u16],
) -> Result<State> {
    let mesh = names.mesh;
    let temperatures = fields::temperatures(comm, case, names)?;
    let rotations = prepared.prescribed_rotations(comm, case, names)?;
    let fixed = comm.all_ok(fixed_dofs(case, names, rotations))?;
    let (links, fixed) = links::build(comm, case, names, prepared, fixed)?;
    let fixed = fixed_as_owners_say(comm, &mesh.nodes, &Halo::new(comm, &mesh.nodes), &fixed);
    let mut loads = Vec::new();
    for load in &case.loads {
        comm.all_ok(require_properties(case, load, names, cell_material))?;
        loads.push(resolve_load(comm, case, load, names, prepared)?);
    }
    let loads = prepared.turn_forces(loads);
    check_loaded_free_nodes(comm, case, mesh, &loads, &links)?;
    Ok(State {
        temperatures,
        fixed,
        loads,
        links,
    })
}

fn material(input: &MaterialInput) -> Material {
    Material {
        name: input.name.clone(),
        law: Law::new(input),
        density: input.density.unwrap_or(0.0),
    }
}

/// Collective. Adds the `[[set]]`s of the case to the sets of the mesh.
fn define_sets(comm: &Comm, case: &Case, mesh: &mut LocalMesh) {
    if case.sets.is_empty() {
        return;
    }
    let whole = select::bounds(comm, mesh);
    let size = (0..3)
        .map(|i| (whole.max[i] - whole.min[i]).powi(2))
        .sum::<f64>()
        .sqrt();
    let widened = |min, max| Region { min, max }.widened(BOX_TOLERANCE * size);
    for set in &case.sets {
        let name = set.name.clone();
        match set.selection {
            Selection::NodesInBox { min, max } => {
                mesh.sets
                    .nodes
                    .insert(name, select::nodes_in(mesh, &widened(min, max)));
            }
            Selection::ElementsInBox { min, max } => {
                mesh.sets
                    .cells
                    .insert(name, select::cells_in(mesh, &widened(min, max)));
            }
            Selection::FacesInBox { min, max } => {
                let faces = select::boundary_faces_in(comm, mesh, &widened(min, max));
                mesh.sets.faces.insert(name, faces);
            }
        }
    }
}

/// Collective. Names, kinds and sizes of the sets of the whole mesh.
fn catalog(comm: &Comm, mesh: &LocalMesh) -> SetCatalog {
    let (n_nodes, n_cells) = (mesh.nodes.n_owned() as u32, mesh.n_owned_cells as u32);
    let mut owned = mesh.sets.clone();
    owned
        .nodes
        .values_mut()
        .for_each(|nodes| nodes.retain(|&n| n < n_nodes));
    owned
        .cells
        .values_mut()
        .for_each(|cells| cells.retain(|&c| c < n_cells));
    owned
        .faces
        .values_mut()
        .for_each(|faces| faces.retain(|f| f.cell < n_cells));
    SetCatalog::gather(comm, &owned, u64::from(n_cells))
}

/// Finds the local members of what a user typed as the name of a set.
pub struct Names<'a> {
    /// All sets there are.
    pub catalog: &'a SetCatalog,
    /// The mesh that holds the members.
    pub mesh: &'a LocalMesh,
}

impl Names<'_> {
    /// Name and kind of the set; `None` if there is none that fits.
    fn find(&self, typed: &str, purpose: SetUse) -> Option<(&str, SetKind)> {
        self.catalog
            .find(typed, purpose)
            .ok()
            .map(|found| (found.name, found.kind))
    }

    /// The kinds that these sets have.
    pub fn kinds(&self, typed: &[String], purpose: SetUse) -> BTreeSet<SetKind> {
        let found = typed.iter().filter_map(|name| self.find(name, purpose));
        found.map(|(_, kind)| kind).collect()
    }

    /// Local cells of element sets, ascending, each once.
    pub(crate) fn cells(&self, typed: &[String], purpose: SetUse) -> Vec<u32> {
        let members = |name: &String| match self.find(name, purpose) {
            Some((check::ALL, _)) => (0..self.mesh.n_cells() as u32).collect(),
            Some((name, SetKind::Cell)) => {
                self.mesh.sets.cells.get(name).cloned().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        sorted(typed.iter().flat_map(members).collect())
    }

    /// Faces of local cells of face sets, ascending, each once.
    pub fn faces(&self, typed: &[String], purpose: SetUse) -> Vec<CellFace> {
        let members = |name: &String| match self.find(name, purpose) {
            Some((name, SetKind::Face)) => {
                self.mesh.sets.faces.get(name).cloned().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        sorted(typed.iter().flat_map(members).collect())
    }

    /// Local nodes of sets of any kind, ascending, each once.
    pub fn nodes(&self, typed: &[String], purpose: SetUse) -> Vec<u32> {
        let mesh = self.mesh;
        let mut nodes = Vec::new();
        for name in typed {
            let one = std::slice::from_ref(name);
            match self.find(name, purpose) {
                Some((name, SetKind::Node)) => {
                    nodes.extend(mesh.sets.nodes.get(name).into_iter().flatten())
                }
                Some((_, SetKind::Face)) => {
                    nodes.extend(
                        self.faces(one, purpose)
                            .iter()
                            .flat_map(|&f| mesh.cells.nodes_of_face(f).1),
                    );
                }
                Some((_, SetKind::Cell)) => {
                    nodes.extend(
                        self.cells(one, purpose)
                            .iter()
                            .flat_map(|&c| mesh.cells.nodes_of(c as usize)),
                    );
                }
                None => {}
            }
        }
        sorted(nodes)
    }
}

fn sorted<V: Ord>(mut members: Vec<V>) -> Vec<V> {
    members.sort_unstable();
    members.dedup();
    members
}

/// Collective. Index of the material of each local cell.
fn assign_materials(comm: &Comm, case: &Case, names: &Names) -> Result<Vec<u16>> {
    let claims: Vec<Vec<u32>> = case
        .materials
        .iter()
        .map(|m| names.cells(&m.elements, SetUse::Material))
        .collect();
    let claims = claims
        .iter()
        .enumerate()
        .map(|(m, cells)| (m as u16, cells.as_slice()));
    let mesh = names.mesh;
    let (cell_material, cover) =
        check::assign_materials(&mesh.cell_ids, mesh.n_owned_cells, claims);
    check::check_cover(case, &cover.gather(comm))?;
    Ok(cell_material)
}

/// Prescribed degrees of freedom of local nodes, ascending, with those of rotation nodes added: degree of freedom, value,
/// index of the constraint.
fn fixed_dofs(
    case: &Case,
    names: &Names,
    mut all: Vec<(u32, f64, usize)>,
) -> Result<Vec<(u32, f64)>> {
    for (index, constraint) in case.constraints.iter().enumerate() {
        for node in names.nodes(&constraint.on, SetUse::Constraint) {
            let prescribed = constraint.displacement.iter().enumerate();
            all.extend(prescribed.filter_map(|(c, v)| v.map(|v| (3 * node + c as u32, v, index))));
        }
    }
    let layer = |index: usize| case.constraints[index].layer;
    all.sort_by_key(|&(dof, _, index)| (dof, layer(index), index));
    let clash = |p: &[(u32, f64, usize)]| {
        p[0].0 == p[1].0 && layer(p[0].2) == layer(p[1].2) && p[0].1 != p[1].1
    };
    if let Some(pair) = all.windows(2).find(|pair| clash(pair)) {
        return Err(twice_prescribed(
            case,
            names.mesh,
            pair,
            &case.constraints[pair[1].2],
        ));
    }
    let of_dof = |same: &[(u32, f64, usize)]| {
        // From layer to layer, the highest last.
        let value = same.iter().fold(0.0, |before, &(_, value, index)| {
            match case.constraints[index].share {
                1.0 => value,
                share => before + (value - before) * share,
            }
        });
        (same[0].0, value)
    };
    let layers = |same: &[(u32, f64, usize)]| {
        if same.len() == 1 {
            return of_dof(same);
        }
        let mut one = same.to_vec();
        one.dedup_by_key(|(_, _, index)| layer(*index));
        of_dof(&one)
    };
    Ok(all.chunk_by(|a, b| a.0 == b.0).map(layers).collect())
}

fn twice_prescribed(
    case: &Case,
    mesh: &LocalMesh,
    pair: &[(u32, f64, usize)],
    second: &ConstraintInput,
) -> Error {
    let (dof, component) = (pair[0].0, ["x", "y", "z"][pair[0].0 as usize % 3]);
    let node = name_node(mesh.node_ids[dof as usize / 3]);
    let what = format!(
        "displacement {component} of {node} is prescribed twice, as {} and as {}",
        pair[0].1, pair[1].1
    );
    case.error_at(second.place, what)
        .advice("leave it \"free\" in one of the constraints, or take the node out of one set")
}

/// Whether the materials of the loaded cells have what the load multiplies.
fn require_properties(
    case: &Case,
    load: &LoadInput,
    names: &Names,
    cell_material: &[u16],
) -> Result<()> {
    let (property, has): (&str, fn(&MaterialInput) -> bool) = match load.kind {
        LoadKind::Gravity(_) | LoadKind::Centrifugal { .. } => ("density", |m| m.density.is_some()),
        LoadKind::TemperatureChange(_) => ("expansion", |m| !m.expansion.is_empty()),
        _ => return Ok(()),
    };
    let cells = names.cells(&load.on, SetUse::BodyLoad);
    let used: BTreeSet<u16> = cells.iter().map(|&c| cell_material[c as usize]).collect();
    match used
        .iter()
        .map(|&m| &case.materials[usize::from(m)])
        .find(|m| !has(m))
    {
        None => Ok(()),
        Some(m) => {
            let what = format!(
                "{} needs the {property} of material \"{}\", which has none",
                load.kind.name(),
                m.name
            );
            Err(case
                .error_at(load.place, what)
                .advice(format!("give `{property}` in that [[material]]")))
        }
    }
}

/// Collective. One load on the union of its sets.
fn resolve_load(
    comm: &Comm,
    case: &Case,
    load: &LoadInput,
    names: &Names,
    prepared: &Preparation,
) -> Result<Load> {
    let purpose = SetUse::of_load(&load.kind);
    let faces = || names.faces(&load.on, purpose);
    let cells = || names.cells(&load.on, purpose);
    Ok(match load.kind {
        LoadKind::Traction(traction) => Load::Traction {
            faces: faces(),
            traction,
        },
        LoadKind::Pressure(pressure) => Load::Pressure {
            faces: faces(),
            pressure,
        },
        LoadKind::PressureField(pressure) => Load::PressureField {
            faces: faces(),
            pressure,
        },
        LoadKind::NodalForce(force) => Load::NodalForce {
            nodes: names.nodes(&load.on, purpose),
            force,
        },
        LoadKind::Force(total) => return spread_force(comm, case, load, names, total),
        LoadKind::Moment(total) => {
            let nodes = names.nodes(&load.on, purpose);
            let (nodes, n) = prepared.moment_nodes(comm, case, names.mesh, &nodes, load.place)?;
            Load::NodalForce {
                nodes,
                force: total.map(|m| m / n.max(1) as f64),
            }
        }
        LoadKind::BodyForce(body_force) => Load::BodyForce {
            cells: cells(),
            body_force,
        },
        LoadKind::Gravity(acceleration) => Load::Gravity {
            cells: cells(),
            acceleration,
        },
        LoadKind::Centrifugal {
            origin,
            axis,
            omega,
        } => {
            let length = axis.iter().map(|v| v * v).sum::<f64>().sqrt();
            Load::Centrifugal {
                cells: cells(),
                origin,
                axis: axis.map(|v| v / length),
                omega,
            }
        }
        LoadKind::TemperatureChange(change) => Load::TemperatureChange {
            cells: cells(),
            change,
        },
        LoadKind::InitialStress(stress) => Load::InitialStress {
            cells: cells(),
            stress,
        },
        LoadKind::InitialStrain(strain) => Load::InitialStrain {
            cells: cells(),
            strain,
        },
    })
}

/// Collective. That no force acts on a node of no element that nothing holds: no constraint passes it on.
fn check_loaded_free_nodes(
    comm: &Comm,
    case: &Case,
    mesh: &LocalMesh,
    loads: &[Load],
    links: &Links,
) -> Result<()> {
    let mut is_in_cell = vec![false; mesh.nodes.n_local()];
    let followed: BTreeSet<u64> = (links.rows.values().flat_map(|row| &row.terms))
        .map(|(dof, _)| *dof)
        .chain(links.rows.keys().copied())
        .collect();
    let mut lost = None;
    if loads
        .iter()
        .any(|load| matches!(load, Load::NodalForce { .. }))
    {
        mesh.cells
            .nodes
            .iter()
            .for_each(|&node| is_in_cell[node as usize] = true);
        for load in loads {
            let Load::NodalForce { nodes, force } = load else {
                continue;
            };
            let owned = nodes.iter().map(|&node| node as usize);
            for node in owned.filter(|&n| n < mesh.nodes.n_owned() && !is_in_cell[n]) {
                let dof = |c: usize| 3 * mesh.nodes.global(node) + c as u64;
                if (0..3).any(|c| force[c] != 0.0 && !followed.contains(&dof(c))) {
                    lost = lost.or(Some(mesh.node_ids[node]));
                }
            }
        }
    }
    comm.all_ok(match lost {
        None => Ok(()),
        Some(id) => Err(Error::input(format!(
            "a load acts on {}, which is in no element and which no constraint joins to one in that direction",
            name_node(id)
        ))
        .in_file(&case.path)
        .advice("couple the node, or load another one")),
    })
}

/// Collective. A total force: over the faces of its face sets by area, or over the nodes of its node sets evenly.
fn spread_force(
    comm: &Comm,
    case: &Case,
    load: &LoadInput,
    names: &Names,
    total: [f64; 3],
) -> Result<Load> {
    let mesh = names.mesh;
    let kinds = names.kinds(&load.on, SetUse::Force);
    if kinds.len() > 1 {
        let what = "a total force acts on face sets and node sets at once, which leaves open how it is shared";
        return Err(case
            .error_at(load.place, what)
            .advice("write one [[load]] for each set"));
    }
    if kinds.contains(&SetKind::Face) {
        let faces = names.faces(&load.on, SetUse::Force);
        let owned: Vec<CellFace> = faces
            .iter()
            .copied()
            .filter(|f| (f.cell as usize) < mesh.n_owned_cells)
            .collect();
        let area = comm.sum(face_area(mesh, &owned));
        if area <= 0.0 {
            return Err(case.error_at(load.place, "the loaded faces have no area"));
        }
        return Ok(Load::Traction {
            faces,
            traction: total.map(|f| f / area),
        });
    }
    let nodes = names.nodes(&load.on, SetUse::Force);
    let owned = nodes
        .iter()
        .filter(|&&n| (n as usize) < mesh.nodes.n_owned())
        .count();
    let n_nodes = comm.sum_u64(owned as u64).max(1) as f64;
    Ok(Load::NodalForce {
        nodes,
        force: total.map(|f| f / n_nodes),
    })
}
