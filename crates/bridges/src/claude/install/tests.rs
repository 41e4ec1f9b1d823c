//! What an install and an uninstall promise, by table and by property.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// A home with settings in it.
struct Home {
    folder: tempfile::TempDir,
    settings: Settings,
}

impl Home {
    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".claude/settings.json");
        Self { settings: Settings { path, state: folder.path().join("state") }, folder }
    }

    fn with(text: &str) -> Self {
        let home = Self::empty();
        fs::create_dir(home.claude()).unwrap();
        home.write(text);
        home
    }

    fn claude(&self) -> PathBuf {
        self.folder.path().join(".claude")
    }

    fn write(&self, text: &str) {
        fs::write(&self.settings.path, text).unwrap();
    }

    fn text(&self) -> Option<String> {
        fs::read_to_string(&self.settings.path).ok()
    }

    /// A program of this name, of its own bytes.
    fn program(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, name).unwrap();
        path
    }

    fn install(&self, name: &str, with_prefix: bool) -> Result<Done, Trouble> {
        let program = self.program(name);
        self.settings.install(&Install { program, with_prefix, version: "0".to_owned() })
    }
}

const SETTINGS: [&str; 12] = [
    "{}",
    "{}\n",
    "{\n}\n",
    "{\"model\":\"x\"}",
    "{\n  \"model\": \"x\"\n}\n",
    "\u{feff}{\r\n\t\"permissions\": {\"allow\": [\"Bash(ls)\"]},\r\n\t\"env\": {\"A\": \"1\"}\r\n}",
    "{\n    \"hooks\": {\n        \"Stop\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}\n        ]\n    },\n    \"z\": 1e400\n}\n",
    "{\"hooks\":{\"Stop\":[],\"PreToolUse\":[{\"matcher\":\"*\",\"hooks\":[]}]},\"env\":{}}",
    "{\n  \"env\": {\n    \"B\": \"\\ud83d\\ude00\"\n  },\n  \"hooks\": {}\n}",
    "{\n  // mine\n  \"a\": [1, 2,],\n  \"hooks\": {\n    /* none */\n  },\n}\n",
    "  { \"a\" : 1 , \"hooks\" : { \"Other\" : [ ] } }  \n\n",
    "{\n  \"env\": { \"CLAUDE_CODE_SHELL_PREFIX\": \"/usr/bin/nice\" }\n}",
];

fn commands(text: &str) -> Vec<String> {
    edit::alike(&Text::of(text.to_owned()).unwrap()).into_iter().map(|(_, hook)| hook.command).collect()
}

#[test]
fn install_and_uninstall_give_every_byte_back() {
    for text in SETTINGS {
        let home = Home::with(text);
        assert!(home.install("midturn", true).unwrap().is_changed, "{text}");
        let installed = home.text().unwrap();
        assert_eq!(commands(&installed).len(), 10, "{installed}");
        assert!(!home.install("midturn", true).unwrap().is_changed, "{installed}");
        assert_eq!(home.text().unwrap(), installed);
        assert!(home.install("midturn-2", false).unwrap().is_changed);
        assert_eq!(commands(&home.text().unwrap()).len(), 10, "{text}");
        assert_eq!(home.settings.uninstall().unwrap(), Undone::Restored);
        assert_eq!(home.text().unwrap(), text);
        assert_eq!(home.settings.uninstall().unwrap(), Undone::Nothing);
    }
}

#[test]
fn what_an_install_made_an_uninstall_removes() {
    let home = Home::empty();
    let done = home.install("midturn", true).unwrap();
    let exec = home.folder.path().join("state/bin/midturn-exec");
    assert_eq!((done.backup, done.prefix), (None, PrefixDone::Ours(exec.clone())));
    assert_eq!(fs::read_to_string(exec).unwrap(), "midturn");
    assert_eq!(fs::metadata(&home.settings.path).unwrap().permissions().mode() & 0o777, 0o600);
    let value: Value = serde_json::from_str(&home.text().unwrap()).unwrap();
    assert_eq!(value["hooks"]["Stop"][0]["hooks"][1]["asyncRewake"], true);
    assert_eq!(home.settings.uninstall().unwrap(), Undone::Removed);
    assert!(!home.claude().exists());
    home.install("midturn", true).unwrap();
    fs::write(home.claude().join("mine"), "").unwrap();
    assert_eq!(home.settings.uninstall().unwrap(), Undone::Removed);
    assert!(home.claude().join("mine").exists());
}

