//! The program `fem-solve`: starts the ranks, does what the command line asks, ends with the documented exit code.

mod cli;

use fem_mesh::Comm;
use fem_solve::log::tell;
use std::process::ExitCode;

fn main() -> ExitCode {
    let comm = match Comm::start() {
        Ok(comm) => comm,
        Err(error) => {
            // There is no group of ranks to ask who speaks; the launcher's variables tell.
            if is_first_process() {
                tell(&format!("error: {error}"));
            }
            return exit_code(error.exit_code());
        }
    };
    exit_code(cli::dispatch(&comm))
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn is_first_process() -> bool {
    let rank = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank == "0")
}
