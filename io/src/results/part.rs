//! `PartData`: what one rank contributes to the result file: points, cells and the fields on them.
//!
//! Cells and points are those of VTK: node order of [`CellType`], type numbers of [`CellType::vtk_id`]. Points on the
//! border of two parts are in both.
//!
//! Invariant: plain data and its checks; writes nothing.

use fem_mesh::{CellType, Comm, Error, LocalMesh, Result};

/// Name of the point field with the node numbers of the input.
pub const NODE_ID: &str = "node_id";
/// Name of the cell field with the element numbers of the input.
pub const ELEMENT_ID: &str = "element_id";

/// Values of a field, one row after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Quantities; all finite.
    F64(Vec<f64>),
    /// Numbers of the input.
    I64(Vec<i64>),
    /// Small numbers: rank, material.
    I32(Vec<i32>),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::F64(v) => v.len(),
            Values::I64(v) => v.len(),
            Values::I32(v) => v.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn n_bytes(&self) -> usize {
        match self {
            Values::F64(v) => size_of_val(&v[..]),
            Values::I64(v) => size_of_val(&v[..]),
            Values::I32(v) => size_of_val(&v[..]),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Values::F64(_) => "f64",
            Values::I64(_) => "i64",
            Values::I32(_) => "i32",
        }
    }
}

/// A named field on the points or on the cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name shown by viewers; no slash.
    pub name: String,
    /// Values per point or cell. Viewers show 6 as the symmetric tensor XX YY ZZ XY YZ XZ: our Voigt order.
    pub components: usize,
    /// `components` values for each point or cell.
    pub values: Values,
}

impl Field {
    /// A field of quantities.
    pub fn f64(name: &str, components: usize, values: Vec<f64>) -> Self {
        Field {
            name: name.to_owned(),
            components,
            values: Values::F64(values),
        }
    }

    /// A field of one number of the input per point or cell.
    pub fn i64(name: &str, values: Vec<i64>) -> Self {
        Field {
            name: name.to_owned(),
            components: 1,
            values: Values::I64(values),
        }
    }

    /// A field of one small number per point or cell.
    pub fn i32(name: &str, values: Vec<i32>) -> Self {
        Field {
            name: name.to_owned(),
            components: 1,
            values: Values::I32(values),
        }
    }
}

/// This rank's part of the results. Every rank has the same fields in the same order, also a rank without cells.
#[derive(Clone, Debug, PartialEq)]
pub struct PartData {
    /// Coordinates of the points, m.
    pub points: Vec<[f64; 3]>,
    /// Points of all cells, counted from 0 in this part.
    pub connectivity: Vec<i64>,
    /// Start of each cell in `connectivity`, then its end: one more than there are cells, so `[0]` without cells.
    pub offsets: Vec<i64>,
    /// VTK's type number of each cell.
    pub types: Vec<u8>,
    /// Fields on the points.
    pub point_fields: Vec<Field>,
    /// Fields on the cells.
    pub cell_fields: Vec<Field>,
}

impl Default for PartData {
    fn default() -> Self {
        PartData {
            points: Vec::new(),
            connectivity: Vec::new(),
            offsets: vec![0],
            types: Vec::new(),
            point_fields: Vec::new(),
            cell_fields: Vec::new(),
        }
    }
}