#[test]
fn an_edit_since_the_install_stays_and_only_ours_goes() {
    for (base, from, to, left) in [
        ("{}", "{\n", "{\n  \"a\": 1,\n", "{\n  \"a\": 1\n}"),
        ("{\n  \"a\": 1\n}\n", "\"a\": 1", "\"a\": [ 2 ]", "{\n  \"a\": [ 2 ]\n}\n"),
        ("{\"a\":1}", "{", "{// x\n", "{// x\n\"a\":1}"),
        ("{\"a\":1}", "\"timeout\":5", "\"timeout\":6", "{\"a\":1}"),
        (
            "{\"hooks\":{\"Stop\":[]}}",
            "{\"Stop\":",
            "{\"O\":[],\"Stop\":",
            "{\"hooks\":{\"O\":[],\"Stop\":[]}}",
        ),
        ("{\"hooks\":{}, \"b\":2}", ", \"b\"", ",  \"b\"", "{\"hooks\":{},  \"b\":2}"),
    ] {
        let home = Home::with(base);
        home.install("midturn", true).unwrap();
        let installed = home.text().unwrap();
        assert!(installed.contains(from), "{from} in {installed}");
        home.write(&installed.replacen(from, to, 1));
        // An install in between takes the edited text for what there was before.
        home.install("midturn-2", true).unwrap();
        home.write(&home.text().unwrap().replacen("midturn-2", "midturn-3", 1));
        assert_eq!(home.settings.uninstall().unwrap(), Undone::TakenOut);
        assert_eq!(home.text().unwrap(), left, "{base}");
    }
}

#[test]
fn without_what_was_remembered_ours_is_known_by_itself() {
    let home = Home::with("{\n  \"a\": 1\n}\n");
    home.install("midturn", true).unwrap();
    fs::remove_dir_all(home.folder.path().join("state")).unwrap();
    assert_eq!(home.settings.uninstall().unwrap(), Undone::TakenOut);
    assert_eq!(home.text().unwrap(), "{\n  \"a\": 1\n}\n");
}

#[test]
fn a_prefix_that_is_there_stays() {
    let home = Home::with(SETTINGS[11]);
    assert_eq!(home.install("midturn", true).unwrap().prefix, PrefixDone::Other("/usr/bin/nice".into()));
    assert!(home.text().unwrap().contains("/usr/bin/nice") && commands(&home.text().unwrap()).len() == 10);
    let mut home = Home::with("{}");
    home.settings.state = home.folder.path().join("my state");
    assert!(matches!(home.install("midturn", true).unwrap().prefix, PrefixDone::Path(_)));
    assert!(!home.text().unwrap().contains("PREFIX"));
}

#[test]
fn what_is_not_plain_settings_is_refused_and_left() {
    let pad = format!("{{\"a\":\"{}\"}}", " ".repeat(4 << 20));
    for (text, why) in [
        ("", "this is no JSON"),
        ("{", "this is no JSON"),
        ("[]", "something else than a JSON object"),
        ("{\"hooks\":[]}", "`hooks` is not an object"),
        ("{\"hooks\":{\"Stop\":{}}}", "`hooks.Stop` is not a list"),
        ("{\"hooks\":{\"Stop\":[1]}}", "`hooks.Stop[0]` is not an object"),
        ("{\"hooks\":{\"Stop\":[{\"hooks\":1}]}}", "`hooks.Stop[0]` is not an object with a list `hooks`"),
        ("{\"hooks\":{},\"hooks\":{}}", "`hooks` stands there twice"),
        ("{\"env\":1}", "`env` is not an object"),
        ("{\"env\":{\"CLAUDE_CODE_SHELL_PREFIX\":1}}", "is not a text"),
        (&pad, "more than 4 MiB"),
    ] {
        let home = Home::with(text);
        let refused = home.install("midturn", true).unwrap_err().to_string();
        assert!(refused.contains(why) && refused.contains("nothing was changed"), "{text:.40}: {refused}");
        assert_eq!(home.text().unwrap(), text);
        assert!(!home.folder.path().join("state/hooks").exists());
    }
    let home = Home::with("{}");
    fs::write(&home.settings.path, b"{\"a\":\"\xff\"}").unwrap();
    assert!(home.install("midturn", true).unwrap_err().to_string().contains("not UTF-8"));
}

