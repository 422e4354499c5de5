//! `.msh` of Gmsh, format 4.1, ASCII.
//!
//! A set is a physical group; in this format an entity may be in any number of them. So the entities are the pieces
//! that the sets cut the mesh into: volumes of elements, surfaces of faces, points of nodes.
//!
//! Invariant: writes what [`super::super::read`] reads back as the same mesh.

use super::super::gmsh::element_types::{ElementType, type_of};
use super::{all_faces, cell_sets, numbers_from_1};
use fem_mesh::{CellFace, Error, Mesh, Result};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The largest number that Gmsh takes.
const MOST: u64 = i32::MAX as u64;

/// Fails if an element has no type in the format.
pub(super) fn check(mesh: &Mesh) -> Result<()> {
    let types = mesh.cells.types.iter().zip(&mesh.cell_ids);
    match types.clone().find(|(t, _)| type_of(**t).is_none()) {
        None => Ok(()),
        Some((cell_type, id)) => {
            let what = format!("element {id} is a {cell_type}, which Gmsh lacks");
            Err(Error::input(what).advice("write .vtu"))
        }
    }
}

/// Members of one entity, and the physical groups it is in.
struct Entity {
    dimension: usize,
    groups: Vec<usize>,
    /// Indices of cells, of faces (into the list of all faces) or of nodes.
    members: Vec<u32>,
}

/// Physical groups: dimension and name. A group's number is its index from 1.
type Groups<'a> = Vec<(usize, &'a str)>;

/// Cuts `n` things into entities by the sets that hold them. `every`: those in no set count, too.
fn cut<'a>(
    dimension: usize,
    n: usize,
    sets: impl Iterator<Item = (&'a str, Vec<u32>)>,
    every: bool,
    groups: &mut Groups<'a>,
) -> Vec<Entity> {
    let mut of_member: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (name, members) in sets {
        groups.push((dimension, name));
        let number = groups.len();
        for member in members {
            of_member[member as usize].push(number);
        }
    }
    let mut by_groups: BTreeMap<Vec<usize>, Vec<u32>> = BTreeMap::new();
    for (member, groups) in of_member.into_iter().enumerate() {
        if every || !groups.is_empty() {
            by_groups.entry(groups).or_default().push(member as u32);
        }
    }
    (by_groups.into_iter())
        .map(|(groups, members)| Entity {
            dimension,
            groups,
            members,
        })
        .collect()
}

/// Writes the file.
pub(super) fn write(out: &mut dyn Write, mesh: &Mesh) -> io::Result<()> {
    let faces = all_faces(mesh);
    let mut groups = Groups::new();
    let of_nodes = mesh.sets.nodes.iter().map(|(n, m)| (n.as_str(), m.clone()));
    let points = cut(0, mesh.n_nodes(), of_nodes, false, &mut groups);
    let position = |face: &CellFace| faces.binary_search(face).unwrap_or_default() as u32;
    let of_faces = mesh.sets.faces.iter();
    let of_faces = of_faces.map(|(n, m)| (n.as_str(), m.iter().map(position).collect()));
    let surfaces = cut(2, faces.len(), of_faces, false, &mut groups);
    let of_cells = cell_sets(mesh).map(|(n, m)| (n, m.to_vec()));
    let volumes = cut(3, mesh.n_cells(), of_cells, true, &mut groups);

    writeln!(out, "$MeshFormat\n4.1 0 8\n$EndMeshFormat")?;
    writeln!(out, "$PhysicalNames\n{}", groups.len())?;
    for (k, (dimension, name)) in groups.iter().enumerate() {
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        writeln!(out, "{dimension} {} \"{name}\"", k + 1)?;
    }
    writeln!(out, "$EndPhysicalNames")?;
    write_entities(out, mesh, &faces, [&points, &surfaces, &volumes])?;
    let nodes = numbers_from_1(&mesh.node_ids, MOST);
    write_nodes(out, mesh, &nodes)?;
    write_elements(out, mesh, &faces, &nodes, [&points, &surfaces, &volumes])
}

