//! Mesh files into a [`Mesh`]: one file per format, chosen by the content of the file and its extension.
//!
//! What goes in: a path. What comes out: the mesh with the numbers and named sets of the file, and what the user
//! should know about it. Each format fills a [`draft::Draft`]; `finish.rs` checks it and makes the mesh, so that
//! every format is checked the same way.
//!
//! Invariant: serial; knows no case, no material and no communication. The caller reads on rank 0.

pub(crate) mod abaqus;
pub(crate) mod draft;
mod exodus;
mod finish;
mod gmsh;
mod hdf;
pub(crate) mod id_lookup;
mod include;
mod joints;
mod med;
mod mirror;
mod nastran;
mod resolve_sets;
pub(crate) mod scan;
mod solids;
mod unv;
mod vtk;
mod write;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod fixtures_binary;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod real_files;

use draft::Draft;
use fem_mesh::{Error, Mesh, Result};
use hdf::HdfFile;
use std::path::Path;

pub use write::write;

/// A mesh read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshFile {
    /// The mesh: solids only, every node used by one. It has the element set `all`.
    pub mesh: Mesh,
    /// What was ignored or is doubtful, one sentence each, without the file name.
    pub warnings: Vec<String>,
}

/// What we read, for messages.
const SUPPORTED: &str = ".msh (Gmsh 2.2 and 4.1), .inp (Abaqus, CalculiX), .vtu or .vtk, .bdf or .nas (Nastran), .unv \
    (I-DEAS), .med (MED), .exo or .e (Exodus II)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Gmsh,
    Abaqus,
    VtkLegacy,
    VtkXml,
    Nastran,
    Unv,
    /// MED, or Exodus in netCDF-4.
    Hdf,
    /// Exodus in classic netCDF.
    Netcdf,
}

/// Reads a mesh file on this rank. The content decides where it is clear (an Abaqus deck may be called `.msh`).
///
/// Named groups become sets of elements, faces or nodes under their names: physical groups of Gmsh (of dimension 3, 2,
/// and 1 or 0), sets and surfaces of decks, groups of I-DEAS and MED, node and side sets of Exodus. Property numbers
/// become element sets `pid_N`, values of whole-number arrays of VTK `ARRAY_N`. A set of shells or plane elements only
/// becomes the set of the faces they lie on. The set `all` holds every element unless the file has a set of that name.
///
/// Elements that are given inside out are turned, and the mesh is looked through for nodes at one place and for parts
/// that share no node; the warnings say what was found.
///
/// # Errors
/// Input errors with file and, in text files, line: a file that is missing, a directory, empty, cut off or of an
/// unknown format; a field that is not a number, or not finite; no solid element; an element type not supported; an
/// element that names a node which does not exist; numbers given twice; two elements on the same nodes.
pub fn read(path: &Path) -> Result<MeshFile> {
    let extension = path
        .extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    let by_extension = extension.as_deref().and_then(format_of_extension);
    let bytes = read_bytes(path, "mesh file")?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let Some(format) = by_content(bytes, by_extension).or(by_extension) else {
        let what = match extension {
            Some(extension) => format!("unknown mesh file extension `.{extension}`"),
            None => "a mesh file without extension".to_owned(),
        };
        return Err(Error::input(what).in_file(path).expected(SUPPORTED));
    };
    let draft = match format {
        Format::Gmsh => gmsh::read(path, bytes)?,
        Format::Abaqus => abaqus::read(path, bytes)?,
        Format::VtkLegacy => vtk::read_legacy(path, bytes)?,
        Format::VtkXml => vtk::read_xml(path, bytes)?,
        Format::Nastran => nastran::read(path, bytes)?,
        Format::Unv => unv::read(path, bytes)?,
        Format::Hdf => read_hdf(path)?,
        Format::Netcdf => exodus::read_classic(path, bytes)?,
    };
    draft.finish()
}

fn format_of_extension(extension: &str) -> Option<Format> {
    Some(match extension {
        "msh" => Format::Gmsh,
        "inp" => Format::Abaqus,
        "vtk" => Format::VtkLegacy,
        "vtu" => Format::VtkXml,
        "bdf" | "nas" | "dat" | "blk" | "bulk" | "fem" => Format::Nastran,
        "unv" => Format::Unv,
        "med" => Format::Hdf,
        "e" | "exo" | "ex2" | "exodus" | "g" | "gen" | "nc" => Format::Netcdf,
        _ => return None,
    })
}

