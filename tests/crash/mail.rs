//! What a person has sent, what was answered to it, and where its receipts stood whenever
//! somebody looked.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::Answer;
use crate::breach::Breaches;
use crate::breach::Promise::{NothingDoubled, StaysUp, TrueReceipts};

/// A message of a person's.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) id: String,
    /// An agent, or `all`.
    pub(crate) to: String,
    /// Below the receiver: `messages`, or `supersede`.
    pub(crate) route: &'static str,
    pub(crate) body: Value,
    /// In its text and in no other.
    pub(crate) token: String,
    /// When it was sent first, and when it was first said to be accepted.
    pub(crate) sent: u64,
    pub(crate) accepted: Option<u64>,
    /// It was refused, and never accepted, as far as was answered.
    pub(crate) refused: Option<String>,
    /// How often it was sent and no answer came, or none was waited for.
    pub(crate) unanswered: u32,
    pub(crate) withdrawal: Withdrawal,
    /// Somebody may have taken its place.
    pub(crate) may_be_replaced: bool,
}

/// What became of the wish to have a message back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    Never,
    /// Nobody knows.
    Asked,
    Returned,
}

impl Letter {
    /// Whether nobody knows if it was accepted.
    pub(crate) fn is_open(&self) -> bool {
        self.accepted.is_none() && self.refused.is_none()
    }

    /// Why it may have come back.
    pub(crate) fn may_return(&self, reason: &str, receiver_is_closed: bool) -> bool {
        match reason {
            "withdrawn" => self.withdrawal != Withdrawal::Never,
            "superseded" => self.may_be_replaced,
            "expired" => ["expires_after", "only_run"].iter().any(|bound| self.body.get(bound).is_some()),
            "closed" => receiver_is_closed,
            _ => false,
        }
    }
}

/// A receipt as it was seen last.
#[derive(Clone, Debug)]
struct Seen {
    /// When it was seen for the first time, and when last.
    first: u64,
    at: u64,
    receipt: Value,
}

/// All of a person's messages.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    now: u64,
    pub(crate) letters: Vec<Letter>,
    receipts: BTreeMap<(String, String), Seen>,
}

