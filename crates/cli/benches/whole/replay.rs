//! `midturn replay` of a thousand files: read, played, checked and reported, on one core.

use std::fs;
use std::time::Instant;

use super::person::{Home, midturn};
use super::stats::{Figures, millis, of_children};

const FILES: u32 = 1_000;

/// Some twenty events: the example of `docs/scenarios.md`.
const SCENARIO: &str = include_str!("../../../../scenarios/boundaries/a-correction-between-two-edits.yaml");

pub(crate) fn table() {
    let home = Home::new();
    let below = home.project().join("files");
    fs::create_dir(&below).unwrap();
    for i in 0..FILES {
        fs::write(below.join(format!("{i:04}.yaml")), SCENARIO).unwrap();
    }
    let events = midturn(&home, &["replay", "--json", "files/0000.yaml"]).output().unwrap().stdout;
    let (mut used, mut wall) = (vec![], vec![]);
    for _ in 0..5 {
        let (begin, before) = (Instant::now(), of_children());
        let output = midturn(&home, &["replay", "files"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        wall.push(f64::from(FILES) / begin.elapsed().as_secs_f64());
        used.push(f64::from(FILES) * 1_000.0 / millis(of_children() - before));
    }
    let events = events.split(|byte| *byte == b'\n').count() - 1;
    println!("\nreplay of {FILES} files of {events} events each  (median, minimum, maximum of 5)");
    Figures::new(used).print("scenarios in a second of processor time", "", "target 1,000");
    Figures::new(wall).print("scenarios in a second", "", "");
}
