//! Steps: what one of ours does to the file system at once. Between any two of them another can act, and whoever
//! acts can die: `tests/interleavings` stops and kills them there. Without the feature `steps` none of this is in
//! the program.

/// A step comes next.
#[cfg(not(feature = "steps"))]
#[inline(always)]
pub(crate) fn step() {}

/// How often one tries to be alone: for two seconds, or until it is.
pub(crate) const TRIES: u32 = if cfg!(feature = "steps") { u32::MAX } else { 200 };

/// Between two tries.
pub(crate) fn pause() {
    if cfg!(not(feature = "steps")) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[cfg(feature = "steps")]
type Act = Box<dyn Fn()>;

#[cfg(feature = "steps")]
thread_local! {
    static BEFORE_EACH: std::cell::OnceCell<Act> = const { std::cell::OnceCell::new() };
}

/// What this thread does before each of its steps from now on. The first word holds.
#[cfg(feature = "steps")]
pub fn before_each(act: impl Fn() + 'static) {
    BEFORE_EACH.with(|each| drop(each.set(Box::new(act))));
}

/// A step comes next.
#[cfg(feature = "steps")]
pub(crate) fn step() {
    BEFORE_EACH.with(|each| each.get().into_iter().for_each(|act| act()));
}
