//! The worlds of the process and their snapshots, as the console lists them.

use askama::Template;
use serde_json::Value;

use super::record::{plain, short_time};
use super::texts::Texts;
use crate::world_host::MAIN_WORLD;

#[derive(Template)]
#[template(path = "console/worlds.html")]
pub(super) struct Worlds {
    t: &'static Texts,
    worlds: Vec<WorldView>,
    snapshots: Vec<SnapshotView>,
}

struct WorldView {
    id: String,
    base_url: String,
    /// Whether the page is that of this world.
    is_this: bool,
    /// Whether it is the world that the process began with, which cannot be deleted.
    is_main: bool,
}

struct SnapshotView {
    name: String,
    /// The world that it was taken of.
    world: String,
    /// The time of that world.
    at: String,
}

impl Worlds {
    /// The answers of the API. The page is that of the world at `base_url`.
    pub fn of(t: &'static Texts, worlds: &Value, snapshots: &Value, base_url: &str) -> Self {
        let list = |value: &Value| value["data"].as_array().cloned().unwrap_or_default();
        let world = |world: Value| WorldView {
            is_this: world["baseUrl"] == base_url,
            is_main: world["worldId"] == MAIN_WORLD,
            id: plain(&world["worldId"]),
            base_url: plain(&world["baseUrl"]),
        };
        let snapshot = |snapshot: Value| SnapshotView {
            name: plain(&snapshot["name"]),
            world: plain(&snapshot["worldId"]),
            at: short_time(&plain(&snapshot["at"])),
        };
        Self {
            t,
            worlds: list(worlds).into_iter().map(world).collect(),
            snapshots: list(snapshots).into_iter().map(snapshot).collect(),
        }
    }

    /// What a new world can begin with.
    pub fn options(&self) -> Vec<(String, String)> {
        let Self { t, worlds, snapshots } = self;
        let option = |kind: &str, name: &String| (name.clone(), format!("{kind} {name}"));
        let worlds = worlds.iter().map(|world| option(t.fork_world, &world.id));
        let snapshots = snapshots.iter().map(|snapshot| option(t.fork_snapshot, &snapshot.name));
        worlds.chain(snapshots).collect()
    }
}
