//! The command-line tool. Built on the public API alone.

mod args;
mod backend;
mod capture;
mod convert;
mod error;
mod files;
mod inputs;
mod model;
mod plan;
mod progress;
mod text;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use error::{CliError, chain};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Reads the arguments and does what they say. The status is 1 after an error, 2 after wrong usage.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Capture(args) => capture::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Convert(args) => convert::run(&args),
    };
    match result.and_then(|text| print(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Usage { command, problem }) => {
            let mut cli = Cli::command();
            cli.build();
            let kind = clap::error::ErrorKind::ValueValidation;
            match cli.find_subcommand_mut(command) {
                Some(command) => command.error(kind, problem).exit(),
                None => cli.error(kind, problem).exit(),
            }
        }
        Err(error) => {
            eprintln!("error: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output. That a reader has seen enough (`| head`) is no error.
fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => Err(CliError::Print { source }),
        _ => Ok(()),
    }
}
