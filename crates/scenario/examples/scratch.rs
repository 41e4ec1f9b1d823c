//! scratch
use midturn_scenario::{Options, replay};
fn main() {
    let mut paths: Vec<std::path::PathBuf> = std::env::args().skip(1).map(Into::into).collect();
    let json = paths.first().is_some_and(|p| p.as_os_str() == "--json");
    if json { paths.remove(0); }
    let o = Options { json, ..Options::default() };
    let r = replay(&paths, &o, &mut std::io::stdout(), &mut std::io::stderr());
    println!("{:?}", r.is_ok());
}