#[test]
fn links_and_odd_files_are_refused() {
    let refused = |home: &Home| {
        let told = [home.install("midturn", true).map(drop), home.settings.uninstall().map(drop)];
        told.map(|done| done.unwrap_err().to_string())
    };
    let home = Home::with("{}");
    let real = home.folder.path().join("real.json");
    fs::rename(&home.settings.path, &real).unwrap();
    symlink(&real, &home.settings.path).unwrap();
    assert!(refused(&home).iter().all(|told| told.contains("symbolic link")));
    assert_eq!(fs::read_to_string(&real).unwrap(), "{}");
    let home = Home::with("{}");
    fs::rename(home.claude(), home.folder.path().join("dotfiles")).unwrap();
    symlink(home.folder.path().join("dotfiles"), home.claude()).unwrap();
    assert!(refused(&home).iter().all(|told| told.contains("symbolic link")));
    let home = Home::empty();
    fs::create_dir_all(&home.settings.path).unwrap();
    assert!(refused(&home).iter().all(|told| told.contains("is no file")));
    let home = Home::empty();
    fs::write(home.claude(), "").unwrap();
    assert!(refused(&home).iter().all(|told| told.contains("is no folder")));
}

#[test]
fn the_mode_of_settings_stays() {
    let home = Home::with("{}");
    fs::set_permissions(&home.settings.path, fs::Permissions::from_mode(0o644)).unwrap();
    let mode = || fs::metadata(&home.settings.path).unwrap().permissions().mode() & 0o777;
    home.install("midturn", true).unwrap();
    assert_eq!(mode(), 0o644);
    home.settings.uninstall().unwrap();
    assert_eq!(mode(), 0o644);
}

#[test]
fn a_plugin_is_written_over_ours_only() {
    let home = Home::empty();
    let folder = home.folder.path().join("plugin");
    write_plugin(&folder, "/x/midturn", "1").unwrap();
    write_plugin(&folder, "/y/midturn", "2").unwrap();
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let hooks: Value = serde_json::from_str(&read("hooks/hooks.json")).unwrap();
    assert_eq!(hooks["hooks"]["Stop"][0]["hooks"][1]["command"], "/y/midturn");
    assert_eq!(hooks["hooks"].as_object().unwrap().len(), 8);
    assert!(read("skills/midturn/SKILL.md").starts_with("---\nname: midturn\n"));
    fs::write(folder.join(".claude-plugin/plugin.json"), "{\"name\":\"other\"}").unwrap();
    assert!(write_plugin(&folder, "/z/midturn", "3").unwrap_err().to_string().contains("is not empty"));
}

/// What somebody does to settings.
#[derive(Debug, Clone)]
enum Act {
    Install(usize, bool),
    /// A member of their own: at the root, of `env`, an event's list.
    Add(usize, u8),
    Take(usize),
    /// An editor writes it all anew.
    Format(usize),
    /// One of ours is taken out by hand.
    Tear(usize),
    Uninstall,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..4_usize, any::<bool>()).prop_map(|(name, prefix)| Act::Install(name, prefix)),
        4 => (0..8_usize, any::<u8>()).prop_map(|(place, n)| Act::Add(place, n)),
        2 => (0..20_usize).prop_map(Act::Take),
        1 => (0..3_usize).prop_map(Act::Format),
        1 => (0..9_usize).prop_map(Act::Tear),
        1 => Just(Act::Uninstall),
    ]
}

/// `mt` is known only by what an install remembers.
const PROGRAMS: [&str; 4] = ["midturn", "midturn-2", "midturn-0.9", "mt"];

/// Adds something of somebody's, or takes the nth of it away.
fn edited(value: &mut Value, act: &Act) {
    let Value::Object(root) = value else { return };
    match act {
        Act::Add(place, n) => {
            let new = serde_json::json!({"hooks": [{"type": "command", "command": format!("/theirs-{n}")}]});
            let object = || Value::Object(serde_json::Map::new());
            if *place < 2 {
                root.insert(format!("theirs-{n}"), n.to_string().into());
            } else if *place < 4 {
                let env = root.entry("env").or_insert_with(object).as_object_mut().unwrap();
                env.insert(format!("THEIRS_{n}"), n.to_string().into());
            } else {
                let event = ["Stop", "PreToolUse", "Setup", "SessionEnd"][place - 4];
                let hooks = root.entry("hooks").or_insert_with(object).as_object_mut().unwrap();
                let groups = hooks.entry(event).or_insert_with(|| Value::Array(Vec::new()));
                let groups = groups.as_array_mut().unwrap();
                // Before or behind all, for ours may stand in between.
                groups.insert(if n % 2 == 0 { 0 } else { groups.len() }, new);
            }
        }
        Act::Take(nth) => take(root, *nth),
        _ => {}
    }
}

