//! Writes a bent beam of second-order elements as a result file: `write_box DIRECTORY [CELLS_PER_EDGE]`.
//!
//! For trying viewers, and the parallel path under `mpirun`: the beam is cut along x into one piece a rank. Its
//! fields are known functions of the place, so `scripts/check_vtkhdf.py` can hold them against their ranges.

use fem_io::results::{Field, PartData, write_results};
use fem_mesh::{CellType, Comm, Error, Result};
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

/// Corners of a Hex20 on a lattice of half edges; the other nodes stand halfway between two of them.
const CORNERS: [[usize; 3]; 8] = [
    [0, 0, 0],
    [2, 0, 0],
    [2, 2, 0],
    [0, 2, 0],
    [0, 0, 2],
    [2, 0, 2],
    [2, 2, 2],
    [0, 2, 2],
];

/// The cells `first..end` along x of a beam of length 10 and unit section, `n` cells over its height.
fn beam(n: usize, cells: std::ops::Range<usize>, rank: usize) -> PartData {
    let mut part = PartData::default();
    let mut numbers: HashMap<[usize; 3], i64> = HashMap::new();
    let edges = CellType::Hex20.edges();
    for i in cells {
        for (j, k) in (0..n * n).map(|jk| (jk / n, jk % n)) {
            let corner = |c: usize| {
                let [a, b, c] = CORNERS[c];
                [2 * i + a, 2 * j + b, 2 * k + c]
            };
            let middle = |edge: &[u8; 2]| {
                let [a, b] = edge.map(|c| corner(usize::from(c)));
                [0, 1, 2].map(|d| (a[d] + b[d]) / 2)
            };
            let nodes: Vec<i64> = (0..8)
                .map(corner)
                .chain(edges.iter().map(middle))
                .map(|at| {
                    let next = numbers.len() as i64;
                    *numbers.entry(at).or_insert_with(|| {
                        part.points.push(at.map(|x| x as f64 / (2 * n) as f64));
                        next
                    })
                })
                .collect();
            part.push_cell(CellType::Hex20, nodes);
        }
    }
    add_fields(&mut part, rank);
    part
}

/// Deflection x²/100 downwards, and the bending stress that belongs to it with E = 1.
fn add_fields(part: &mut PartData, rank: usize) {
    let displacement = |[x, _, z]: [f64; 3]| [x * (z - 0.5) / 50.0, 0.0, -x * x / 100.0];
    let stress_xx = |[_, _, z]: [f64; 3]| (z - 0.5) / 50.0;
    let points = &part.points;
    part.point_fields = vec![
        Field::f64(
            "displacement",
            3,
            points.iter().copied().flat_map(displacement).collect(),
        ),
        Field::f64(
            "stress",
            6,
            points
                .iter()
                .flat_map(|&p| [stress_xx(p), 0.0, 0.0, 0.0, 0.0, 0.0])
                .collect(),
        ),
        Field::f64(
            "von_mises",
            1,
            points.iter().map(|&p| stress_xx(p).abs()).collect(),
        ),
    ];
    part.cell_fields = vec![Field::i32("rank", vec![rank as i32; part.n_cells()])];
}

fn run(comm: &Comm) -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || {
        Error::input("the output directory is missing")
            .advice("write_box DIRECTORY [CELLS_PER_EDGE]")
    };
    let directory = comm.all_ok(arguments.next().ok_or_else(usage))?;
    let n: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(2);
    let (rank, n_ranks) = (comm.rank(), comm.n_ranks());
    let cells = 10 * n * rank / n_ranks..10 * n * (rank + 1) / n_ranks;
    let path = write_results(comm, Path::new(&directory), &beam(n, cells, rank))?;
    if comm.is_root() {
        println!("{}", path.display());
    }
    Ok(())
}

fn main() -> ExitCode {
    let comm = match Comm::start() {
        Ok(comm) => comm,
        Err(error) => return end_with(&error),
    };
    match run(&comm) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if comm.is_root() => end_with(&error),
        Err(error) => ExitCode::from(error.exit_code() as u8),
    }
}

fn end_with(error: &Error) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(error.exit_code() as u8)
}
