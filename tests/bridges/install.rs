//! `midturn hooks` in a home of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A home with a project in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path("project/.git")).unwrap();
        fs::create_dir(home.path(".claude")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn hooks(&self, args: &[&str]) -> Output {
        let mut command = Command::new(midturn_tests::binary());
        command.env_clear().env("HOME", self.0.path()).env("PATH", "/usr/bin:/bin");
        command.current_dir(self.path("project")).arg("hooks").args(args).output().unwrap()
    }

    /// What was said on the output, if it ended well.
    fn done(&self, args: &[&str]) -> String {
        let output = self.hooks(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn status(&self) -> (bool, Vec<(String, String, String)>) {
        let said: Value = serde_json::from_slice(&self.hooks(&["status", "--json"]).stdout).unwrap();
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let lines = said["lines"].as_array().unwrap().iter();
        let lines =
            lines.map(|line| (text(line, "about"), text(line, "state"), text(line, "found"))).collect();
        (said["ok"] == true, lines)
    }

    fn state_of(&self, about: &str) -> String {
        let (_, lines) = self.status();
        let line = lines.iter().find(|line| line.0 == about);
        line.map(|line| line.1.clone()).unwrap_or_default()
    }
}

#[test]
fn what_an_install_did_an_uninstall_undoes_byte_for_byte() {
    let home = Home::new();
    let settings = home.path(".claude/settings.json");
    let text = "{\r\n\t\"model\" : \"opus\",\r\n\t\"hooks\": {\"Stop\": []}\r\n}";
    fs::write(&settings, text).unwrap();
    assert!(home.done(&["install"]).contains("the hooks are in"));
    let installed = fs::read_to_string(&settings).unwrap();
    let exec = home.path(".local/state/midturn/bin/midturn-exec");
    assert!(installed.contains(exec.to_str().unwrap()) && exec.is_file(), "{installed}");
    assert!(home.done(&["install"]).contains("there already"));
    assert_eq!(fs::read_to_string(&settings).unwrap(), installed);
    assert!(home.done(&["uninstall"]).contains("byte for byte"));
    assert_eq!(fs::read_to_string(&settings).unwrap(), text);
    assert!(home.done(&["uninstall"]).contains("nothing of Midturn's"));
}

#[test]
fn a_projects_install_says_whose_code_it_is_and_sets_no_prefix() {
    let home = Home::new();
    let told = home.done(&["install", "--project"]);
    assert!(told.contains("runs what stands in it") && told.contains("no prefix is set"), "{told}");
    let settings = home.path("project/.claude/settings.json");
    assert!(!fs::read_to_string(&settings).unwrap().contains("PREFIX"));
    assert!(home.status().0);
    home.done(&["uninstall", "--project"]);
    assert!(!settings.exists() && !home.path("project/.claude").exists());
}

/// > A1: Settings that are a link, the repository's too, are refused, and nothing is written where they lead
#[test]
fn a_link_is_refused() {
    let home = Home::new();
    fs::create_dir(home.path("project/.claude")).unwrap();
    symlink(home.path("real.json"), home.path("project/.claude/settings.json")).unwrap();
    fs::write(home.path("real.json"), "{}").unwrap();
    symlink(home.path("real.json"), home.path(".claude/settings.json")).unwrap();
    let all: [&[&str]; 4] =
        [&["install"], &["uninstall"], &["install", "--project"], &["uninstall", "--project"]];
    for args in all {
        let output = home.hooks(args);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains("is a symbolic link"), "{told}");
    }
    assert_eq!(fs::read_to_string(home.path("real.json")).unwrap(), "{}");
}

/// > A1: Hooks that it plants as if they were ours, a prefix of its own and a switch are shown by `hooks status`; none is taken for ours
#[test]
fn the_status_says_what_is_in_the_way() {
    let home = Home::new();
    assert!(!home.status().0);
    assert_eq!(home.state_of("hooks"), "missing");
    home.done(&["install"]);
    assert!(home.status().0, "{:?}", home.status());
    assert_eq!((home.state_of("hooks"), home.state_of("prefix")), ("ok".into(), "ok".into()));
    fs::create_dir(home.path("project/.claude")).unwrap();
    let of_project = home.path("project/.claude/settings.json");
    fs::write(&of_project, "{\"disableAllHooks\": true}").unwrap();
    assert_eq!((home.status().0, home.state_of("switch")), (false, "missing".into()));
    let hook = "{\"type\": \"command\", \"command\": \"./midturn\", \"args\": [\"hook\"]}";
    fs::write(&of_project, format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{hook}]}}]}}}}")).unwrap();
    let (works, lines) = home.status();
    assert!(
        works && lines.iter().any(|line| line.2.contains("a repository's file runs ./midturn as a hook"))
    );
    fs::write(&of_project, "{\"env\": {\"CLAUDE_CODE_SHELL_PREFIX\": \"./midturn-exec\"}}").unwrap();
    let (_, lines) = home.status();
    let is_told = |line: &(String, String, String)| {
        line.0 == "prefix" && line.1 != "ok" && line.2.starts_with("./midturn-exec by ")
    };
    assert!(lines.iter().any(is_told), "{lines:?}");
    fs::remove_file(&of_project).unwrap();
    fs::remove_file(home.path(".local/state/midturn/bin/midturn-exec")).unwrap();
    assert_eq!((home.status().0, home.state_of("prefix")), (false, "missing".into()));
}

#[test]
fn a_plugin_is_written_into_a_new_folder_only() {
    let home = Home::new();
    home.done(&["plugin", "../plugin"]);
    home.done(&["plugin", "../plugin"]);
    assert!(home.path("plugin/.claude-plugin/plugin.json").is_file());
    assert_eq!(home.hooks(&["plugin", "."]).status.code(), Some(2));
}
