//! Nodes and elements of Gmsh format 2.2.
//!
//! Invariant: reads these two sections only.

use super::Reader;
use super::element_types::{ElementType, MOST_NODES, element_type};
use super::source::Source;
use fem_mesh::{Error, Result};

/// `number x y z` each. Parametric nodes have more fields, which are ignored.
pub(super) fn read_nodes(reader: &mut Reader, source: &mut Source, parametric: bool) -> Result<()> {
    if parametric && source.binary {
        return Err(Error::input("binary $ParametricNodes are not supported")
            .advice("write the mesh without `Mesh.SaveParametric`, or as ASCII"));
    }
    let count = read_count(source, "the number of nodes")?;
    reader.draft.nodes.reserve(source.at_most(count, 8));
    for _ in 0..count {
        source.record()?;
        let place = source.place();
        let id = source.unsigned_int("the number of a node")?;
        let coords = source.coords()?;
        if parametric {
            source.scan.rest_of_line();
        } else {
            source.end_of_record("a node: number x y z")?;
        }
        reader.draft.nodes.push(id, coords, place);
    }
    Ok(())
}

/// The count that heads a section is text in binary files, too.
fn read_count(source: &mut Source, what: &str) -> Result<u64> {
    if !source.scan.next_record() {
        return Err(source.cut_off());
    }
    let count = source.scan.unsigned(what)?;
    source.scan.rest_of_line();
    Ok(count)
}

/// Text: `number type n_tags tags... nodes...` each. Binary: blocks of one type, `type count n_tags`, then
/// `number tags... nodes...` each. The first tag is the physical group, 0 for none.
pub(super) fn read_elements(reader: &mut Reader, source: &mut Source) -> Result<()> {
    let count = read_count(source, "the number of elements")?;
    let mut n_read = 0;
    while n_read < count {
        if source.binary {
            let kind = read_type(source)?;
            let in_block = source.unsigned_int("the number of elements of a block")?;
            let n_tags = source.unsigned_int("the number of tags")?;
            if in_block == 0 {
                return Err(Error::input("a block of no elements in section $Elements"));
            }
            for _ in 0..in_block {
                let id = source.unsigned_int("the number of an element")?;
                read_element(reader, source, kind, (id, n_tags))?;
            }
            n_read = n_read.saturating_add(in_block);
        } else {
            source.record()?;
            let id = source.unsigned_int("the number of an element")?;
            let kind = read_type(source)?;
            let n_tags = source.unsigned_int("the number of tags")?;
            read_element(reader, source, kind, (id, n_tags))?;
            source.end_of_record("the nodes of the element")?;
            n_read += 1;
        }
    }
    Ok(())
}

pub(super) fn read_type(source: &mut Source) -> Result<&'static ElementType> {
    let place = source.place();
    let number = source.int("an element type")?;
    element_type(number).ok_or_else(|| {
        let error = Error::input(format!("unknown Gmsh element type {number}"));
        if place.line > 0 {
            error.at_line(place.line as usize)
        } else {
            error
        }
    })
}

fn read_element(
    reader: &mut Reader,
    source: &mut Source,
    kind: &ElementType,
    (id, n_tags): (u64, u64),
) -> Result<()> {
    let place = source.place();
    let mut group = 0;
    for k in 0..n_tags {
        let tag = source.int("a tag of the element")?;
        if k == 0 {
            group = tag;
        }
    }
    let mut nodes = [0; MOST_NODES];
    for node in &mut nodes[..kind.n_nodes] {
        *node = source.unsigned_int("a node of the element")?;
    }
    reader.add_element(kind, id, &nodes[..kind.n_nodes], &[group], place);
    Ok(())
}
