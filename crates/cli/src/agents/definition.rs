//! One definition file, read and checked.

use std::path::{Path, PathBuf};

use midturn_core::rules::id::AgentName;
use midturn_tools::workplace::Isolation;
use serde::Deserialize;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::front_matter::{self, FrontMatter, Placed, ToolList};
use super::remarks::{About, Remark};
use crate::failure::Failure;
use crate::files::{Misplaced, Spot, complaint};

/// The longest name of an agent, in bytes.
const NAME_MAX: usize = 64;

/// An agent as a file defines it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// The name by which `spawn_agent` asks for it.
    pub(crate) name: AgentName,
    /// When to use it, for the model that spawns.
    pub(crate) description: String,
    /// The tools it has, as written; absent means all.
    pub(crate) tools: Option<Vec<String>>,
    /// The tools it hasn't, as written.
    pub(crate) disallowed: Vec<String>,
    /// Its model as written: `PROVIDER/NAME`, a vendor's own id, an alias or `inherit`.
    pub(crate) model: Option<String>,
    /// The lines of the tools, of those that it hasn't, and of the model.
    pub(crate) lines: (usize, usize, usize),
    /// Where it works; absent means as configured.
    pub(crate) isolation: Option<Isolation>,
    /// The body: its system prompt.
    pub(crate) system: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// What a person is told of it.
    pub(crate) remarks: Vec<Remark>,
}

impl Definition {
    /// Reads a definition out of a file's text.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the file, the line and what was expected.
    pub(crate) fn parse(path: &Path, source: &str) -> Result<Self, Failure> {
        let complain = complaint(path);
        match front_matter::read(source).map_err(complain)? {
            Some((front, body)) => Self::check(path, front, body).map_err(complain),
            None if is_readme(path) => {
                Err(complain((Spot::START, "it has no front matter, so it is no agent".to_owned())))
            }
            None => Self::check(path, FrontMatter::default(), source).map_err(complain),
        }
    }

    fn check(path: &Path, front: FrontMatter, body: &str) -> Result<Self, Misplaced> {
        let name_line = front.name.as_ref().map_or(1, |name| name.line);
        let written = front.name.filter(|name| !name.value.trim().is_empty()).map(|name| name.value);
        let name =
            name(path, written.as_deref()).map_err(|what| (Spot { line: name_line, column: 1 }, what))?;
        let model = front.model.filter(|model| !model.value.trim().is_empty());
        let line = |placed: Option<usize>| placed.unwrap_or(1);
        let lines = (
            line(front.tools.as_ref().map(|tools| tools.line)),
            line(front.disallowed.as_ref().map(|tools| tools.line)),
            line(model.as_ref().map(|model| model.line)),
        );
        let ToolList { only: tools, never } = front.tools.map(|tools| tools.value).unwrap_or_default();
        let disallowed = front.disallowed.and_then(|tools| tools.value.only).unwrap_or_default();
        let mut definition = Self {
            description: String::new(),
            tools,
            disallowed: [never, disallowed].concat(),
            model: model.map(|model| model.value.trim().to_owned()),
            lines,
            isolation: None,
            system: body.trim().to_owned(),
            path: path.to_owned(),
            remarks: Vec::new(),
            name,
        };
        if let Some(written) = written.filter(|written| written.trim() != definition.name.as_str()) {
            definition.remark(
                About::Name,
                name_line,
                format!("`{}` is `{}`", written.trim(), definition.name),
            );
        }
        if let Some((line, why)) = front.refused {
            definition.remark(About::Lines, line, why);
        }
        definition.describe(front.description)?;
        definition.place(front.isolation.as_ref());
        for (line, key) in front.unknown {
            definition.remark(About::Key, line, format!("`{key}`"));
        }
        Ok(definition)
    }

    /// What a person is told of a line of it.
    pub(crate) fn remark(&mut self, about: About, line: usize, what: String) {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.remarks.push(Remark { about, what, place: format!("{file}:{line}") });
    }

    /// When to use it: what it says, or else how its text begins.
    fn describe(&mut self, said: Option<Placed<String>>) -> Result<(), Misplaced> {
        // A text without quotes is no place for `\n` in YAML, but one that many write.
        let said = said.map(|said| said.value.replace("\\n", "\n").trim().to_owned());
        if let Some(said) = said.filter(|said| !said.is_empty()) {
            self.description = said;
            return Ok(());
        }
        let plain = |line: &str| line.trim_matches(['#', '*', ' ']).to_owned();
        let first = self.system.lines().map(plain).find(|line| !line.is_empty());
        self.description =
            first.ok_or_else(|| (Spot::START, "it has neither a `description` nor a text".to_owned()))?;
        let name = format!("`{}`", self.name);
        self.remark(About::Description, 1, name);
        Ok(())
    }

    fn place(&mut self, said: Option<&Placed<String>>) {
        let Some(Placed { line, value }) = said else { return };
        let word = value.trim();
        match Isolation::deserialize(Value::from(word)) {
            Ok(isolation) => self.isolation = Some(isolation),
            Err(_) => self.remark(About::Key, *line, format!("`isolation: {word}`")),
        }
    }
}

fn is_readme(path: &Path) -> bool {
    stem(path).to_lowercase().starts_with("readme")
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The name as written if it is one of ours, else made fit; without one the file's.
fn name(path: &Path, written: Option<&str>) -> Result<AgentName, String> {
    let written = written.map_or_else(|| stem(path), str::to_owned);
    let written = written.trim();
    let fits = AgentName::new(written).or_else(|_| AgentName::new(slug(written)));
    fits.or_else(|_| AgentName::new(slug(&stem(path)))).map_err(|error| error.to_string())
}

/// In lower case and without accents, with a `-` for all else that stands in between. A name in another script gives
/// none: the table to write those in Latin letters would be a fiftieth of the whole program.
fn slug(text: &str) -> String {
    let plain: String = text.nfkd().filter(|letter| !is_combining_mark(*letter)).collect();
    let words = plain.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    slug.truncate(NAME_MAX);
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_fit_or_the_files_is_taken() {
        let name = |written| name(Path::new("folder/Code_Reviewer.md"), Some(written)).unwrap().to_string();
        assert_eq!(name("Frontend Developer"), "frontend-developer");
        assert_eq!(name(" Prüfer (Größe & Maß) 2 "), "prufer-gro-e-ma-2");
        assert_eq!(name("審査"), "code-reviewer");
        assert_eq!(name(&"é ".repeat(200)).len(), NAME_MAX - 1);
    }
}
