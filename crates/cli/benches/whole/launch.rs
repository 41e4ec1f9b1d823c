//! From starting the program to its first request, and how much memory it then holds.

use std::process::Command;
use std::time::Instant;

use super::person::{Home, Live};
use super::server::{Answer, Server};
use super::stats::{Figures, millis};

const ROUNDS: usize = 15;

pub(crate) fn table() {
    let home = Home::new();
    let server = Server::start(|_| Answer::Silence);
    let (mut ours, mut bash, mut resident, mut own) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let live = Live::start(&home, &server, &[]);
        ours.push(millis(server.next().at - begin));
        let (all, anonymous) = live.resident();
        resident.push(all as f64 / 1e6);
        own.push(anonymous as f64 / 1e6);
        live.quit();
        let begin = Instant::now();
        Command::new("bash").args(["-c", "true"]).status().unwrap();
        bash.push(millis(begin.elapsed()));
    }
    println!("\nlaunch  (median, minimum, maximum of {ROUNDS})");
    Figures::new(ours).print("launch to the first request", "ms", "target 20");
    Figures::new(bash).print("for scale: `bash -c true`, begin to end", "ms", "");
    Figures::new(resident).print("resident, waiting for the model", "MB", "target 15");
    Figures::new(own).print("of it not a file's pages", "MB", "");
}
