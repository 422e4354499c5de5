//! The mesh of a case, read or generated, on every rank.
//!
//! A file is read by rank 0, which divides it and deals it out; of a generated box each rank makes its own block.
//!
//! Invariant: knows the case's `[mesh]` and `[parallel]` tables only.

use fem_io::case::{BoxInput, Case, MeshSource, Partitioner};
use fem_io::mesh_file::{self, MeshFile};
use fem_mesh::partition::{PartitionMethod, PartitionOptions, cell_work};
use fem_mesh::report::PartitionReport;
use fem_mesh::{BoxMesh, Comm, LocalMesh, Mesh, Result, distribute, generate_slice};

/// A mesh on its way from its source to the ranks.
pub struct RawMesh {
    /// Rank 0's whole mesh (the others' is empty), or this rank's block of a box.
    mesh: Mesh,
    from_file: bool,
}

/// Collective. Reads or generates the mesh; warnings of the reader come with it, on every rank. A deck has brought its
/// mesh along: rank 0 holds it in `deck`.
///
/// # Errors
/// Those of the mesh file's reader, on every rank.
pub fn read_mesh(
    comm: &Comm,
    case: &Case,
    deck: Option<MeshFile>,
) -> Result<(RawMesh, Vec<String>)> {
    let (mut mesh, warnings, from_file) = match &case.mesh.source {
        MeshSource::Box(input) => (
            generate_slice(&box_mesh(input), comm, None)?,
            Vec::new(),
            false,
        ),
        MeshSource::File(path) => {
            let read = match deck {
                Some(mesh) => Ok(Some(mesh)),
                None if comm.is_root() => mesh_file::read(path).map(Some),
                None => Ok(None),
            };
            let (mesh, warnings) = comm
                .all_ok(read)?
                .map(|f| (f.mesh, f.warnings))
                .unwrap_or_default();
            let text = comm.broadcast_text(warnings.join("\n"));
            (mesh, text.lines().map(str::to_owned).collect(), true)
        }
    };
    for x in &mut mesh.coords {
        *x = x.map(|v| v * case.mesh.scale);
    }
    Ok((RawMesh { mesh, from_file }, warnings))
}

fn box_mesh(input: &BoxInput) -> BoxMesh {
    BoxMesh {
        size: input.size,
        cells: input.cells,
        cell_type: input.element,
        origin: input.origin,
    }
}

/// Collective. Divides the mesh over the ranks.
///
/// # Errors
/// A partitioner that fails, an element number that occurs twice.
pub fn distribute_mesh(
    comm: &Comm,
    case: &Case,
    raw: RawMesh,
) -> Result<(LocalMesh, PartitionReport)> {
    if !raw.from_file {
        return distribute::distribute_slices(comm, raw.mesh, None);
    }
    let method = match case.parallel.partitioner {
        Partitioner::Auto => PartitionMethod::Auto,
        Partitioner::Metis => PartitionMethod::Metis,
        Partitioner::Rcb => PartitionMethod::Rcb,
    };
    let work: Vec<u32> = raw.mesh.cells.types.iter().map(|&t| cell_work(t)).collect();
    let options = PartitionOptions {
        method,
        part_weights: None,
        cell_weights: Some(&work),
    };
    distribute::distribute_whole(comm, raw.mesh, &options)
}
