//! tmp
use midturn_core::rules::time::Span;
use midturn_scenario::export::scenario as export;
pub(crate) fn show(path: &str, takes: &[u64]) {
    let (_, scenario) = crate::recorded::simulated().into_iter().find(|(p, _)| p.to_string_lossy().contains(path)).unwrap();
    let session = crate::recorded::played_slowly(&scenario, takes.iter().copied().map(Span).collect());
    println!("=== {path}");
    for e in &session.events { println!("{}", serde_json::to_string(e).unwrap().chars().take(260).collect::<String>()); }
    let text = export(&session.journal, &session.events).unwrap();
    println!("{text}");
    for f in midturn_scenario::check_text("export", &text).unwrap() { println!("{f}"); }
}
