//! What a frame costs the way to the terminal, counted.

use midturn_core::rules::conversation::ToolStatus;

use crate::common::{Play, command};
use crate::seen::Seen;

/// The most that a frame of twenty agents who all speak may write, in the middle of many: once in a while a row
/// begins with later words and is written whole.
const BYTES_MAX: usize = 512;

/// Twenty agents at work, each of which has said something.
fn twenty(width: u16, height: u16) -> (Play, Vec<String>) {
    let mut play = Play::of_size(width, height);
    let names: Vec<String> =
        (0..20).map(|n| if n == 0 { "lead".to_owned() } else { format!("worker-{n}") }).collect();
    for (n, name) in names.iter().enumerate() {
        let before = "The page begins with what the reader knows already, and goes on to what is new";
        play.begins(name, "Write the page.").replies(name, "I look first.", &[("c1", "bash", command("ls"))]);
        play.starts(name, "c1", "bash", command("ls")).ends(
            name,
            "c1",
            "bash",
            ToolStatus::Completed,
            "a\nb\n",
        );
        play.asks_model(name).says(name, &before[..before.len() - 2 * n]);
    }
    (play, names)
}

#[test]
fn a_frame_of_twenty_agents_who_speak_is_few_bytes() {
    let (mut play, names) = twenty(200, 60);
    let mut seen = Seen::new(play.state.size);
    seen.draw(&play.state);
    let mut frames: Vec<usize> = (0..20)
        .map(|round| {
            for name in &names {
                play.says(name, [" and", " then", " goes", " on"][round % 4]);
            }
            seen.draw(&play.state).len()
        })
        .collect();
    frames.sort_unstable();
    let (middle, most) = (frames[10], frames[19]);
    println!("{middle} bytes, at most {most}");
    assert!(middle <= BYTES_MAX, "{frames:?}");
    assert!(most <= 2 * BYTES_MAX, "{frames:?}");
}

#[test]
fn a_frame_in_which_nothing_changed_is_none() {
    let (play, _) = twenty(200, 60);
    let mut seen = Seen::new(play.state.size);
    seen.draw(&play.state);
    let written = seen.draw(&play.state);
    // The cursor's place is told with each frame, and that it is seen.
    assert!(written.len() <= 32, "{}", String::from_utf8_lossy(&written).escape_debug());
}
