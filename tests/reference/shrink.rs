//! Makes a scenario that shows a difference smaller, as long as it still shows one.

use super::model::*;

/// Tries to leave parts out until nothing more can go. `fails` must be true of the scenario given.
pub fn shrink(sc: &Scenario, fails: &mut dyn FnMut(&Scenario) -> bool) -> Scenario {
    let mut best = sc.clone();
    // Each success shortens the scenario, so this ends; the bound only keeps a slow engine from taking for ever.
    let mut budget = 2_000;
    loop {
        let mut smaller = None;
        for candidate in candidates(&best) {
            if budget == 0 {
                return best;
            }
            if candidate == best || !refers_to_what_exists(&candidate) {
                continue;
            }
            budget -= 1;
            if fails(&candidate) {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(s) => best = s,
            None => return best,
        }
    }
}

/// Whether every id in `after`, `supersedes` and `withdraw` is still there.
fn refers_to_what_exists(sc: &Scenario) -> bool {
    let message = |id: &str| sc.items.iter().any(|i| i.id == id);
    let call = |id: &str| {
        let entries = sc.agents.iter().flat_map(|a| a.model.iter().flatten());
        entries.flat_map(|e| &e.tools).any(|c| c.id == id)
    };
    sc.items.iter().all(|item| {
        let when = match &item.when {
            When::At(_) => true,
            When::After { event, of, .. } if event.starts_with("tool_") => call(of),
            When::After { event, of, .. } if event.starts_with("message_") => message(of),
            When::After { .. } => true,
        };
        let act = match &item.act {
            Act::Message(m) => m.supersedes.as_deref().is_none_or(message),
            Act::Withdraw { message: id, .. } => message(id),
            _ => true,
        };
        when && act
    })
}

/// A change of a copy.
fn with(sc: &Scenario, change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut copy = sc.clone();
    change(&mut copy);
    copy
}

fn candidates(sc: &Scenario) -> Vec<Scenario> {
    let mut out = Vec::new();
    for i in 0..sc.items.len() {
        out.push(with(sc, |s| drop(s.items.remove(i))));
    }
    out.extend(without_last_agent(sc));
    for (a, agent) in sc.agents.iter().enumerate() {
        let entries = agent.model.as_deref().unwrap_or(&[]);
        for e in (0..entries.len()).rev() {
            if entries.len() > 1 {
                out.push(with_model(sc, a, |m| drop(m.remove(e))));
            }
        }
        for (e, entry) in entries.iter().enumerate() {
            for c in 0..entry.tools.len() {
                out.push(with_model(sc, a, |m| drop(m[e].tools.remove(c))));
            }
        }
        out.push(with(sc, |s| s.agents[a].settings = Settings::default()));
    }
    out.extend(plainer_settings(sc));
    for i in 0..sc.items.len() {
        out.extend(plainer_item(sc, i));
    }
    for (a, agent) in sc.agents.iter().enumerate() {
        for (e, entry) in agent.model.iter().flatten().enumerate() {
            let text = Some("ok".to_string());
            if entry.text.is_some() {
                out.push(with_model(sc, a, |m| m[e].text.clone_from(&text)));
            }
            out.push(with_model(sc, a, |m| m[e].thinking = None));
            out.push(with_model(sc, a, |m| m[e].ends_after = None));
            for c in 0..entry.tools.len() {
                out.extend(plainer_calls(sc, a, e, c));
            }
        }
    }
    out
}

fn with_model(sc: &Scenario, agent: usize, change: impl FnOnce(&mut Vec<Entry>)) -> Scenario {
    with(sc, |s| {
        if let Some(model) = s.agents[agent].model.as_mut() {
            change(model);
        }
    })
}

fn plainer_calls(sc: &Scenario, a: usize, e: usize, c: usize) -> Vec<Scenario> {
    let changes: [fn(&mut Call); 8] = [
        |c| c.output.clear(),
        |c| c.result.clear(),
        |c| c.error = None,
        |c| c.continues = None,
        |c| c.abort_takes = 0,
        |c| c.abortable = true,
        |c| c.safe = None,
        |c| c.ends_after = None,
    ];
    changes.iter().map(|change| with_model(sc, a, |m| change(&mut m[e].tools[c]))).collect()
}

fn plainer_item(sc: &Scenario, i: usize) -> Vec<Scenario> {
    let changes: [fn(&mut Message); 5] = [
        |m| m.expires_after = None,
        |m| {
            m.supersedes = None;
            m.if_queued = false;
        },
        |m| m.if_queued = false,
        |m| m.only_run = None,
        |m| {
            if let Some(line) = m.text.lines().next() {
                m.text = line.to_string();
            }
        },
    ];
    let change_one = |change: &fn(&mut Message)| {
        with(sc, |s| {
            if let Act::Message(m) = &mut s.items[i].act {
                change(m);
            }
        })
    };
    changes.iter().map(change_one).collect()
}

fn plainer_settings(sc: &Scenario) -> Vec<Scenario> {
    let changes: [fn(&mut Settings); 22] = [
        |s| s.to_lead = None,
        |s| s.from_above = None,
        |s| s.from_others = None,
        |s| s.urgent_cuts_stream = None,
        |s| s.keep_edits_together = None,
        |s| s.concurrency_all = None,
        |s| s.max_parallel_tools = None,
        |s| s.return_on_error = None,
        |s| s.mailbox_messages = None,
        |s| s.abort_deadline = None,
        |s| s.urgent_from_peers = None,
        |s| s.urgent_per_minute = None,
        |s| s.max_depth = None,
        |s| s.max_agents = None,
        |s| s.limits.turns = None,
        |s| s.limits.tokens = None,
        |s| s.limits.time = None,
        |s| s.session.turns = None,
        |s| s.session.time = None,
        |s| s.retry_attempts = None,
        |s| s.retry_base = None,
        |s| s.retry_cap = None,
    ];
    changes.iter().map(|change| with(sc, |s| change(&mut s.settings))).collect()
}

/// Without the last agent, when no one speaks of it.
fn without_last_agent(sc: &Scenario) -> Option<Scenario> {
    let last = sc.agents.len().checked_sub(1).filter(|l| *l >= 2)?;
    let name = &sc.agents[last].name;
    let in_item = sc.items.iter().any(|item| {
        let waits = matches!(&item.when, When::After { agent, .. } if *agent == last);
        let acts = match &item.act {
            Act::Message(m) => m.from == Some(last) || m.to == To::Agent(last),
            Act::Stop { agent, by, .. } | Act::Close { agent, by } => *agent == last || *by == Some(last),
            Act::Supersede { agent, .. } => *agent == last,
            Act::Resume { agent } | Act::Raise { agent, .. } => *agent == Some(last),
            Act::Withdraw { by, .. } => *by == Some(last),
            Act::Crash { .. } | Act::Shutdown { .. } => false,
        };
        waits || acts
    });
    let entries = sc.agents[..last].iter().flat_map(|a| a.model.iter().flatten());
    let in_call = entries
        .flat_map(|e| &e.tools)
        .filter_map(|c| c.input.as_ref())
        .any(|input| input.to_string().contains(&format!("\"{name}\"")));
    let entries = sc.agents.iter().flat_map(|a| a.model.iter().flatten());
    let anchored = entries
        .flat_map(|e| e.ends_after.iter().chain(e.tools.iter().flat_map(|c| &c.ends_after)))
        .any(|anchor| anchor.agent == last);
    (!in_item && !in_call && !anchored).then(|| with(sc, |s| drop(s.agents.pop())))
}

#[cfg(test)]
mod tests {
    use super::super::generate::generate;
    use super::*;

    #[test]
    fn it_keeps_only_what_the_failure_needs() {
        let sc = (0..200)
            .map(|seed| generate(3, seed))
            .find(|sc| sc.items.len() > 4 && sc.agents.len() > 2)
            .expect("a large scenario");
        let has_message = |s: &Scenario| s.items.iter().any(|i| matches!(i.act, Act::Message(_)));
        let small = shrink(&sc, &mut |s| has_message(s));
        assert_eq!(small.items.len(), 1);
        assert_eq!(small.settings, Settings::default());
        assert!(small.agents.iter().flat_map(|a| a.model.iter().flatten()).all(|e| e.tools.is_empty()));
    }
}
