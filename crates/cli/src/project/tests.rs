//! What is believed, what is refused, and where things are.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(place.path("My Repo!/deep")).unwrap();
        std::fs::create_dir(place.path("My Repo!/.git")).unwrap();
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn project(&self, folder: &str, store: Option<&str>, runtime: &str) -> Result<Project, Failure> {
        let state = self.path("state").display().to_string();
        let env = Env::of([("XDG_STATE_HOME", state.as_str()), ("XDG_RUNTIME_DIR", runtime)]);
        Project::of(&self.path(folder), &StoreArgs { store: store.map(str::to_owned) }, &env)
    }
}

fn interface() -> Interface {
    Interface {
        pid: 7,
        socket: "/run/x.sock".into(),
        token: "secret".into(),
        version: "1".into(),
        tcp: Some("127.0.0.1:7777".parse().unwrap()),
    }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn all_folders_of_a_repository_are_one_project_and_another_store_is_another_holder() {
    let place = Place::new();
    let key = |folder, store| place.project(folder, store, "").unwrap().key;
    let own = key("My Repo!", None);
    assert!(own.starts_with("my-repo-") && own.len() == "my-repo-".len() + 12, "{own}");
    assert_eq!(key("My Repo!/deep", None), own);
    let db = place.path("a.db").display().to_string();
    let pg = "postgres://u@h/d";
    assert_eq!(key("My Repo!", Some(&db)), key(".", Some(&db)), "a file is the same from anywhere");
    let all = [own, key(".", None), key(".", Some(&db)), key(".", Some(pg)), key("My Repo!", Some(pg))];
    let different: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
}

#[test]
fn the_store_is_the_projects_own_or_the_one_that_was_given() {
    let place = Place::new();
    let own = place.project(".", None, "").unwrap();
    assert_eq!(*own.store(), StoreAt::File(own.state().join("store.db")));
    for (given, shown) in [
        ("/x/../y.db", "/y.db"),
        ("postgres://u:secret@h:1/d?password=secret", "postgres://u@h:1/d"),
        ("postgresql://h/d", "postgresql://h/d"),
    ] {
        let store = place.project(".", Some(given), "").unwrap().store;
        assert_eq!(store.to_string().replace("/x/..", ""), shown);
        assert!(!format!("{store:?}").contains("secret"));
    }
    let error = place.project(".", Some("mysql://h/d"), "").unwrap_err();
    assert_eq!(
        error.to_string(),
        "--store: `mysql://` is not a store: give a path, or postgres://USER@HOST/NAME"
    );
}

#[test]
fn what_was_published_is_read_and_only_its_writer_takes_it_back() {
    let place = Place::new();
    let project = place.project(".", None, "").unwrap();
    assert_eq!(project.interface().unwrap(), None);
    project.prepare().unwrap();
    interface().write(&project.interface_path()).unwrap();
    assert_eq!((mode(project.state()), mode(&project.interface_path())), (0o700, 0o600));
    assert_eq!(project.interface().unwrap(), Some(interface()));
    assert!(!format!("{:?}", interface()).contains("secret"));
    let next = Interface { pid: 8, ..interface() };
    next.write(&project.interface_path()).unwrap();
    interface().remove(&project.interface_path()).unwrap();
    assert_eq!(project.interface().unwrap(), Some(next.clone()));
    next.remove(&project.interface_path()).unwrap();
    assert_eq!(project.interface().unwrap(), None);
    assert_eq!(std::fs::read_dir(project.state()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn the_socket_has_a_short_path_in_a_folder_of_our_own() {
    let place = Place::new();
    let runtime = place.path("run");
    std::fs::create_dir(&runtime).unwrap();
    let long = "x".repeat(90);
    std::fs::create_dir(runtime.join(&long)).unwrap();
    for (runtime, inside) in [
        (runtime.display().to_string(), true),
        (runtime.join(&long).display().to_string(), false),
        (runtime.join("nowhere").display().to_string(), false),
        ("relative".to_owned(), false),
    ] {
        let project = place.project(".", None, &runtime).unwrap();
        let socket = project.socket().unwrap();
        assert!(socket.as_os_str().len() <= SOCKET_MAX, "{}", socket.display());
        assert_eq!(socket.starts_with(place.path("run")), inside, "{}", socket.display());
        assert_eq!(mode(socket.parent().unwrap()), 0o700);
        if !socket.starts_with(place.0.path()) {
            std::fs::remove_dir(socket.parent().unwrap()).unwrap();
        }
    }
}

#[test]
fn a_folder_that_others_could_look_into_is_closed_and_a_link_is_refused() {
    let place = Place::new();
    let project = place.project(".", None, "").unwrap();
    std::fs::create_dir_all(project.state()).unwrap();
    std::fs::set_permissions(project.state(), std::fs::Permissions::from_mode(0o755)).unwrap();
    project.prepare().unwrap();
    assert_eq!(mode(project.state()), 0o700);
    std::fs::remove_dir(project.state()).unwrap();
    symlink(place.path("My Repo!"), project.state()).unwrap();
    assert!(project.prepare().unwrap_err().to_string().contains("is a link, not a folder"));
}

/// C15: nothing is even read there.
#[test]
fn a_folder_that_others_can_write_is_refused_before_anything_is_read_with_what_to_do() {
    let place = Place::new();
    let runtime = place.path("run").display().to_string();
    let opened = |folder: &Path| {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    };
    std::fs::create_dir(&runtime).unwrap();
    let project = place.project(".", None, &runtime).unwrap();
    opened(&place.path("run/midturn"));
    let said = project.socket().unwrap_err().to_string();
    let folder = place.path("run/midturn").display().to_string();
    assert_eq!(
        said,
        format!(
            "other users can write into {folder} (mode 777): look whether all that is in it is yours, then `chmod \
             go-w {folder}`, or set XDG_RUNTIME_DIR to a folder that only you can write"
        )
    );
    assert_eq!(project.look_at_socket().unwrap_err().to_string(), said);

    opened(&place.path("state/midturn"));
    for said in [
        place.project(".", None, &runtime).unwrap_err(),
        project.prepare().unwrap_err(),
        look_at_state(&place.path("state/midturn")).unwrap_err(),
    ] {
        let said = said.to_string();
        assert!(said.contains("state/midturn (mode 777)") && said.contains("set XDG_STATE_HOME"), "{said}");
    }
}
