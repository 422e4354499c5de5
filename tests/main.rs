//! System tests: the real binary, alone and under mpirun, and the library on whole models.

mod bad_input;
mod cases;
mod cli;
mod common;
mod constraints;
mod convergence;
mod decks;
mod elements;
mod materials;
mod patch;
mod ranks;
mod steps;
mod tidy;
mod viewers;
