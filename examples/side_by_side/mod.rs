//! What the benchmarks against the reference share (each uses a part of it): its process, which answers each line with the milliseconds of one
//! run, so that both sides take turns on the same machine.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use burn::tensor::{Device, Int, Tensor};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Tokens that are decoded in one turn; the median counts.
pub const TOKENS: usize = 10;
/// Between one side's turn and the other's: threads of the other side wait for work for a while, awake.
pub const PAUSE: Duration = Duration::from_millis(300);

/// Whatever went wrong.
pub type Error = Box<dyn std::error::Error>;

/// The reference, waiting for the name of what to run.
pub struct Reference {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Reference {
    /// Starts it with the model in `folder`, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(python: &str, folder: &str) -> Result<Self, Error> {
        Self::start_with(python, &[folder])
    }

    /// Starts it with these arguments.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start_with(python: &str, arguments: &[&str]) -> Result<Self, Error> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/bench_reference.py");
        let mut process =
            Command::new(python).arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = process.stdin.take().ok_or("no standard input")?;
        let from = BufReader::new(process.stdout.take().ok_or("no standard output")?);
        let mut reference = Self { process, to, from };
        reference.line()?;
        Ok(reference)
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err("the reference ended".into());
        }
        Ok(line)
    }

    /// Runs what `name` names; milliseconds.
    ///
    /// # Errors
    ///
    /// When it has ended, or answers with no number.
    pub fn run(&mut self, name: &str) -> Result<f64, Error> {
        writeln!(self.to, "{name}")?;
        Ok(self.line()?.trim().parse()?)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // it waits for input for ever otherwise
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// How long `run` takes, and what it gives.
pub fn milliseconds<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = run();
    (start.elapsed().as_secs_f64() * 1e3, result)
}

/// The middle one.
pub fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The tokens at `from..to` of a sequence that both sides make alike, `[1, tokens]`.
pub fn ids(from: usize, to: usize) -> Tensor<2, Int> {
    let ids: Vec<i64> = (from..to).map(|i| (i as i64 * 7919 + 13) % 49152).collect();
    Tensor::<1, Int>::from_data(ids.as_slice(), &Device::flex()).unsqueeze()
}
