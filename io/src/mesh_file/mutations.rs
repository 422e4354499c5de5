//! Damaged files of every format: whatever is done to their bytes, a reader ends with a mesh or with one message.

use super::fixtures::{Vtu, curved, nastran, unv, vtk_ascii, vtk_binary, vtu};
use super::fixtures_binary::{exodus_classic, exodus_hdf, med_file};
use super::{Draft, exodus, nastran as nastran_reader, unv as unv_reader, vtk};
use fem_mesh::{CellType, Result};
use std::path::Path;
use std::time::Instant;

/// Numbers like random ones, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        // Xorshift64*, Vigna 2016.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

/// What a number in a text may turn into.
const WILD: [&str; 12] = [
    "-1",
    "0",
    "nan",
    "inf",
    "1e999",
    "-1e308",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999",
    "2147483648",
    "",
    "x",
];

/// One to three changes: bytes turned or zeroed, the end cut off, lines swapped, numbers replaced, pieces repeated.
fn damage(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.roll(3) {
        let n = bytes.len();
        if n == 0 {
            break;
        }
        match dice.roll(7) {
            0 => bytes[dice.roll(n)] ^= 1 << dice.roll(8),
            1 => bytes[dice.roll(n)] = [0, 0xff, 0x7f, 0x80][dice.roll(4)],
            2 => bytes.truncate(dice.roll(n)),
            3 => swap_lines(&mut bytes, dice),
            4 | 5 => replace_number(&mut bytes, dice),
            _ => {
                let (from, to, length) = (dice.roll(n), dice.roll(n), dice.roll(40));
                let piece = bytes[from..n.min(from + length)].to_vec();
                bytes.splice(to..to, piece);
            }
        }
    }
    bytes
}

fn swap_lines(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
    let n = lines.len();
    lines.swap(dice.roll(n), dice.roll(n));
    *bytes = lines.join(&b'\n');
}

fn replace_number(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let start = dice.roll(bytes.len());
    let is_part = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-');
    let Some(from) = bytes[start..].iter().position(is_part) else {
        return;
    };
    let from = start + from;
    let length = bytes[from..].iter().take_while(|b| is_part(b)).count();
    let wild = WILD[dice.roll(WILD.len())].bytes();
    bytes.splice(from..from + length, wild);
}

/// Damages `seeds` in `n` ways each and reads what comes out.
fn survive(name: &str, seeds: &[Vec<u8>], n: usize, read: impl Fn(&[u8]) -> Result<Draft>) {
    let started = Instant::now();
    let (mut n_meshes, mut n_errors) = (0, 0);
    for (k, seed) in seeds.iter().enumerate() {
        assert!(read(seed).and_then(Draft::finish).is_ok(), "{name} {k}");
        let mut dice = Dice(0x9e37_79b9 + k as u64);
        for round in 0..n {
            let bytes = damage(seed, &mut dice);
            match read(&bytes).and_then(Draft::finish) {
                Ok(file) => {
                    n_meshes += 1;
                    assert!(file.mesh.coords.iter().flatten().all(|x| x.is_finite()));
                }
                Err(error) => {
                    n_errors += 1;
                    let text = error.to_string();
                    let is_one_line = !text.contains('\n') && text.len() < 1000;
                    assert!(
                        text.contains("a.file") && is_one_line,
                        "{name} {k} {round}: {text}"
                    );
                    assert_eq!(error.exit_code(), 2, "{text}");
                }
            }
        }
    }
    println!(
        "{name}: {n_meshes} meshes, {n_errors} messages, {:?}",
        started.elapsed()
    );
    assert!(n_errors > n_meshes / 20, "{name}: the damage does nothing");
}

const FILE: &str = "a.file";

#[test]
fn damaged_texts_end_in_a_mesh_or_a_message() {
    let meshes = [curved(CellType::Hex20, false), curved(CellType::Tet4, true)];
    let texts =
        |write: fn(&fem_mesh::Mesh) -> String| meshes.each_ref().map(|m| write(m).into_bytes());
    let path = Path::new(FILE);
    survive("nastran", &texts(nastran), 1500, |b| {
        nastran_reader::read(path, b)
    });
    survive("unv", &texts(unv), 1500, |b| unv_reader::read(path, b));
    let old = texts(|m| vtk_ascii(m, false));
    let new = texts(|m| vtk_ascii(m, true));
    survive("vtk", &[old, new].concat(), 1000, |b| {
        vtk::read_legacy(path, b)
    });
    for form in Vtu::ALL {
        let seeds = [vtu(&meshes[0], form, false), vtu(&meshes[1], form, true)];
        survive(&format!("vtu {form:?}"), &seeds, 500, |b| {
            vtk::read_xml(path, b)
        });
    }
    for format in ["inp", "msh"] {
        let seeds: Vec<Vec<u8>> = (meshes.iter())
            .map(|mesh| {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join(format!("m.{format}"));
                super::write(&path, mesh).unwrap();
                std::fs::read(&path).unwrap()
            })
            .collect();
        survive(format, &seeds, 1000, |b| match format {
            "inp" => super::abaqus::read(path, b),
            _ => super::gmsh::read(path, b),
        });
    }
}

#[test]
fn damaged_binary_files_end_in_a_mesh_or_a_message() {
    let meshes = [curved(CellType::Hex20, false), curved(CellType::Tet4, true)];
    let path = Path::new(FILE);
    let seeds = meshes.each_ref().map(vtk_binary);
    survive("vtk binary", &seeds, 1500, |b| vtk::read_legacy(path, b));
    let seeds: Vec<Vec<u8>> = [1, 2, 5]
        .iter()
        .map(|&v| exodus_classic(&meshes[1], v))
        .collect();
    survive("exodus", &seeds, 1500, |b| exodus::read_classic(path, b));
}

#[test]
fn damaged_hdf5_files_end_in_a_mesh_or_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let mesh = curved(CellType::Tet10, false);
    let mut seeds = Vec::new();
    let writers: [fn(&fem_mesh::Mesh, &Path); 2] = [med_file, exodus_hdf];
    for write in writers {
        write(&mesh, &path);
        seeds.push(std::fs::read(&path).unwrap());
    }
    survive("hdf5", &seeds, 300, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        super::read_hdf(&path)
    });
}
