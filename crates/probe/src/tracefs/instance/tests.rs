use std::fs;

use super::{Instance, hold, instances};
use crate::error::TraceError;

#[test]
fn an_instance_goes_with_its_owner() {
    let all = tempfile::tempdir().expect("a directory");
    let first = Instance::new_in(all.path()).expect("an instance");
    let second = Instance::new_in(all.path()).expect("another beside it");
    assert!(first.path("").is_dir() && second.path("").is_dir());
    drop(first);
    assert_eq!(fs::read_dir(all.path()).expect("a directory").count(), 1);
    assert!(second.path("").is_dir());
}

#[test]
fn only_what_a_dead_owner_left_is_removed() {
    let all = tempfile::tempdir().expect("a directory");
    // The tracer must remove even an instance whose name contains the id of a living process, such as this
    // one.
    let reused = format!("dashpot-{}-0", std::process::id());
    let names = [reused.as_str(), "dashpot-1-0", "dashpot-2-0", "somebody"];
    for name in names {
        fs::create_dir(all.path().join(name)).expect("an instance");
    }
    let _alive = hold(&all.path().join("dashpot-2-0")).expect("a lock");
    fs::create_dir(all.path().join("dashpot-1-0/busy")).expect("a part that holds it");

    let new = Instance::new_in(all.path()).expect("an instance");
    assert!(new.path("").ends_with(&reused), "its name is free again");
    let is_there = |name: &str| all.path().join(name).exists();
    assert!(is_there("somebody") && is_there("dashpot-2-0"));
    assert!(
        is_there("dashpot-1-0"),
        "an instance that cannot be removed does no harm"
    );

    fs::remove_dir(all.path().join("dashpot-1-0/busy")).expect("it is free");
    let _next = Instance::new_in(all.path()).expect("an instance");
    assert!(!is_there("dashpot-1-0"));
}

#[test]
fn a_machine_without_tracefs_is_told_so() {
    let root = tempfile::tempdir().expect("a directory");
    let roots = [root.path().to_str().expect("a path")];
    assert!(matches!(instances(&roots), Err(TraceError::NoTracefs)));
    fs::create_dir(root.path().join("instances")).expect("a directory");
    assert!(instances(&roots).is_ok());
}
