//! What a shell would run of a text: every simple command in it, wherever it stands. The grammar is a library's;
//! what it can't read is [`Script::Unreadable`], which every rule that denies holds against.

mod inner;
mod words;

use brush_parser::ast::{
    AndOr, AndOrList, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem, CompoundCommand,
    CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline, Program,
    RedirectList, SimpleCommand, UnexpandedArithmeticExpr,
};
use brush_parser::{ParserOptions, SourceSpan, arithmetic, parse_tokens, uncached_tokenize_str};

pub(super) use self::inner::spellings;
pub(super) use self::words::{Part, Word};

/// So long may a text be that is read, in bytes.
const TEXT_MAX: usize = 256 << 10;

/// How deep texts are read that stand in others: substitutions, and what is given to `eval` and `sh -c`.
const DEEP_MAX: usize = 8;

/// So many brackets and words that open something may be in a text. The library descends for each, and so do we.
const OPENERS_MAX: usize = 1_000;

/// So many round brackets and `case`s may there be among the words of one text: the library's time doubles with each.
const DOUBLING_MAX: usize = 12;

/// Beyond so many a text is read on a stack of its own.
const OPENERS_FEW: usize = 24;

/// The stack for texts that descend: what is not used of it is never there.
const STACK: usize = 256 << 20;

/// So many commands may be in a text; a rule is held against each.
const COMMANDS_MAX: usize = 4_096;

/// What a shell would run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// These, and nothing else that the grammar sees.
    Commands(Vec<Simple>),
    /// Nobody knows.
    Unreadable,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its name and what it is given, as the shell hands them over.
    pub(super) words: Vec<Word>,
    /// It is only that: no variable is set for it, and it writes no file that its words don't name.
    pub(super) is_plain: bool,
}

/// Why a text can't be read.
enum Unreadable {
    /// It is no script.
    NoScript,
    /// What it runs is not in it, or there is too much of it.
    Content,
}

/// Reads a text as bash does.
pub(super) fn read(text: &str) -> Script {
    let openers = openers(text);
    if text.len() > TEXT_MAX || openers > OPENERS_MAX {
        return Script::Unreadable;
    }
    let read = || {
        let mut reader = Reader::default();
        match reader.script(text) {
            Ok(()) if reader.found.len() <= COMMANDS_MAX => Script::Commands(reader.found),
            Ok(()) | Err(Unreadable::NoScript | Unreadable::Content) => Script::Unreadable,
        }
    };
    // Where the library gives up with a panic nobody knows what the text is.
    let read = || std::panic::catch_unwind(read).unwrap_or(Script::Unreadable);
    if openers <= OPENERS_FEW { read() } else { stacker::grow(STACK, read) }
}

/// What opens something that has to be closed, and so is descended into.
fn openers(text: &str) -> usize {
    let brackets = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'[' | b'`')).count();
    let is_word = |word: &&str| matches!(*word, "if" | "while" | "until" | "for" | "case" | "select" | "!");
    brackets + text.split(|c: char| c.is_whitespace() || c == ';').filter(is_word).count()
}

/// As bash reads: the defaults of the library.
fn options() -> ParserOptions {
    ParserOptions::default()
}

/// Finds the commands.
#[derive(Default)]
struct Reader {
    found: Vec<Simple>,
    deep: usize,
    /// The text that is being read, by characters, as the library counts.
    text: Vec<char>,
}

type Read = Result<(), Unreadable>;

impl Reader {
    /// A text of its own, in which others may stand.
    fn script(&mut self, text: &str) -> Read {
        if self.deep == DEEP_MAX {
            return Err(Unreadable::Content);
        }
        let tokens =
            uncached_tokenize_str(text, &options().tokenizer_options()).map_err(|_| Unreadable::NoScript)?;
        if tokens.iter().filter(|token| matches!(token.to_str(), "(" | "case")).count() > DOUBLING_MAX {
            return Err(Unreadable::Content);
        }
        let program = parse_tokens(&tokens, &options()).map_err(|_| Unreadable::NoScript)?;
        self.deep += 1;
        let around = std::mem::replace(&mut self.text, text.chars().collect());
        let read = self.program(&program);
        self.text = around;
        self.deep -= 1;
        read
    }

    fn program(&mut self, program: &Program) -> Read {
        program.complete_commands.iter().try_for_each(|list| self.list(list))
    }

    fn list(&mut self, list: &CompoundList) -> Read {
        list.0.iter().try_for_each(|item| self.and_or(&item.0))
    }