impl PartData {
    /// The owned cells of a rank and their points, with the fields `node_id`, `element_id`, `material` and `rank`. A
    /// node between cells of different materials becomes a point for each, so that a jump of stress there is shown. The
    /// second result names the local node and the material of each point, ascending: further point fields are to be
    /// given in that order.
    pub fn of_owned_cells(
        mesh: &LocalMesh,
        cell_material: &[u16],
        rank: usize,
    ) -> (Self, Vec<(u32, u16)>) {
        let n_cells = mesh.n_owned_cells;
        let keys = |cell: usize| {
            let material = cell_material[cell];
            let nodes = mesh.cells.nodes_of(cell).iter();
            nodes.map(move |&node| (node, material))
        };
        let mut pairs: Vec<(u32, u16)> = (0..n_cells).flat_map(keys).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut first_of_node = vec![u32::MAX; mesh.coords.len()];
        for (point, (node, _)) in pairs.iter().enumerate().rev() {
            first_of_node[*node as usize] = point as u32;
        }
        let point_of = |key: (u32, u16)| {
            let first = first_of_node[key.0 as usize] as usize;
            let further = pairs[first..]
                .iter()
                .take_while(|pair| **pair < key)
                .count();
            (first + further) as i64
        };
        let mut part = PartData::default();
        part.points
            .extend(pairs.iter().map(|(node, _)| mesh.coords[*node as usize]));
        for cell in 0..n_cells {
            part.push_cell(mesh.cells.types[cell], keys(cell).map(point_of));
        }
        let node_ids = pairs
            .iter()
            .map(|(node, _)| mesh.node_ids[*node as usize] as i64);
        part.point_fields
            .push(Field::i64(NODE_ID, node_ids.collect()));
        let element_ids = mesh.cell_ids[..n_cells].iter().map(|&id| id as i64);
        part.cell_fields
            .push(Field::i64(ELEMENT_ID, element_ids.collect()));
        let materials = cell_material[..n_cells].iter().map(|&m| i32::from(m));
        part.cell_fields
            .push(Field::i32("material", materials.collect()));
        part.cell_fields
            .push(Field::i32("rank", vec![rank as i32; n_cells]));
        (part, pairs)
    }

    /// Appends a cell whose points are given in our node order, which is VTK's.
    pub fn push_cell(&mut self, cell_type: CellType, points: impl IntoIterator<Item = i64>) {
        self.connectivity.extend(points);
        self.offsets.push(self.connectivity.len() as i64);
        self.types.push(cell_type.vtk_id());
    }

    /// Number of cells.
    pub fn n_cells(&self) -> usize {
        self.types.len()
    }

    /// Bytes that the values of this part take in the file.
    pub(super) fn n_bytes(&self) -> u64 {
        let counts = 3 * size_of::<i64>();
        let mesh = size_of_val(&self.points[..])
            + size_of_val(&self.connectivity[..])
            + size_of_val(&self.offsets[..])
            + size_of_val(&self.types[..]);
        let fields: usize = self.fields().map(|(f, _)| f.values.n_bytes()).sum();
        (counts + mesh + fields) as u64
    }

    /// Collective. That the part is whole here, has the same fields on all ranks, and holds finite quantities.
    pub(super) fn check(&self, comm: &Comm) -> Result<()> {
        comm.all_ok(self.check_shape().and_then(|()| self.check_finite()))?;
        let schemas = comm.all_gather(self.schema().as_bytes());
        match schemas.iter().position(|s| *s != schemas[0]) {
            Some(rank) => Err(defect(format!(
                "rank {rank} has other result fields than rank 0"
            ))),
            None => Ok(()),
        }
    }

    fn fields(&self) -> impl Iterator<Item = (&Field, usize)> {
        let on_points = self.point_fields.iter().map(|f| (f, self.points.len()));
        on_points.chain(self.cell_fields.iter().map(|f| (f, self.n_cells())))
    }

    fn schema(&self) -> String {
        let line = |f: &Field| format!("{} {} {}\n", f.name, f.components, f.values.type_name());
        let lines = |fields: &[Field]| fields.iter().map(line).collect::<String>();
        lines(&self.point_fields) + "\n" + &lines(&self.cell_fields)
    }

    fn check_shape(&self) -> Result<()> {
        let ends = (self.offsets.first().copied(), self.offsets.last().copied());
        let n_points = self.points.len() as i64;
        if self.offsets.len() != self.n_cells() + 1
            || ends != (Some(0), Some(self.connectivity.len() as i64))
            || self.offsets.windows(2).any(|w| w[0] >= w[1])
            || self
                .connectivity
                .iter()
                .any(|point| !(0..n_points).contains(point))
        {
            return Err(defect(
                "the cells of the results do not fit their points".to_owned(),
            ));
        }
        let misfit = self
            .fields()
            .find(|(f, n)| f.components == 0 || f.values.len() != n * f.components);
        match misfit {
            Some((f, n)) => Err(defect(format!(
                "result field `{}` has {} values for {n} points or cells of {} components",
                f.name,
                f.values.len(),
                f.components
            ))),
            None => Ok(()),
        }
    }