fn take(root: &mut serde_json::Map<String, Value>, nth: usize) {
    root.remove(&format!("theirs-{nth}"));
    if let Some(env) = root.get_mut("env").and_then(Value::as_object_mut) {
        env.remove(&format!("THEIRS_{nth}"));
    }
    for groups in
        root.get_mut("hooks").and_then(Value::as_object_mut).into_iter().flat_map(|hooks| hooks.values_mut())
    {
        let name = format!("/theirs-{nth}");
        groups.as_array_mut().unwrap().retain(|group| group["hooks"][0]["command"] != name.as_str());
    }
}

fn formatted(value: &Value, how: usize) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap();
    match how {
        0 => value.to_string(),
        1 => pretty + "\n",
        _ => pretty.replace('\n', "\r\n"),
    }
}

/// The settings without empty lists and objects, of which nobody can say whose they are.
fn meant(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(key, value)| (key.clone(), meant(value)));
            Value::Object(kept.filter(|(_, value)| !is_hollow(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(meant).collect()),
        other => other.clone(),
    }
}

fn is_hollow(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn tear(value: &mut Value, nth: usize) {
    let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) else { return };
    let mut lists = hooks.values_mut().filter_map(Value::as_array_mut);
    if let Some(groups) = lists.nth(nth) {
        groups.retain(|group| group["hooks"][0]["args"][0] != "hook");
    }
}

fn value(home: &Home) -> Value {
    home.text().map_or_else(
        || serde_json::json!({}),
        |text| serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_uninstall_leaves_nothing_of_ours_and_all_of_theirs(
        start in prop::option::of(0..9_usize),
        acts in prop::collection::vec(act(), 0..14),
    ) {
        // A number that doesn't fit is text to us, and to the model here an error.
        let sound = |text: &str| text.replace("1e400", "1");
        let home = start.map_or_else(Home::empty, |nth| Home::with(&sound(SETTINGS[nth])));
        fs::create_dir_all(home.claude()).unwrap();
        let mut theirs = value(&home);
        let mut untouched = true;
        for act in &acts {
            match act {
                Act::Install(name, prefix) => { home.install(PROGRAMS[*name], *prefix).unwrap(); }
                Act::Uninstall => { home.settings.uninstall().unwrap(); }
                Act::Add(..) | Act::Take(_) | Act::Format(_) | Act::Tear(_) => {
                    untouched = false;
                    let mut now = value(&home);
                    edited(&mut now, act);
                    edited(&mut theirs, act);
                    let how = if let Act::Format(how) = act { *how } else { 1 };
                    if let Act::Tear(nth) = act { tear(&mut now, *nth) }
                    home.write(&formatted(&now, how));
                }
            }
        }
        home.settings.uninstall().unwrap();
        prop_assert_eq!(meant(&value(&home)), meant(&theirs));
        let text = home.text().unwrap_or_default();
        prop_assert!(!text.contains("midturn") && !text.contains("\"hook\""), "{}", text);
        if untouched {
            let before = start.map(|nth| sound(SETTINGS[nth]));
            prop_assert_eq!(home.text(), before);
        }
        prop_assert!(left_in(&home.folder.path().join("state/hooks")).is_empty());
        prop_assert!(left_in(&home.claude()).iter().all(|name| name == "settings.json"));
    }

    #[test]
    fn an_edit_of_text_beside_ours_keeps_its_bytes(nth in 3..11_usize, blanks in "[ \t]{0,3}", more in "[a-z]{1,5}") {
        // At the front, where nothing of ours stands.
        let base = SETTINGS[nth];
        let edit = |text: &str| text.replacen('{', &format!("{{{blanks}\"{more}\":[1 ,2],"), 1);
        if Text::of(edit(base)).is_err() { return Ok(()); }
        let home = Home::with(base);
        home.install("midturn", true).unwrap();
        home.write(&edit(&home.text().unwrap()));
        home.settings.uninstall().unwrap();
        prop_assert_eq!(home.text().unwrap(), edit(base));
    }
}

fn left_in(folder: &Path) -> Vec<String> {
    let inside = fs::read_dir(folder).into_iter().flatten().flatten();
    inside.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