    fn and_or(&mut self, list: &AndOrList) -> Read {
        self.pipeline(&list.first)?;
        list.additional.iter().try_for_each(|next| match next {
            AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline),
        })
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Read {
        pipeline.seq.iter().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Command) -> Read {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound)?;
                self.redirects(redirects.as_ref())
            }
            Command::Function(function) => {
                // From here on its name is another command.
                self.changes();
                self.compound(&function.body.0)?;
                self.redirects(function.body.1.as_ref())
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr)?;
                self.redirects(redirects.as_ref())
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Read {
        match compound {
            // The library takes `( ( git push ) )` for it, too, which bash runs.
            CompoundCommand::Arithmetic(command) => match self.between(&command.loc) {
                ['(', '(', .., ')', ')'] => self.arithmetic(&command.expr),
                _ => Err(Unreadable::Content),
            },
            CompoundCommand::ArithmeticForClause(clause) => {
                let parts = [&clause.initializer, &clause.condition, &clause.updater];
                parts.into_iter().flatten().try_for_each(|part| self.arithmetic(part))?;
                self.list(&clause.body.list)
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(shell) => self.list(&shell.list),
            CompoundCommand::ForClause(clause) => {
                clause.values.iter().flatten().try_for_each(|word| self.text(&word.value))?;
                self.list(&clause.body.list)
            }
            CompoundCommand::CaseClause(clause) => {
                self.text(&clause.value.value)?;
                clause.cases.iter().try_for_each(|case| {
                    case.patterns.iter().try_for_each(|word| self.text(&word.value))?;
                    case.cmd.iter().try_for_each(|list| self.list(list))
                })
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition)?;
                self.list(&clause.then)?;
                clause.elses.iter().flatten().try_for_each(|other| {
                    other.condition.iter().try_for_each(|list| self.list(list))?;
                    self.list(&other.body)
                })
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0)?;
                self.list(&clause.1.list)
            }
            CompoundCommand::Coprocess(process) => self.command(&process.body),
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) -> Read {
        let mut is_plain = true;
        let before = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let after = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let mut words = Vec::new();
        for item in before {
            is_plain &= self.beside(item, &mut words)?;
        }
        if let Some(name) = &simple.word_or_name {
            words.push(self.word(&name.value)?);
        }
        for item in after {
            is_plain &= self.beside(item, &mut words)?;
        }
        if words.is_empty() {
            // Variables are set for all that follows.
            self.changes();
            return Ok(());
        }
        self.runs(words, is_plain)
    }

    /// What stands beside a command's name: whether it leaves the command plain.
    fn beside(
        &mut self,
        item: &CommandPrefixOrSuffixItem,
        words: &mut Vec<Word>,
    ) -> Result<bool, Unreadable> {
        match item {
            CommandPrefixOrSuffixItem::Word(word) => words.push(self.word(&word.value)?),
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => return self.redirect(redirect),
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell) => {
                self.list(&shell.list)?;
                words.push(Word::unknown());
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                if let AssignmentName::ArrayElementName(_, index) = &assignment.name {
                    self.text(index)?;
                }
                match &assignment.value {
                    AssignmentValue::Scalar(word) => self.text(&word.value)?,
                    AssignmentValue::Array(values) => values.iter().try_for_each(|(index, value)| {
                        index.iter().try_for_each(|index| self.text(&index.value))?;
                        self.text(&value.value)
                    })?,
                }
                // Behind a name it is a word like others, as in `env A=1 git` and `export A=1`.
                if words.is_empty() {
                    return Ok(false);
                }
                words.push(self.word(&word.value)?);
            }
        }
        Ok(true)
    }

    /// What is no command, and changes what others do: a variable, a function, a file. No rule allows it.
    fn changes(&mut self) {
        self.found.push(Simple { words: Vec::new(), is_plain: false });
    }

    fn redirects(&mut self, list: Option<&RedirectList>) -> Read {
        let mut writes = false;
        for redirect in list.iter().flat_map(|list| &list.0) {
            writes |= !self.redirect(redirect)?;
        }
        if writes {
            self.changes();
        }
        Ok(())
    }

    /// Whether it writes no file.
    fn redirect(&mut self, redirect: &IoRedirect) -> Result<bool, Unreadable> {
        match redirect {
            IoRedirect::File(_, kind, target) => {
                let reads = matches!(kind, IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput);
                match target {
                    IoFileRedirectTarget::Filename(word) => {
                        self.text(&word.value)?;
                        Ok(reads || word.value == "/dev/null")
                    }
                    IoFileRedirectTarget::Duplicate(word) => {
                        self.text(&word.value)?;
                        Ok(word.value.chars().all(|c| c.is_ascii_digit() || c == '-'))
                    }
                    IoFileRedirectTarget::Fd(_) => Ok(true),
                    IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
                        self.list(&shell.list)?;
                        Ok(true)
                    }
                }
            }
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.here_document(&document.doc.value)?;
                }
                Ok(true)
            }
            IoRedirect::HereString(_, word) => {
                self.text(&word.value)?;
                Ok(true)
            }
            IoRedirect::OutputAndError(word, _) => {
                self.text(&word.value)?;
                Ok(word.value == "/dev/null")
            }
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) -> Read {
        match test {
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.test(one)?;
                self.test(other)
            }
            ExtendedTestExpr::Not(one) | ExtendedTestExpr::Parenthesized(one) => self.test(one),
            ExtendedTestExpr::UnaryTest(_, word) => self.text(&word.value),
            ExtendedTestExpr::BinaryTest(_, one, other) => {
                self.text(&one.value)?;
                self.text(&other.value)
            }
        }
    }

    fn between(&self, place: &SourceSpan) -> &[char] {
        self.text.get(place.start.index..place.end.index).unwrap_or_default()
    }

    /// What bash can't calculate it may run: what reads as a script is one, too.
    fn arithmetic(&mut self, expression: &UnexpandedArithmeticExpr) -> Read {
        self.text(&expression.value)?;
        let known = self.found.len();
        match self.script(&expression.value) {
            Err(Unreadable::NoScript) if arithmetic::parse(&expression.value).is_ok() => {
                self.found.truncate(known);
                Ok(())
            }
            read => read,
        }
    }
}

#[cfg(test)]
mod tests;