    fn check_finite(&self) -> Result<()> {
        require_finite(&self.point_fields, "node", NODE_ID)?;
        require_finite(&self.cell_fields, "element", ELEMENT_ID)
    }
}

/// Names the first quantity that is not finite, with the number of its place taken from the field `numbers`.
fn require_finite(fields: &[Field], place: &str, numbers: &str) -> Result<()> {
    let numbers = fields.iter().find(|f| f.name == numbers).map(|f| &f.values);
    for field in fields {
        let Values::F64(values) = &field.values else {
            continue;
        };
        if let Some(k) = values.iter().position(|x| !x.is_finite()) {
            let row = k / field.components;
            let number = match numbers {
                Some(Values::I64(ids)) => ids[row],
                _ => row as i64,
            };
            let what = format!(
                "`{}` is not a finite number at {place} {number}",
                field.name
            );
            return Err(
                Error::model(what).advice("look for material values or loads of an absurd size")
            );
        }
    }
    Ok(())
}

/// A mistake of the program, not of its user.
fn defect(what: String) -> Error {
    Error::machine(what).advice("this is a defect of fem-solve: please report it")
}

#[cfg(test)]
mod tests {
    use super::{Field, PartData};
    use fem_mesh::{CellType, Cells, Comm, IndexMap, LocalMesh};

    /// Two tetrahedra that share a face.
    fn two_tets(n_owned_cells: usize) -> LocalMesh {
        let mut cells = Cells::default();
        cells.push(CellType::Tet4, &[4, 2, 1, 0]);
        cells.push(CellType::Tet4, &[2, 3, 1, 0]);
        LocalMesh {
            cells,
            n_owned_cells,
            cell_ids: vec![70, 80],
            coords: (0..5).map(|k| [f64::from(k), 0.5, 0.0]).collect(),
            node_ids: vec![10, 11, 12, 13, 14],
            nodes: IndexMap::new(&Comm::alone(), 5, Vec::new()),
            sets: Default::default(),
            n_global_cells: 2,
        }
    }

    #[test]
    fn owned_cells_come_with_the_nodes_they_touch_and_the_numbers_of_the_input() {
        let (part, points) = PartData::of_owned_cells(&two_tets(1), &[5, 5], 3);
        let expected = [(0, 5), (1, 5), (2, 5), (4, 5)];
        assert_eq!(points, expected, "node 3 belongs to the ghost cell only");
        assert_eq!(part.points[3], [4.0, 0.5, 0.0]);
        assert_eq!(part.connectivity, [3, 2, 1, 0]);
        assert_eq!(part.offsets, [0, 4]);
        assert_eq!(part.types, [10]);
        let node_ids = Field::i64("node_id", vec![10, 11, 12, 14]);
        assert_eq!(part.point_fields, [node_ids]);
        let cell_fields = [
            Field::i64("element_id", vec![70]),
            Field::i32("material", vec![5]),
            Field::i32("rank", vec![3]),
        ];
        assert_eq!(part.cell_fields, cell_fields);
        part.check(&Comm::alone()).unwrap();
    }

    #[test]
    fn nodes_between_materials_are_a_point_for_each() {
        let (part, points) = PartData::of_owned_cells(&two_tets(2), &[1, 0], 0);
        let expected = [
            (0, 0),
            (0, 1),
            (1, 0),
            (1, 1),
            (2, 0),
            (2, 1),
            (3, 0),
            (4, 1),
        ];
        assert_eq!(points, expected);
        assert_eq!(part.connectivity, [7, 5, 3, 1, 4, 6, 2, 0]);
        part.check(&Comm::alone()).unwrap();
    }
}
