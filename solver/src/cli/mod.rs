//! The commands of the program: what each prints, and the exit code it ends with.
//!
//! stdout carries results, stderr progress and the one error message; both from rank 0 only.
//!
//! Invariant: no numerics; every command is a few calls into the library.

mod args;
mod gallery;
mod table;
mod verify;

use args::{CasesAction, CheckArgs, Cli, Command, CommonArgs, MeshAction, RunArgs};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use fem_io::deck;
use fem_mesh::{Comm, Error, Result};
use fem_solve::log::{Log, tell};
use fem_solve::run::{self, Request};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Collective. Reads the command line and does what it asks; the exit code of the program.
pub(crate) fn dispatch(comm: &Comm) -> i32 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let first = std::env::args().nth(1).unwrap_or_default();
            let is_misused = matches!(
                error.kind(),
                ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict
            );
            if let (true, Some(error)) = (is_misused, unknown_command(&first)) {
                return report(comm, &error);
            }
            if error.kind() == ErrorKind::ArgumentConflict {
                let error = Error::input("an option stands before the command")
                    .expected("options behind the command: fem-solve check --quiet case.toml");
                return report(comm, &error);
            }
            if comm.is_root() {
                // Nothing can be done about a closed pipe.
                let _ = error.print();
            }
            return error.exit_code();
        }
    };
    let outcome = match cli.command {
        None => run_command(comm, &cli.run),
        Some(Command::Run(args)) => run_command(comm, &args),
        Some(Command::Check(args)) => check_command(comm, &args),
        Some(Command::Cases(args)) => {
            on_root(comm, || match args.action.unwrap_or(CasesAction::List) {
                CasesAction::List => gallery::list(),
                CasesAction::Copy { name, directory } => gallery::copy(&name, &directory),
            })
        }
        Some(Command::Verify(args)) => verify::verify(comm, &args),
        Some(Command::Mesh(args)) => match args.action {
            MeshAction::Info { file } => on_root(comm, || mesh_info(&file)),
            MeshAction::Convert { input, output } => {
                on_root(comm, || mesh_convert(&input, &output))
            }
        },
        Some(Command::Schema(args)) => on_root(comm, || {
            Ok(if args.markdown {
                fem_io::schema::case_reference()
            } else {
                fem_io::schema::case_schema()
            })
        }),
    };
    outcome.unwrap_or_else(|error| report(comm, &error))
}

/// Prints the one error message, on rank 0; the exit code.
fn report(comm: &Comm, error: &Error) -> i32 {
    if comm.is_root() {
        tell(&format!("error: {error}"));
    }
    error.exit_code()
}

/// The error for a first argument that can only be a misspelt command: it is neither a command nor looks like a path.
fn unknown_command(typed: &str) -> Option<Error> {
    if typed.is_empty() || typed.contains(['-', '.', '/', '\\']) || Path::new(typed).exists() {
        return None;
    }
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(|c| c.get_name()).collect();
    if names.contains(&typed) {
        return None;
    }
    let error = Error::input(format!("there is no command `{typed}`"))
        .expected(format!("a case file, or one of {}", names.join(", ")));
    let near = names
        .iter()
        .find(|name| name.starts_with(typed) || typed.starts_with(**name));
    Some(match near {
        Some(name) => error.advice(format!("did you mean `{name}`?")),
        None => error.advice("`fem-solve --help` says what they do"),
    })
}

/// What the user sees of a command's progress.
fn log_of(comm: &Comm, common: &CommonArgs) -> Log {
    Log::with_progress(comm.is_root(), comm.is_root() && !common.quiet)
}

/// Collective. Rank 0 prints on stdout; a closed pipe is no error of ours.
///
/// # Errors
/// stdout cannot be written, as on a full disk.
fn print(comm: &Comm, text: impl FnOnce() -> String) -> Result<()> {
    let written = if comm.is_root() {
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{}", text().trim_end()).and_then(|()| stdout.flush())
    } else {
        Ok(())
    };
    comm.all_ok(match written {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::machine(format!(
            "cannot write to the standard output: {e}"
        ))),
        _ => Ok(()),
    })
}

/// Collective. Does serial work on rank 0 and prints the text it returns.
fn on_root(comm: &Comm, work: impl FnOnce() -> Result<String>) -> Result<i32> {
    let text = if comm.is_root() {
        work()
    } else {
        Ok(String::new())
    };
    let text = comm.all_ok(text)?;
    print(comm, || text)?;
    Ok(0)
}

fn request(case: &Path, output: Option<PathBuf>, common: &CommonArgs) -> Request {
    Request {
        case: case.to_path_buf(),
        output,
        overrides: common.overrides.clone(),
        threads: common.threads.map(|n| n as usize),
    }
}

fn run_command(comm: &Comm, args: &RunArgs) -> Result<i32> {
    let case = args
        .case
        .as_deref()
        .ok_or_else(|| Error::input("no case file given").expected("a case.toml"))?;
    if let Some(error) = case.to_str().and_then(unknown_command) {
        return Err(error);
    }
    let mut log = log_of(comm, &args.common);
    let summary = run::run(
        comm,
        &request(case, args.output.clone(), &args.common),
        &mut log,
    )?;
    print(comm, || table::of_summary(&summary))?;
    if let Some(error) = summary.error.as_ref().filter(|_| comm.is_root()) {
        tell(&format!("error: {error}"));
    }
    Ok(summary.exit_code)
}

fn check_command(comm: &Comm, args: &CheckArgs) -> Result<i32> {
    let mut log = log_of(comm, &args.common);
    let inspection = run::inspect(comm, &request(&args.case, None, &args.common), &mut log)?;
    print(comm, || table::of_inspection(&inspection))?;
    Ok(0)
}

/// Reads a mesh file and tells its warnings.
fn read_mesh_file(file: &Path) -> Result<fem_mesh::Mesh> {
    let read = fem_io::mesh_file::read(file)?;
    for warning in &read.warnings {
        tell(&format!("warning: {warning}"));
    }
    Ok(read.mesh)
}

/// Whether a deck is to become a case: the output is a directory, or can be no mesh file.
fn wants_case(input: &Path, output: &Path) -> bool {
    let ends_as_directory = output.to_string_lossy().ends_with('/');
    deck::is_deck(input) && (ends_as_directory || output.is_dir() || output.extension().is_none())
}

fn mesh_convert(input: &Path, output: &Path) -> Result<String> {
    if wants_case(input, output) {
        let made = deck::convert(input, output)?;
        for warning in &made.warnings {
            tell(&format!("warning: {warning}"));
        }
        return Ok(format!(
            "{}: a case of {} nodes, {} elements",
            output.join("case.toml").display(),
            made.mesh.n_nodes(),
            made.mesh.n_cells()
        ));
    }
    let mesh = read_mesh_file(input)?;
    fem_io::mesh_file::write(output, &mesh)?;
    let n_sets = mesh.sets.nodes.len() + mesh.sets.cells.len() + mesh.sets.faces.len();
    Ok(format!(
        "{}: {} nodes, {} elements, {n_sets} sets",
        output.display(),
        mesh.n_nodes(),
        mesh.n_cells()
    ))
}

fn mesh_info(file: &Path) -> Result<String> {
    let mesh = read_mesh_file(file)?;
    Ok(format!(
        "{}\n{}",
        file.display(),
        fem_io::mesh_info::describe(&mesh)
    ))
}