impl Mail {
    /// An instant after all before it.
    pub(crate) fn now(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A new message; `extra` goes into its body.
    pub(crate) fn write(&mut self, to: &str, route: &'static str, words: &str, extra: Value) -> Letter {
        let n = self.letters.len() + 1;
        let (id, token) = (format!("m{n}"), format!("«word {n}»"));
        let mut body = json!({"id": id, "text": format!("{token} {words}")});
        for (name, value) in extra.as_object().into_iter().flatten() {
            body[name.as_str()] = value.clone();
        }
        if let Some(replaced) = body["supersedes"].as_str().map(str::to_owned) {
            self.with(&replaced, |letter| letter.may_be_replaced = true);
        }
        let letter = Letter {
            id,
            to: to.to_owned(),
            route,
            body,
            token,
            sent: self.now(),
            accepted: None,
            refused: None,
            unanswered: 0,
            withdrawal: Withdrawal::Never,
            may_be_replaced: false,
        };
        self.letters.push(letter.clone());
        letter
    }

    pub(crate) fn with<T>(&mut self, id: &str, look: impl FnOnce(&mut Letter) -> T) -> Option<T> {
        self.letters.iter_mut().find(|letter| letter.id == id).map(look)
    }

    /// A message is sent, for the first or another time. When.
    pub(crate) fn sends(&mut self, id: &str) -> u64 {
        self.with(id, |letter| letter.unanswered += 1);
        self.now()
    }

    /// A message that was sent at `asked` was answered.
    pub(crate) fn answered(&mut self, id: &str, asked: u64, answer: &Answer, breaches: &Breaches) {
        let now = self.now();
        if matches!(answer, Answer::Said(..)) {
            self.with(id, |letter| letter.unanswered -= 1);
        }
        match answer {
            Answer::Said(202, said) => {
                self.with(id, |letter| {
                    letter.accepted = letter.accepted.or(Some(now));
                    // The run that it was for may have come since.
                    letter.refused = None;
                });
                match said["deliveries"].as_array() {
                    Some(deliveries) => deliveries.iter().for_each(|one| self.seen(asked, one, breaches)),
                    None => self.seen(asked, said, breaches),
                }
            }
            // Too many requests, or the process ends: it may be sent again.
            Answer::Said(429, _) | Answer::Lost(_) => {}
            answer if answer.ends() => {}
            Answer::Said(500.., said) => breaches.add(StaysUp, format!("message {id} was answered {said}")),
            Answer::Said(_, said) => {
                let code = answer.code().unwrap_or("no code").to_owned();
                let accepted = self.with(id, |letter| {
                    letter.refused = Some(code.clone());
                    letter.accepted
                });
                if accepted.flatten().is_some() {
                    let what =
                        format!("message {id} was accepted, and refused when it was sent again: {said}");
                    breaches.add(NothingDoubled, what);
                }
            }
            Answer::Silent => breaches.add(StaysUp, format!("no answer to message {id}")),
        }
    }

    /// A receipt was seen by who asked at `asked`.
    pub(crate) fn seen(&mut self, asked: u64, receipt: &Value, breaches: &Breaches) {
        let (Some(id), Some(to)) = (receipt["id"].as_str(), receipt["to"].as_str()) else { return };
        if receipt["state"].is_null() {
            return;
        }
        let key = (id.to_owned(), to.to_owned());
        let now = self.now();
        let seen = |first| Seen { first, at: now, receipt: receipt.clone() };
        let Some(before) = self.receipts.get_mut(&key) else {
            self.receipts.insert(key, seen(now));
            return;
        };
        if asked > before.at && !follows(&before.receipt, receipt) {
            let what = format!("the receipt of {id} was {} and then {receipt}", before.receipt);
            breaches.add(TrueReceipts, what);
        }
        if rank(receipt) >= rank(&before.receipt) {
            *before = seen(before.first);
        }
    }

    /// A receipt as it was seen last.
    pub(crate) fn receipt(&self, id: &str, to: &str) -> Option<&Value> {
        self.receipts.get(&(id.to_owned(), to.to_owned())).map(|seen| &seen.receipt)
    }

    /// When a message was known to be accepted for a receiver.
    pub(crate) fn accepted(&self, id: &str, to: &str) -> Option<u64> {
        self.receipts.get(&(id.to_owned(), to.to_owned())).map(|seen| seen.first)
    }

    /// The receivers of whom somebody saw a receipt.
    pub(crate) fn receivers_seen(&self, id: &str) -> impl Iterator<Item = &str> {
        self.receipts.keys().filter(move |(of, _)| of == id).map(|(_, to)| to.as_str())
    }
}

/// How far a receipt has come.
pub(crate) fn rank(receipt: &Value) -> u8 {
    match receipt["state"].as_str() {
        Some("queued") => 0,
        Some("injected") => 1,
        Some("sent") => 2,
        Some("answered" | "returned") => 3,
        _ => u8::MAX,
    }
}

/// Whether a receipt can have become the other: states move forward, and where a message was
/// injected stays true.
fn follows(before: &Value, now: &Value) -> bool {
    let same = |field: &str| before[field].is_null() || before[field] == now[field];
    let stays = ["point", "run", "turn", "skipped", "interrupted", "reason"].into_iter().all(same);
    let forward = match (before["state"].as_str(), now["state"].as_str()) {
        (Some("answered"), Some(state)) => state == "answered",
        (Some("returned"), Some(state)) => state == "returned",
        (Some("injected" | "sent"), Some("returned")) => false,
        (Some(_), Some(_)) => rank(now) >= rank(before) && rank(now) <= 3,
        _ => false,
    };
    stays && forward
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_move_forward_only() {
        let at = |state: &str| json!({"state": state});
        let injected = |point: &str| json!({"state": "injected", "point": point});
        for (before, now, fine) in [
            (at("queued"), at("queued"), true),
            (at("queued"), at("answered"), true),
            (at("queued"), at("returned"), true),
            (injected("A"), json!({"state": "sent", "point": "A"}), true),
            (injected("A"), json!({"state": "sent", "point": "D"}), false),
            (at("sent"), at("injected"), false),
            (at("injected"), at("returned"), false),
            (at("answered"), at("returned"), false),
            (at("returned"), at("answered"), false),
            (at("sent"), at("queued"), false),
            (at("queued"), at("nonsense"), false),
        ] {
            assert_eq!(follows(&before, &now), fine, "{before} {now}");
        }
    }

    #[test]
    fn a_message_that_was_accepted_is_not_refused_when_it_is_sent_again() {
        let (mut mail, breaches) = (Mail::default(), Breaches::default());
        let letter = mail.write("a1", "messages", "x", json!({}));
        assert!(letter.body["text"].as_str().unwrap().contains(&letter.token));
        let receipt = json!({"id": letter.id, "to": "a1", "state": "queued"});
        mail.sends(&letter.id);
        mail.answered(&letter.id, 1, &Answer::Said(202, receipt), &breaches);
        assert!(!breaches.any());
        mail.sends(&letter.id);
        mail.answered(&letter.id, 1, &Answer::Said(409, json!({"code": "duplicate_id"})), &breaches);
        assert_eq!(breaches.all()[0].promise, NothingDoubled);
    }
}
