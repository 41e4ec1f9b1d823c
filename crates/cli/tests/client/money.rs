//! What a session took, in tokens and in money, wherever a person looks.

use serde_json::Value;

use super::common::Place;
use super::remote::Serving;

const SCENARIO: &str = "midturn: 1
agents:
  - name: lead
    role: lead
    model: [{text: Done., usage: {input: 100000, output: 2000, cached: 50000}}]
";

/// `resume --max-cost`: one that rests at a limit in money goes on with a higher one, and only then.
#[test]
fn a_session_goes_on_with_more_money() {
    let place = Place::new();
    let call =
        "{tools: [{id: b, name: bash, input: {command: echo hi}}], usage: {input: 100000, output: 2000}}";
    place.write(
        "scenario.yaml",
        &format!(
            "midturn: 1\nagents:\n  - name: lead\n    role: lead\n    model: [{call}, {{text: Done.}}]\n"
        ),
    );
    place.write("config/midturn/midturn.toml", "[models.scripted]\ninput = 3\noutput = 15\n");
    let said = |words: &[&str]| {
        let said = place.midturn("repo", words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (said.status.code(), text(said.stdout), text(said.stderr))
    };
    let run = ["run", "the task", "--once", "--model", "scripted:../scenario.yaml", "--max-cost", "0.2"];
    let (status, _, told) = said(&run);
    assert_eq!((status, told.contains("max_cost")), (Some(4), true), "{told}");
    // It has cost $0.33.
    for cost in ["0.1", "0.25"] {
        let (status, _, told) = said(&["resume", "last", "--once", "--max-cost", cost]);
        assert_eq!((status, told.contains("max_cost")), (Some(4), true), "{cost}: {told}");
    }
    let (status, out, told) = said(&["resume", "last", "--once", "--max-cost", "1"]);
    assert_eq!((status, &*out), (Some(0), "Done.\n"), "{told}");
}

/// > D11: Tokens and money stand at a run's end, in `ps`, in `sessions` and in `stats`
#[test]
fn what_was_used_is_told_everywhere() {
    let place = Place::new();
    place.write("scenario.yaml", SCENARIO);
    place.write("config/midturn/midturn.toml", "[models.scripted]\ninput = 3\noutput = 15\ncached = 0.3\n");
    let said = |words: &[&str]| {
        let said = place.midturn("repo", words).output().unwrap();
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
        (String::from_utf8(said.stdout).unwrap(), String::from_utf8(said.stderr).unwrap())
    };
    let run = ["run", "the task", "--once", "--model", "scripted:../scenario.yaml"];
    let used = "used: 100000 tokens read (50000 of them cached), 2000 written, $0.195\n";
    let (_, told) = said(&run);
    assert_eq!(told.matches(used).count(), 1, "{told}");
    let serving = Serving::start(&place);
    let (_, told) = said(&run);
    assert_eq!(told.matches(used).count(), 1, "in another process, too: {told}");
    for (words, cells) in [(&["ps"][..], ["102.0k", "$0.195"]), (&["stats"], ["102000", "0.195"])] {
        let (out, _) = said(words);
        assert!(cells.iter().all(|cell| out.contains(cell)), "{words:?}: {out}");
    }
    drop(serving);
    let (out, _) = said(&["sessions"]);
    assert_eq!((out.matches("102.0k").count(), out.matches("$0.195").count()), (2, 2), "{out}");
    let (out, _) = said(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_str(&out).unwrap();
    let spent = serde_json::json!({"tokens": 102_000, "usage": {"input": 100_000, "output": 2_000, "cached": 50_000}, "cost": "0.195"});
    assert_eq!(sessions["sessions"][0]["spent"], spent, "{out}");
}
