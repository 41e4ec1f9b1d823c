//! What several things in one instant come to. These scenarios stand here and not with the others,
//! since an export has no way to say them: what a resume that started nothing had changed, and the
//! limits of a session.

use std::path::Path;

use midturn_scenario::check_text;

#[test]
fn what_comes_in_one_instant_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instants");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|ext| ext == "yaml")).collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let failures = check_text("instant", &std::fs::read_to_string(&file).unwrap()).unwrap();
        let told: Vec<String> = failures.iter().map(|failure| failure.to_string()).collect();
        assert!(told.is_empty(), "{}:\n{}", file.display(), told.join("\n"));
    }
}
