//! Real tools in an agent's own repository, with what they need of a person's home: in every kind of sandbox that
//! this machine has, without a network.

#![allow(clippy::unwrap_used, reason = "this is all test code")]

mod support;

use midturn_tools::sandbox::{Sandbox, TreeLimits};
use support::guarded::{Place, bash};
use support::needs::{Need, has, has_for_a_part};
use support::sandboxed::{has_a_view, sandboxes, sandboxes_with_a_view};
use support::{has_python_for_a_part, is_on_the_path};

const MANIFEST: &str = "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nmemchr = \"2\"\n[workspace]\n";

/// Makes a package of Python's that is used where it is, with nothing that would have to be installed before.
const BACKEND: &str = r#"
import os, zipfile
METADATA = "Metadata-Version: 2.1\nName: p\nVersion: 1\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: p\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
def build_editable(folder, settings=None, metadata=None):
    name = "p-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("p.pth", os.getcwd())
        wheel.writestr("p-1.dist-info/METADATA", METADATA)
        wheel.writestr("p-1.dist-info/WHEEL", WHEEL)
        wheel.writestr("p-1.dist-info/RECORD", "")
    return name
"#;

/// In a subagent's repository and in the project folder.
async fn works(sandbox: &Sandbox, place: &Place, command: &str, says: &str) {
    let workplace = place.workplace(sandbox);
    for agent in ["w", "lead"] {
        let output = bash(&workplace, agent, command).await;
        let claim = format!("{}: {agent}: {command}: {}", sandbox.in_force(), output.text);
        assert!(!output.is_error && output.text.contains(says), "{claim}");
    }
}

#[tokio::test]
async fn cargo_builds_from_the_persons_cache() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let place = Place::new();
        place.project.write("Cargo.toml", MANIFEST);
        place
            .project
            .write("src/main.rs", "fn main() { println!(\"{:?}\", memchr::memchr(b'b', b\"ab\")) }\n");
        place.project.commit();
        works(&sandbox, &place, "cargo run --offline -q && git status --short", "Some(1)").await;
    }
}

#[tokio::test]
async fn python_makes_an_environment_and_npm_runs_a_script() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let place = Place::new();
        if has_python_for_a_part() {
            // With `pip`, which takes seconds, one is made for the projects below.
            let command = "python3 -m venv --without-pip e && \
                e/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'";
            works(&sandbox, &place, command, "True").await;
        }
        if has_for_a_part(Need::Node, is_on_the_path("npm")) {
            let command = "mkdir n && cd n && npm init -y >/dev/null && npm pkg set scripts.say='echo said' && npm install --offline && npm run -s say";
            works(&sandbox, &place, command, "said").await;
        }
    }
}

/// Projects as they are: what their authors type to test them, without a network.
#[tokio::test]
async fn projects_are_tested_as_they_are() {
    let manifest = "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let lock = r#"{"name":"p","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"p","version":"1.0.0"}}}"#;
    let files = [
        ("rs/Cargo.toml", manifest),
        (
            "rs/src/lib.rs",
            "#[test]\nfn it_holds() {\n    std::fs::write(std::env::temp_dir().join(\"t\"), \"x\").unwrap();\n}\n",
        ),
        ("js/package.json", r#"{"name":"p","version":"1.0.0","scripts":{"test":"node --test"}}"#),
        ("js/package-lock.json", lock),
        (
            "js/it.test.js",
            "require('node:test')('it listens', (t, done) => require('net').createServer().listen(0, '127.0.0.1', function () { this.close(done); }));\n",
        ),
        (
            "py/pyproject.toml",
            "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n",
        ),
        ("py/backend.py", BACKEND),
        ("py/p.py", "HOLDS = True\n"),
        (
            "py/test_p.py",
            "import unittest, p\nclass It(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(p.HOLDS)\n",
        ),
        ("c/Makefile", "test: it\n\t./it\nit: it.c\n\tcc -o it it.c\n"),
        ("c/it.c", "#include <stdio.h>\nint main(void) { puts(\"it holds\"); return 0; }\n"),
    ];
    let python = "python3 -m venv e && . e/bin/activate && cd py && pip install -q -e . && cd / && \
        python3 -m unittest discover -s \"$OLDPWD\" 2>&1";
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let place = Place::new();
        for (path, text) in files {
            let path = place.project.folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        place.project.commit();
        works(&sandbox, &place, "cd rs && cargo test -q 2>&1", "1 passed").await;
        works(&sandbox, &place, "cd c && make test", "it holds").await;
        // A test that listens needs a loopback, which Landlock alone can't give.
        if has_a_view(&sandbox) && has_for_a_part(Need::Node, is_on_the_path("npm")) {
            works(&sandbox, &place, "cd js && npm ci --offline --no-audit && npm test", "pass 1").await;
        }
        if has_python_for_a_part() {
            works(&sandbox, &place, python, "OK").await;
        }
    }
}

#[tokio::test]
async fn go_tests_a_project_as_it_is() {
    if !has(Need::Go, is_on_the_path("go")) {
        return;
    }
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let place = Place::new();
        place.project.write("go.mod", "module example.org/p\ngo 1.19\n");
        place.project.write("it.go", "package p\nfunc Twice(x int) int { return 2 * x }\n");
        let test = "package p\nimport \"testing\"\nfunc TestIt(t *testing.T) {\n\tif Twice(2) != 4 {\n\t\tt.Fatal()\n\t}\n}\n";
        place.project.write("it_test.go", test);
        place.project.commit();
        works(&sandbox, &place, "go vet && go test && git status --short", "ok").await;
    }
}

#[tokio::test]
async fn git_knows_who_the_person_is_and_nothing_else_of_them() {
    for sandbox in sandboxes(false, TreeLimits::default()).await {
        let place = Place::new();
        let command = "git config --global --list --name-only; ls -A ~ | grep -v -x -e .cargo -e .rustup -e .pyenv \
            -e .gitconfig -e .npm -e .cache -e .local -e .nvm -e go; git init -q x && cd x && touch f && git add f && \
            git -c user.name=A -c user.email=a@example.org commit -q -m m && touch ~/mine && git log --format=%an";
        works(&sandbox, &place, command, "A").await;
    }
}

/// It was 58 when all of the system was bound, on a machine with 20 mounts.
#[tokio::test]
async fn a_view_is_made_of_fewer_mounts_than_the_whole_system() {
    for sandbox in sandboxes_with_a_view().await {
        let place = Place::new();
        let output = bash(&place.workplace(&sandbox), "w", "wc -l < /proc/self/mountinfo").await;
        println!("{}: {} mounts", sandbox.in_force(), output.text.trim());
        let count: u32 = output.text.trim().parse().unwrap();
        assert!(count < 58, "{}: {count}", sandbox.in_force());
    }
}
