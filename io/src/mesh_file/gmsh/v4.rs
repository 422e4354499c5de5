//! Entities, nodes and elements of Gmsh format 4.1.
//!
//! An element belongs to an entity (point, curve, surface, volume), and an entity to any number of physical groups.
//!
//! Invariant: reads these sections only.

use super::Reader;
use super::element_types::MOST_NODES;
use super::source::Source;
use super::v2::read_type;
use fem_mesh::Result;
use std::collections::BTreeMap;

/// Physical groups of each entity, by dimension and number.
#[derive(Default)]
pub(super) struct Entities(BTreeMap<(i64, i64), Vec<i64>>);

impl Entities {
    /// `$Entities`, or `$PartitionedEntities`, in which entities also tell where they come from.
    pub(super) fn read(&mut self, source: &mut Source, partitioned: bool) -> Result<()> {
        source.across_lines = true;
        if partitioned {
            source.size("the number of partitions")?;
            for _ in 0..source.size("the number of ghost entities")? {
                source.int("a ghost entity")?;
                source.int("a partition")?;
            }
        }
        let mut counts = [0; 4];
        for count in &mut counts {
            *count = source.size("the number of entities")?;
        }
        for (dimension, count) in (0..).zip(counts) {
            for _ in 0..count {
                self.read_entity(source, dimension, partitioned)?;
            }
        }
        source.across_lines = false;
        Ok(())
    }

    fn read_entity(
        &mut self,
        source: &mut Source,
        dimension: i64,
        partitioned: bool,
    ) -> Result<()> {
        let number = source.int("the number of an entity")?;
        if partitioned {
            source.int("the dimension of the parent")?;
            source.int("the number of the parent")?;
            for _ in 0..source.size("the number of partitions")? {
                source.int("a partition")?;
            }
        }
        let n_floats = if dimension == 0 { 3 } else { 6 };
        source.skip_floats(n_floats, "the bounding box of an entity")?;
        let mut groups = Vec::new();
        for _ in 0..source.size("the number of physical groups")? {
            groups.push(source.int("a physical group")?);
        }
        if dimension > 0 {
            for _ in 0..source.size("the number of bounding entities")? {
                source.int("a bounding entity")?;
            }
        }
        self.0.insert((dimension, number), groups);
        Ok(())
    }
}

/// Blocks of nodes of one entity: first their numbers, then their coordinates (with parameters on the entity, which
/// are ignored).
pub(super) fn read_nodes(reader: &mut Reader, source: &mut Source) -> Result<()> {
    let (n_blocks, count) = read_head(source, "nodes")?;
    reader.draft.nodes.reserve(source.at_most(count, 8));
    let mut ids = Vec::new();
    for _ in 0..n_blocks {
        source.record()?;
        let dimension = source.int("the dimension of a block of nodes")?;
        source.int("the entity of a block of nodes")?;
        let parametric = source.int("0, or 1 for parametric nodes")? == 1;
        let in_block = source.size("the number of nodes of a block")?;
        source.end_of_record("the head of a block: dimension entity parametric count")?;

        ids.clear();
        ids.reserve(source.at_most(in_block, 8));
        source.across_lines = true;
        for _ in 0..in_block {
            ids.push(source.size("the number of a node")?);
        }
        source.across_lines = false;
        let n_parameters = if parametric {
            dimension.clamp(0, 3) as usize
        } else {
            0
        };
        for &id in &ids {
            source.record()?;
            let place = source.place();
            let coords = source.coords()?;
            source.skip_floats(n_parameters, "a parameter of the node")?;
            source.end_of_record("a node: x y z")?;
            reader.draft.nodes.push(id, coords, place);
        }
    }
    Ok(())
}

/// Blocks of elements of one entity and one type: `number nodes...` each.
pub(super) fn read_elements(
    reader: &mut Reader,
    source: &mut Source,
    entities: &Entities,
) -> Result<()> {
    let (n_blocks, _) = read_head(source, "elements")?;
    for _ in 0..n_blocks {
        source.record()?;
        let dimension = source.int("the dimension of a block of elements")?;
        let entity = source.int("the entity of a block of elements")?;
        let kind = read_type(source)?;
        let in_block = source.size("the number of elements of a block")?;
        source.end_of_record("the head of a block: dimension entity type count")?;

        let groups = entities
            .0
            .get(&(dimension, entity))
            .map_or(&[][..], Vec::as_slice);
        let mut nodes = [0; MOST_NODES];
        let nodes = &mut nodes[..kind.n_nodes];
        for _ in 0..in_block {
            source.record()?;
            let place = source.place();
            let id = source.size("the number of an element")?;
            for node in &mut *nodes {
                *node = source.size("a node of the element")?;
            }
            source.end_of_record("the nodes of the element")?;
            reader.add_element(kind, id, nodes, groups, place);
        }
    }
    Ok(())
}

/// Number of blocks and of entries; the smallest and largest number follow.
fn read_head(source: &mut Source, of: &str) -> Result<(u64, u64)> {
    source.record()?;
    let n_blocks = source.size("the number of blocks")?;
    let count = source.size(&format!("the number of {of}"))?;
    source.size("the smallest number")?;
    source.size("the largest number")?;
    source.end_of_record("the head of the section")?;
    Ok((n_blocks, count))
}
