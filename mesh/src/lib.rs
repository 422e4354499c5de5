//! Ranks, index maps, meshes and their partition.
//!
//! What goes in: a mesh, whole on one rank or in slices. What comes out: a [`LocalMesh`] on every rank, with the
//! numbering ([`IndexMap`]) and the exchange plan ([`Halo`]) that distributed sparse linear algebra needs.
//!
//! Rule of the whole program: a function that takes `&Comm` is collective and must be called by every rank; a
//! function without it never communicates; no struct stores a [`Comm`].
//!
//! Invariant: this crate imports none of ours and knows no files, materials or equations.

pub mod adjacency;
pub mod cell_type;
pub mod comm;
pub mod components;
pub mod distribute;
pub mod error;
pub mod facets;
pub mod free_nodes;
pub mod generate;
pub mod halo;
pub mod index_map;
pub mod local_mesh;
pub mod mesh;
pub mod partition;
pub mod pieces;
pub mod reorder;
pub mod report;
pub mod select;
#[cfg(test)]
mod test_meshes;

pub use cell_type::CellType;
pub use comm::Comm;
pub use distribute::{distribute, distribute_slices, distribute_whole};
pub use error::{Error, ErrorKind, Result};
pub use facets::{FacetMatches, match_facets};
pub use free_nodes::{FreeNode, append_free_nodes};
pub use generate::{BoxMesh, generate_slice};
pub use halo::{Halo, HaloExchange};
pub use index_map::IndexMap;
pub use local_mesh::LocalMesh;
pub use mesh::{CellFace, Cells, Mesh};
pub use partition::{Partition, PartitionMethod, PartitionOptions, cell_work, partition};
pub use report::{PartitionReport, partition_report};
