//! Links that come and go while the coordinator's own tools write, edit and read: 100,000 times
//! a folder and a file are exchanged for links that lead out.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};
use midturn_core::engine::ports::{Output, OutputSink, Returned, ToolCall, Toolbox, Workplace as _};
use midturn_core::rules::conversation::ToolUse;
use midturn_core::rules::id::{AgentName, CallId, SessionId};
use midturn_tools::workplace::{AgentPlace, GitWorkplace, Isolation};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::canary::contains;
use crate::snapshot::{Look, Snapshot};

/// How often both are exchanged.
const FLIPS: u32 = 100_000;

/// What nobody inside may read.
const SECRET: &str = "canary-of-the-links";

struct Silent;

impl OutputSink for Silent {
    fn write(&self, _: &str) {}

    fn tell(&self, _: &str) {}
}

/// Lays out `inside/folder` and `inside/file`, and beside them links of the same form.
fn lay(inside: &Path, outside: &Path) -> Result<()> {
    for folder in [inside.join("folder/deep"), outside.join("deep")] {
        fs::create_dir_all(folder)?;
    }
    for file in ["folder/file", "folder/deep/file", "file"] {
        fs::write(inside.join(file), "one\n")?;
    }
    for file in ["file", "deep/file"] {
        fs::write(outside.join(file), format!("one\n{SECRET}\n"))?;
    }
    symlink(outside, inside.join("folder.other"))?;
    symlink(outside.join("file"), inside.join("file.other"))?;
    Ok(())
}

/// Exchanges the real ones for the links and back.
fn flip(inside: &Path, over: &AtomicBool) {
    let pairs = ["folder", "file"].map(|name| (inside.join(name), inside.join(format!("{name}.other"))));
    for _ in 0..FLIPS {
        for (one, other) in &pairs {
            // A tool may have put a file of its own in a link's place meanwhile.
            let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
        }
    }
    over.store(true, Ordering::Release);
}

async fn call(toolbox: &Arc<dyn Toolbox>, name: &str, input: Value) -> Output {
    let call = ToolUse { id: CallId::new("c"), name: name.into(), input };
    let tool = toolbox.find(&call).unwrap();
    let call = ToolCall {
        agent: AgentName::new("lead").unwrap(),
        agent_index: 0,
        run: 1,
        call,
        index: 0,
        cancel: CancellationToken::new(),
        output: Arc::new(Silent),
    };
    match tool.call(call).await {
        Returned::Done(output) => output,
        Returned::Continues(_) => unreachable!("no work tool goes on in the background"),
    }
}

/// The paths through what is exchanged.
const PATHS: [&str; 5] = ["folder/file", "folder/deep/file", "folder/new", "file", "folder/deep/new"];

pub(crate) async fn flipped() -> Result<()> {
    let ground = tempfile::tempdir()?;
    let (inside, outside): (PathBuf, PathBuf) = (ground.path().join("inside"), ground.path().join("outside"));
    lay(&inside, &outside)?;
    let place = |_: &AgentName| AgentPlace::new(Isolation::None);
    let workplace = GitWorkplace::new(&inside, ground.path().join("state"), &SessionId::new("s"), place);
    let toolbox = workplace.open(&AgentName::new("lead").unwrap()).await?;
    let before = Snapshot::of(std::slice::from_ref(&outside), &|_| Look::Closely);
    let over = Arc::new(AtomicBool::new(false));
    let flipping = tokio::task::spawn_blocking({
        let (inside, over) = (inside.clone(), over.clone());
        move || flip(&inside, &over)
    });
    let (mut done, mut refused) = (0_u32, 0_u32);
    while !over.load(Ordering::Acquire) {
        for path in PATHS {
            let outputs = [
                call(&toolbox, "write", json!({"path": path, "content": "one\nhostile\n"})).await,
                call(&toolbox, "edit", json!({"path": path, "old": "one", "new": "one more"})).await,
                call(&toolbox, "read", json!({"path": path})).await,
                call(&toolbox, "grep", json!({"path": "folder", "pattern": "canary"})).await,
            ];
            for output in outputs {
                if output.is_error {
                    refused += 1
                } else {
                    done += 1
                }
                ensure!(!contains(output.text.as_bytes(), SECRET.as_bytes()), "{path}: {}", output.text);
            }
        }
    }
    flipping.await?;
    println!("{done} calls did what they were asked, {refused} were refused");
    let changed = before.differences(&Snapshot::of(&[outside], &|_| Look::Closely));
    ensure!(changed.is_empty(), "outside: {changed:?}");
    ensure!(done > 50 && refused > 50, "the links were not met: {done} calls done, {refused} refused");
    Ok(())
}
