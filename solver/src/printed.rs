//! Printed output: what `[[print]]` asks for, gathered to rank 0 as tables ([`fem_io::printed`]).
//!
//! In go the solution and the sets; out come, on rank 0, rows in ascending order of the numbers of the input.
//!
//! Invariant: reads the solution and changes nothing; the same tables on any number of ranks, but for rounding.

mod nodes;
mod points;
mod section;

use crate::analysis::linear_static::Solution;
use crate::model::Model;
use crate::resolve::Names;
use bytemuck::{Pod, Zeroable};
use fem_io::case::{Case, PrintKind, PrintTotals};
use fem_io::printed::{Row, Table};
use fem_mesh::{Comm, Result};

/// Most numbers of a row.
const WIDEST: usize = 6;

/// Collective. The tables of all requests, in their order; rows on rank 0 only.
///
/// # Errors
/// Node with two local systems.
pub fn tables(
    comm: &Comm,
    case: &Case,
    names: &Names,
    model: &Model,
    solution: &Solution,
) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for request in &case.prints {
        let quantities = request.quantities.iter();
        match request.kind {
            PrintKind::Nodes => {
                let printer = nodes::NodePrinter::new(comm, case, names, model, solution)?;
                for &quantity in quantities {
                    tables.extend(printer.tables(comm, request, quantity));
                }
            }
            PrintKind::Elements => {
                let printer = points::PointPrinter::new(names, model, solution);
                for &quantity in quantities {
                    tables.extend(printer.tables(comm, request, quantity));
                }
            }
            PrintKind::Section => {
                tables.push(section::table(comm, names, model, solution, request))
            }
        }
    }
    Ok(tables)
}

/// A row as ranks send it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Sent {
    id: u64,
    point: u64,
    values: [f64; WIDEST],
}

impl Sent {
    /// A row of up to [`WIDEST`] numbers.
    fn new<const N: usize>(id: u64, point: u64, values: [f64; N]) -> Self {
        let mut row = Sent {
            id,
            point,
            values: [0.0; WIDEST],
        };
        row.values[..N].copy_from_slice(&values);
        row
    }
}

/// What a quantity is called, and of how many numbers its rows are.
struct Titles {
    rows: &'static str,
    total: Option<&'static str>,
    n_values: usize,
}

/// Collective. The table of the rows of all ranks and that of their sum, as far as they are wanted.
fn gathered(
    comm: &Comm,
    titles: &Titles,
    set: &str,
    totals: PrintTotals,
    rows: &[Sent],
) -> Vec<Table> {
    let mut all = comm.gather(rows).concat();
    all.sort_by_key(|row| (row.id, row.point));
    let n_values = titles.n_values;
    let mut total = vec![0.0; n_values];
    for row in &all {
        (0..n_values).for_each(|i| total[i] += row.values[i]);
    }
    let mut tables = Vec::new();
    if totals != PrintTotals::Only || titles.total.is_none() {
        let rows = all.iter().map(|row| Row {
            id: row.id,
            point: row.point,
            values: row.values[..n_values].to_vec(),
        });
        tables.push(Table::Rows {
            what: titles.rows,
            set: set.to_owned(),
            rows: rows.collect(),
        });
    }
    if let Some(what) = titles.total.filter(|_| totals != PrintTotals::No) {
        tables.push(Table::Total {
            what,
            set: set.to_owned(),
            values: total,
        });
    }
    tables
}
