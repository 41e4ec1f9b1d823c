//! Timelines as files: of each scenario that is replayed, of a session that was kept, and the figures of `midturn stats`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use midturn_core::rules::event::Event;
use midturn_core::rules::time::Micros;
use midturn_view::clean::one_line;
use midturn_view::svg::svg;
use midturn_view::timeline::Timeline;

use crate::failure::Failure;
use crate::secrets;

/// A picture of all of these events.
pub(crate) fn picture(events: &[Event], title: &str) -> String {
    let picture = Timeline::of(events).picture(Micros::default(), Micros::default());
    secrets::clean(&svg(&picture, &one_line(title))).into_owned()
}

/// Writes a picture.
///
/// # Errors
/// [`Failure::Failed`] with the file.
pub(crate) fn written(path: &Path, picture: &str) -> Result<(), Failure> {
    std::fs::write(path, picture).map_err(|error| {
        Failure::failed(format!("{} can't be written ({error}); choose another file", path.display()))
    })
}

/// The folder into which a picture of each scenario is drawn.
pub(crate) struct Folder<'a> {
    folder: &'a Path,
    /// Where the scenarios were looked for: a picture stands as deep below the folder as its scenario below one of these.
    paths: &'a [PathBuf],
    drawn: RefCell<BTreeSet<PathBuf>>,
}

impl<'a> Folder<'a> {
    /// Nothing is made before the first picture.
    pub(crate) fn new(folder: &'a Path, paths: &'a [PathBuf]) -> Self {
        Self { folder, paths, drawn: RefCell::default() }
    }

    /// Draws a scenario that was played.
    ///
    /// # Errors
    /// It can't be written, or another one has its place.
    pub(crate) fn draw(&self, scenario: &Path, name: &str, events: &[Event]) -> io::Result<()> {
        let path = self.folder.join(self.place(scenario));
        let complain = |error: String| io::Error::other(format!("{}: {error}", path.display()));
        if !self.drawn.borrow_mut().insert(path.clone()) {
            return Err(complain(
                "another scenario of this replay has the same name: replay them one after the other"
                    .to_owned(),
            ));
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| complain(error.to_string()))?;
        }
        std::fs::write(&path, picture(events, name)).map_err(|error| complain(error.to_string()))
    }

    fn place(&self, scenario: &Path) -> PathBuf {
        let below = self.paths.iter().find_map(|path| scenario.strip_prefix(path).ok());
        let below = below.filter(|below| !below.as_os_str().is_empty());
        let mut place = match (below, scenario.file_name()) {
            (Some(below), _) => below.to_owned(),
            (None, Some(name)) => PathBuf::from(name),
            (None, None) => PathBuf::from("scenario"),
        };
        // Two that differ in what stands behind the dot are two.
        let mut name: OsString = place.file_name().map(ToOwned::to_owned).unwrap_or_default();
        match Path::new(&name).extension() {
            Some(end) if end == "yaml" => name = Path::new(&name).with_extension("svg").into_os_string(),
            _ => name.push(".svg"),
        }
        place.set_file_name(name);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_stands_below_the_folder_as_its_scenario_did() {
        let paths = [PathBuf::from("scenarios"), PathBuf::from("other/one.yaml")];
        let folder = Folder::new(Path::new("out"), &paths);
        for (scenario, expected) in [
            ("scenarios/deep/a.yaml", "deep/a.svg"),
            ("scenarios/a.yml", "a.yml.svg"),
            ("other/one.yaml", "one.svg"),
        ] {
            assert_eq!(folder.place(Path::new(scenario)), Path::new(expected));
        }
    }

    #[test]
    fn no_picture_is_drawn_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [PathBuf::from("a"), PathBuf::from("b")];
        let pictures = Folder::new(folder.path(), &paths);
        pictures.draw(Path::new("a/x.yaml"), "x", &[]).unwrap();
        let error = pictures.draw(Path::new("b/x.yaml"), "x", &[]).unwrap_err();
        assert!(error.to_string().contains("one after the other"), "{error}");
    }
}
