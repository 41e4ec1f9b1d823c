//! How many instructions each case takes: the same on a busy machine as on a quiet one.
//! `cargo bench -p midturn-core --bench instructions`; it needs valgrind, and says so.
//!
//! The program runs itself under callgrind, once with n repetitions and once with 2 n; the
//! difference is what n of them take, without the preparation.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't go on should end")]

mod common;

use std::process::Command;

use common::Row;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, row, case, n] = &args[..]
        && word == "only"
    {
        let mut row = common::ROWS[row.parse::<usize>().unwrap()]();
        row.cases[case.parse::<usize>().unwrap()].run(n.parse().unwrap());
        return;
    }
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("valgrind is not installed: no instructions are counted");
        return;
    }
    for (index, row) in common::ROWS.iter().enumerate() {
        print(index, &row());
    }
}

fn print(index: usize, row: &Row) {
    if !row.countable {
        return;
    }
    println!("\n{}  (instructions each; ratio of the first)", row.name);
    let counts: Vec<Option<f64>> =
        (0..row.cases.len()).map(|case| each(index, case, row.per_round)).collect();
    for (case, count) in row.cases.iter().zip(&counts) {
        match (count, counts[0]) {
            (Some(count), Some(first)) => {
                println!("  {:<44} {count:>12.1}   {:>6.2}", case.name, first / count)
            }
            _ => println!("  {:<44} could not be counted", case.name),
        }
    }
}

fn each(row: usize, case: usize, n: u64) -> Option<f64> {
    let (once, twice) = (count(row, case, n)?, count(row, case, 2 * n)?);
    Some((twice as f64 - once as f64) / n as f64)
}

/// Callgrind's own count of one whole process.
fn count(row: usize, case: usize, n: u64) -> Option<u64> {
    let own = std::env::current_exe().ok()?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(own);
    command.args(["only".to_owned(), row.to_string(), case.to_string(), n.to_string()]);
    let output = command.output().ok().filter(|output| output.status.success())?;
    let told = String::from_utf8(output.stderr).ok()?;
    let line = told.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}