fn write_entities(
    out: &mut dyn Write,
    mesh: &Mesh,
    faces: &[CellFace],
    [points, surfaces, volumes]: [&Vec<Entity>; 3],
) -> io::Result<()> {
    writeln!(
        out,
        "$Entities\n{} 0 {} {}",
        points.len(),
        surfaces.len(),
        volumes.len()
    )?;
    for entities in [points, surfaces, volumes] {
        for (k, entity) in entities.iter().enumerate() {
            write!(out, "{}", k + 1)?;
            let mut low = [f64::INFINITY; 3];
            let mut high = [f64::NEG_INFINITY; 3];
            for &member in &entity.members {
                each_node(mesh, faces, entity.dimension, member, |node| {
                    for axis in 0..3 {
                        low[axis] = low[axis].min(mesh.coords[node as usize][axis]);
                        high[axis] = high[axis].max(mesh.coords[node as usize][axis]);
                    }
                });
            }
            let corners = if entity.dimension == 0 {
                vec![low]
            } else {
                vec![low, high]
            };
            for x in corners.concat() {
                write!(out, " {x:e}")?;
            }
            write!(out, " {}", entity.groups.len())?;
            for group in &entity.groups {
                write!(out, " {group}")?;
            }
            writeln!(out, "{}", if entity.dimension == 0 { "" } else { " 0" })?;
        }
    }
    writeln!(out, "$EndEntities")
}

fn each_node(
    mesh: &Mesh,
    faces: &[CellFace],
    dimension: usize,
    member: u32,
    mut visit: impl FnMut(u32),
) {
    match dimension {
        0 => visit(member),
        2 => mesh
            .cells
            .nodes_of_face(faces[member as usize])
            .1
            .for_each(visit),
        _ => mesh
            .cells
            .nodes_of(member as usize)
            .iter()
            .for_each(|&n| visit(n)),
    }
}

/// All nodes in one block of the first volume.
fn write_nodes(out: &mut dyn Write, mesh: &Mesh, ids: &[u64]) -> io::Result<()> {
    let (low, high) = (
        ids.iter().min().unwrap_or(&0),
        ids.iter().max().unwrap_or(&0),
    );
    let n = ids.len();
    writeln!(out, "$Nodes\n1 {n} {low} {high}\n3 1 0 {n}")?;
    for id in ids {
        writeln!(out, "{id}")?;
    }
    for [x, y, z] in &mesh.coords {
        writeln!(out, "{x:e} {y:e} {z:e}")?;
    }
    writeln!(out, "$EndNodes")
}

/// Elements of one entity and one type stand in one block. Faces and points are numbered after the solids.
fn write_elements(
    out: &mut dyn Write,
    mesh: &Mesh,
    faces: &[CellFace],
    nodes: &[u64],
    all: [&Vec<Entity>; 3],
) -> io::Result<()> {
    const POINT: u16 = 15;
    let n_points: usize = all[0].iter().map(|e| e.members.len()).sum();
    let n_others = (faces.len() + n_points) as u64;
    let elements = numbers_from_1(&mesh.cell_ids, MOST - n_others.min(MOST - 1));
    let last = elements.iter().max().copied().unwrap_or(0);
    let mut text = Vec::new();
    let (mut n_blocks, mut next) = (0, last);
    for entities in all {
        for (k, entity) in entities.iter().enumerate() {
            let mut by_type: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
            for &member in &entity.members {
                let kind = match entity.dimension {
                    0 => POINT,
                    2 => number_of(type_of(mesh.cells.nodes_of_face(faces[member as usize]).0)),
                    _ => number_of(type_of(mesh.cells.types[member as usize])),
                };
                by_type.entry(kind).or_default().push(member);
            }
            for (kind, members) in by_type {
                n_blocks += 1;
                writeln!(
                    text,
                    "{} {} {kind} {}",
                    entity.dimension,
                    k + 1,
                    members.len()
                )?;
                for member in members {
                    if entity.dimension == 3 {
                        write!(text, "{}", elements[member as usize])?;
                    } else {
                        next += 1;
                        write!(text, "{next}")?;
                    }
                    for node in in_gmsh_order(mesh, faces, entity.dimension, member) {
                        write!(text, " {}", nodes[node as usize])?;
                    }
                    writeln!(text)?;
                }
            }
        }
    }
    let n = elements.len() as u64 + n_others;
    let low = elements.iter().min().copied().unwrap_or(1);
    writeln!(out, "$Elements\n{n_blocks} {n} {low} {next}")?;
    out.write_all(&text)?;
    writeln!(out, "$EndElements")
}

fn number_of(kind: Option<&ElementType>) -> u16 {
    kind.map_or(0, |kind| kind.number)
}

/// The nodes of a member in the order of its Gmsh type.
fn in_gmsh_order(mesh: &Mesh, faces: &[CellFace], dimension: usize, member: u32) -> Vec<u32> {
    let mut nodes = Vec::with_capacity(27);
    each_node(mesh, faces, dimension, member, |node| nodes.push(node));
    let order = (dimension == 3)
        .then(|| type_of(mesh.cells.types[member as usize])?.solid)
        .flatten();
    match order {
        None => nodes, // facets have one order everywhere
        Some((_, order)) => {
            let mut ordered = nodes.clone();
            for (&node, &place) in nodes.iter().zip(order) {
                ordered[usize::from(place)] = node;
            }
            ordered
        }
    }
}
