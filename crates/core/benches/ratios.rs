//! Ours beside its alternatives in alternating rounds, so that what else the machine does
//! meets all alike: `cargo bench -p midturn-core --bench ratios`. Per row the medians of the
//! rounds with minimum and maximum, and the ratio of ours to each.

mod common;

use std::time::Duration;

use common::Row;

const ROUNDS: usize = 15;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let measuring = std::env::args().any(|arg| arg == "--bench");
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    for row in common::ROWS.iter().map(|row| row()).filter(|row| row.name.contains(&wanted)) {
        if measuring { compare(row, ROUNDS) } else { compare(Row { per_round: 1, ..row }, 1) }
    }
    common::growth::table(measuring);
}

fn compare(mut row: Row, rounds: usize) {
    let mut seen: Vec<Vec<f64>> = vec![Vec::new(); row.cases.len()];
    for case in &mut row.cases {
        case.run(row.per_round);
    }
    for round in 0..rounds {
        // Every other round backwards: nobody always comes after the same one.
        let forwards: Vec<usize> = (0..row.cases.len()).collect();
        let order: Vec<usize> = if round % 2 == 0 { forwards } else { forwards.into_iter().rev().collect() };
        for i in order {
            let used = row.cases[i].run(row.per_round);
            seen[i].push(nanos(used) / row.per_round as f64);
        }
    }
    print(&row, &mut seen);
}

fn nanos(used: Duration) -> f64 {
    used.as_nanos() as f64
}

fn print(row: &Row, seen: &mut [Vec<f64>]) {
    seen.iter_mut().for_each(|each| each.sort_by(f64::total_cmp));
    let median = |each: &Vec<f64>| each[each.len() / 2];
    let ours = median(&seen[0]);
    println!("\n{}  (ns each: median, minimum, maximum; ratio of ours)", row.name);
    for (case, each) in row.cases.iter().zip(seen.iter()) {
        let (least, most) = (each[0], each[each.len() - 1]);
        let mid = median(each);
        println!("  {:<44} {:>10.1} {:>10.1} {:>10.1}   {:>6.2}", case.name, mid, least, most, ours / mid);
    }
    if let Some((most, against)) = row.target {
        let other = row.cases.iter().position(|case| case.name == against).map(|i| median(&seen[i]));
        let ratio = ours / other.unwrap_or(f64::NAN);
        let verdict = if ratio <= most { "met" } else { "not met" };
        println!("  target: {most} × {against}; here {ratio:.2}: {verdict}");
    }
}