/// Reads an HDF5 file by what it holds.
fn read_hdf(path: &Path) -> Result<Draft> {
    let file = HdfFile::open(path).map_err(|error| error.in_file(path))?;
    if file.exists("ENS_MAA") {
        return med::read(path, file);
    }
    if file.exists("coordx") || file.exists("coord") || file.exists("connect1") {
        return exodus::read_hdf(path, file);
    }
    Err(
        Error::input("an HDF5 file that holds neither a MED mesh nor an Exodus model")
            .in_file(path)
            .expected(SUPPORTED),
    )
}

/// The bytes of a file that must exist and hold something. `kind` names it in messages.
pub(crate) fn read_bytes(path: &Path, kind: &str) -> Result<Vec<u8>> {
    let refuse = |what: String| Err(Error::input(what).in_file(path));
    if path.is_dir() {
        return refuse(format!("a directory, not a {kind}"));
    }
    match std::fs::read(path) {
        Ok(bytes) if bytes.is_empty() => refuse(format!("the {kind} is empty")),
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse(format!("{kind} not found"))
        }
        Err(error) => refuse(format!("cannot read the {kind}: {error}")),
    }
}

/// The format that the first bytes of the file give away. A `$` starts a section of Gmsh and a comment of Nastran.
fn by_content(bytes: &[u8], by_extension: Option<Format>) -> Option<Format> {
    let start = scan::trim(&bytes[..bytes.len().min(4096)]);
    let begins = |text: &str| {
        start
            .get(..text.len())
            .is_some_and(|s| s.eq_ignore_ascii_case(text.as_bytes()))
    };
    match start.first()? {
        b'\x89' if bytes.starts_with(b"\x89HDF") => Some(Format::Hdf),
        b'C' if bytes.starts_with(b"CDF") && by_extension != Some(Format::Nastran) => {
            Some(Format::Netcdf)
        }
        b'-' if begins("-1\n") || begins("-1\r") => Some(Format::Unv),
        b'#' if begins("# vtk DataFile") => Some(Format::VtkLegacy),
        b'<' if begins("<?xml") || begins("<VTKFile") => Some(Format::VtkXml),
        b'*' => Some(Format::Abaqus),
        b'$' if by_extension == Some(Format::Nastran) && !begins("$MeshFormat") => None,
        b'$' => Some(Format::Gmsh),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::path::Path;

    fn message(name: &str, content: &[u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let folder = format!("{}/", directory.path().display());
        error.to_string().replace(&folder, "")
    }

    #[test]
    fn what_is_no_mesh_file_is_refused() {
        assert_eq!(message("a.msh", b""), "a.msh: the mesh file is empty");
        assert_eq!(
            message("a.stl", b"solid"),
            "a.stl: unknown mesh file extension `.stl`; expected .msh (Gmsh 2.2 and 4.1), .inp (Abaqus, CalculiX), .vtu or \
             .vtk, .bdf or .nas (Nastran), .unv (I-DEAS), .med (MED), .exo or .e (Exodus II)"
        );
        assert!(
            message("mesh", b"x").starts_with("mesh: a mesh file without extension; expected .msh")
        );
        let missing = read(Path::new("no/such.msh")).unwrap_err();
        assert_eq!(missing.to_string(), "no/such.msh: mesh file not found");
        let directory = tempfile::tempdir().unwrap();
        let error = read(directory.path()).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with(": a directory, not a mesh file"),
            "{error}"
        );
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn the_content_wins_over_the_extension() {
        assert_eq!(
            message("a.msh", b"** a deck\n*NODE\n1,0,0,0\n"),
            "a.msh: the mesh has no solid element (1 node, 0 other elements); expected at least one tetrahedron, \
             hexahedron, wedge or pyramid; advice"
                .replace("advice", "mesh the volume too; in Gmsh: `Physical Volume`, then `Mesh 3`")
        );
        assert_eq!(
            message("a.msh", b"!HEADER\n!NODE\n"),
            "a.msh:1: not a Gmsh mesh; expected `$MeshFormat`, found `!HEADER`"
        );
    }
}
