//! Further worlds in the process of a sandbox: isolation, reset, snapshots, forks, one file.

use serde_json::{Value, json};
use testkit::{Api, Connection, Request, patiently};

use crate::cli::process::{Sandbox, run, stagedoor, stagedoor_in};

const WORLDS: &str = "/sandbox/v1/worlds";

/// A sandbox, and calls about its worlds.
struct Host {
    sandbox: Sandbox,
    _folder: tempfile::TempDir,
}

impl Host {
    async fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { sandbox: Sandbox::start(folder.path(), options).await, _folder: folder }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = Request::post(format!("{WORLDS}{path}")).json(&body);
        self.sandbox.api.operator(request).await.content()
    }

    /// Starts a world, and returns its description.
    async fn world(&self, body: Value) -> World {
        World::of(self.post("", body).await)
    }

    /// The status and the message of a refused call.
    async fn refused(&self, request: Request) -> (u16, String) {
        let answer = self.sandbox.api.operator(request).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        (answer.status, message)
    }
}

/// A described world.
struct World {
    description: Value,
    api: Api,
}

impl World {
    fn of(description: Value) -> Self {
        let text = |name: &str| description[name].as_str().expect("a text").to_owned();
        let api = Api::new(&text("baseUrl"), &text("operatorKey"));
        Self { description, api }
    }

    fn id(&self) -> &str {
        self.description["worldId"].as_str().expect("an id")
    }

    /// The access token of the first person for the first application.
    fn token(&self) -> &str {
        self.description["users"][0]["tokens"]["demo"]["accessToken"].as_str().expect("a token")
    }

    /// The names of the followers of the first person.
    async fn followers(&self) -> usize {
        let followers = Request::get("/open/v1/channels/followers?size=50").bearer(self.token());
        self.api.send(followers).await.content()["data"].as_array().expect("a list").len()
    }

    async fn follow(&self) {
        let body = json!({ "channel": "haneul", "from": "nuri" });
        self.api.operator(Request::post("/sandbox/v1/trigger/follow").json(&body)).await.content();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worlds_are_isolated_and_have_a_port_a_key_and_a_clock_of_their_own() {
    let host = Host::start(&[]).await;
    let one = host.world(json!({ "name": "one", "seed": 7, "clock": "2027-01-01T00:00:00Z" })).await;
    let two = host.world(json!({})).await;
    assert_eq!((one.id(), two.id()), ("one", "world-1"));
    assert_ne!(one.description["baseUrl"], two.description["baseUrl"]);
    assert_ne!(one.description["operatorKey"], two.description["operatorKey"]);
    one.follow().await;
    assert_eq!((one.followers().await, two.followers().await), (5, 4));
    assert_eq!(two.api.me(one.token()).await.status, 401);
    let clock = one.api.operator(Request::get("/sandbox/v1/clock")).await.content();
    assert_eq!((&clock["now"], &clock["mode"]), (&json!("2027-01-01T00:00:00.000Z"), &json!("frozen")));
    let clock = two.api.operator(Request::get("/sandbox/v1/clock")).await.content();
    assert_eq!(clock["mode"], "real");
    let mut socket = two.api.open_user_session(two.token()).await;
    socket.ping().await;
    let listed = host.sandbox.api.operator(Request::get(WORLDS)).await.content();
    let ids: Vec<_> =
        listed["data"].as_array().expect("a list").iter().map(|world| &world["worldId"]).collect();
    assert_eq!(ids, ["main", "one", "world-1"]);
    // A world can be called about all worlds.
    let deleted = Request::delete(format!("{WORLDS}/one"));
    assert_eq!(two.api.operator(deleted).await.status, 200);
    assert!(Connection::try_open(one.api.address()).await.is_none());
    assert_eq!(host.refused(Request::delete(format!("{WORLDS}/one"))).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_and_a_restore_bring_a_world_back_on_the_same_connection() {
    let host = Host::start(&["--seed", "7"]).await;
    let main = World::of({
        let mut main = host.sandbox.world.clone();
        main["worldId"] = json!("main");
        main
    });
    let child = host.world(json!({ "name": "child" })).await;
    for world in [&main, &child] {
        let socket = world.api.open_user_session(world.token()).await;
        let mut kept = Connection::open(world.api.address()).await;
        let me = Request::get("/open/v1/users/me").bearer(world.token());
        assert_eq!(kept.send(&me).await.status, 200);
        world.follow().await;
        let taken = host.post(&format!("/{}/snapshots", world.id()), json!({ "name": "followed" })).await;
        assert_eq!((&taken["name"], &taken["worldId"]), (&json!("followed"), &json!(world.id())));
        let advance = Request::post("/sandbox/v1/clock").json(&json!({ "advance": "40d" }));
        world.api.operator(advance).await.content();
        assert_eq!(world.api.me(world.token()).await.status, 401, "the token has expired");

        let reset = host.post(&format!("/{}/reset", world.id()), json!({})).await;
        assert_eq!(reset["users"], world.description["users"]);
        assert_eq!(reset["baseUrl"], world.description["baseUrl"]);
        assert_eq!(socket.closed().await.1, "server_shutdown");
        assert_eq!(kept.send(&me).await.status, 200, "the connection stayed");
        assert_eq!(world.followers().await, 4);

        host.post(&format!("/{}/restore", world.id()), json!({ "snapshot": "followed" })).await;
        assert_eq!(kept.send(&me).await.status, 200);
        assert_eq!(world.followers().await, 5);
        let mut socket = world.api.open_user_session(world.token()).await;
        socket.ping().await;
    }
    let fork = host.world(json!({ "from": "followed" })).await;
    assert_eq!((fork.followers().await, fork.token()), (5, child.token()));
    assert_ne!(fork.description["baseUrl"], child.description["baseUrl"]);
    fork.api.send_chat(fork.token(), "hello").await.content();
    let fork_of_world = host.world(json!({ "from": "child", "seed": 9 })).await;
    assert_eq!(fork_of_world.followers().await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_reset_leaves_the_world_as_it_was() {
    let temporary = tempfile::tempdir().expect("a folder");
    let mut dev = stagedoor(&["dev", "--json", "--listen", "127.0.0.1:0"]);
    dev.env("TMPDIR", temporary.path()).stdout(std::process::Stdio::piped());
    dev.stderr(std::process::Stdio::null());
    let sandbox = Sandbox::of(dev, temporary.path().join("log")).await;
    let main = World::of({
        let mut main = sandbox.world.clone();
        main["worldId"] = json!("main");
        main
    });
    main.follow().await;
    let folders = std::fs::read_dir(temporary.path()).expect("a folder");
    let folder = folders.map(|entry| entry.expect("an entry").path()).find(|path| path.is_dir());
    // The first file of the process is the state that a reset of the main world goes back to.
    let origin = folder.expect("the folder of the process").join("0.db");
    let bytes = std::fs::read(&origin).expect("a database");
    std::fs::write(&origin, "no database").expect("a file");
    let mut kept = Connection::open(main.api.address()).await;
    let reset = || Request::post(format!("{WORLDS}/main/reset"));
    let failed = sandbox.api.operator(reset()).await;
    assert!(failed.status == 500 && failed.text().contains("goes on as it was"), "{}", failed.text());
    let me = Request::get("/open/v1/users/me").bearer(main.token());
    assert_eq!(kept.send(&me).await.status, 200, "the connection stayed");
    assert_eq!(main.followers().await, 5);
    main.api.open_user_session(main.token()).await.ping().await;
    std::fs::write(&origin, bytes).expect("a file");
    sandbox.api.operator(reset()).await.content();
    assert_eq!(main.followers().await, 4);
    sandbox.signal("TERM").await;
    assert!(sandbox.end().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_reach_a_world_by_its_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["dev", "--json", "--listen", "127.0.0.1:0", "--clock", "2027-01-01T00:00:00Z"];
    let mut dev = stagedoor_in(folder.path(), &arguments);
    dev.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let sandbox = Sandbox::of(dev, folder.path().join("log")).await;
    let command = async |arguments: &[&str]| run(stagedoor_in(folder.path(), arguments)).await;
    let new = command(&["world", "new", "pinned", "--clock", "2028-01-01T00:00:00Z", "--json"]).await;
    assert!(new.status.success(), "{}", new.stderr);
    for (arguments, expected) in [
        (vec!["clock", "--world", "pinned"], "2028-01-01T00:00:00.000Z"),
        (vec!["clock", "--world", "main"], "2027-01-01T00:00:00.000Z"),
        (vec!["clock"], "2027-01-01T00:00:00.000Z"),
        (vec!["world", "list", "--world", "pinned"], "\npinned "),
    ] {
        let ran = command(&arguments).await;
        assert!(ran.status.success() && ran.stdout.contains(expected), "{} {}", ran.stdout, ran.stderr);
    }
    let token = command(&["token", "--world", "pinned", "--user", "bada"]).await;
    let pinned = World::of(serde_json::from_str(&new.stdout).expect("JSON"));
    assert_eq!(pinned.api.me(token.stdout.trim()).await.content()["channelId"], "streamer-bada");
    let mut by_variable = stagedoor_in(folder.path(), &["env", "--format", "json"]);
    by_variable.env("STAGEDOOR_WORLD_ID", "pinned");
    let environment: Value = serde_json::from_str(&run(by_variable).await.stdout).expect("JSON");
    assert_eq!(environment["STAGEDOOR_BASE_URL"], pinned.description["baseUrl"]);
    let unknown = command(&["token", "--world", "nothing"]).await;
    assert_eq!(unknown.status.code(), Some(3), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("These run: main, pinned."), "{}", unknown.stderr);
    sandbox.signal("TERM").await;
    assert!(sandbox.end().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_with_a_seed_and_a_frozen_clock_goes_on_the_same_way() {
    let host = Host::start(&[]).await;
    let world = host.world(json!({ "name": "one", "seed": 7, "clock": "2027-01-01T00:00:00Z" })).await;
    host.post("/one/snapshots", json!({ "name": "before" })).await;
    let script = async || {
        let issued = world.api.operator(Request::post("/sandbox/v1/tokens").json(&json!({}))).await;
        let me = world.api.me(world.token()).await;
        format!("{:?} {} {:?} {}", issued.headers, issued.text(), me.headers, me.text())
    };
    let first = script().await;
    host.post("/one/restore", json!({ "snapshot": "before" })).await;
    assert_eq!(script().await, first);
    host.post("/one/reset", json!({})).await;
    assert_eq!(script().await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_world_is_one_file_that_loads_into_another_process() {
    let host = Host::start(&[]).await;
    let world = host.world(json!({ "name": "one", "seed": 7 })).await;
    world.follow().await;
    let exported = host.sandbox.api.operator(Request::get(format!("{WORLDS}/one/export"))).await;
    let other = Host::start(&[]).await;
    let import = Request::post(format!("{WORLDS}/import?name=bug"));
    let imported = import.header("content-type", "application/json").body(exported.body.clone());
    let imported = World::of(other.sandbox.api.operator(imported).await.content());
    assert_eq!((imported.id(), imported.token()), ("bug", world.token()));
    assert_eq!(imported.followers().await, 5);
    for (change, field) in [
        (json!({ "format": "other" }), "format"),
        (json!({ "version": 2 }), "version"),
        (json!({ "database": "bm90aGluZw==" }), "database"),
        (json!({ "database": "U1FMaXRlIGZvcm1hdCAzAG5vdGhpbmc=" }), "database"),
        (json!({ "more": 1 }), "body"),
    ] {
        let mut file = exported.content();
        for (name, value) in change.as_object().expect("an object") {
            file[name] = value.clone();
        }
        let request = Request::post(format!("{WORLDS}/import")).json(&file);
        let (status, message) = other.refused(request).await;
        assert!(status == 400 && message.starts_with(&format!("{field}: ")), "{status} {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_calls_are_refused_by_their_field_and_change_nothing() {
    let host = Host::start(&[]).await;
    let post = |path: &str, body: &Value| Request::post(format!("{WORLDS}{path}")).json(body);
    host.world(json!({ "name": "one" })).await;
    for (path, body, status, field) in [
        ("", json!({ "name": "one" }), 400, "name"),
        ("", json!({ "name": "no name" }), 400, "name"),
        ("", json!({ "seed": -1 }), 400, "seed"),
        ("", json!({ "clock": "tomorrow" }), 400, "clock"),
        ("", json!({ "from": "nothing" }), 404, "from"),
        ("", json!({ "from": "one", "world": {} }), 400, "world"),
        ("", json!({ "sead": 1 }), 400, "sead"),
        ("", json!({ "world": { "people": [{ "channelId": "a" }] } }), 400, "world.people[0]"),
        (
            "",
            json!({ "world": { "follows": [{ "channelId": "a", "followerChannelId": "b" }] } }),
            400,
            "world.follows[0].channelId",
        ),
        ("/one/snapshots", json!({}), 400, ""),
        ("/one/snapshots", json!({ "name": "main" }), 400, "name"),
        ("/one/restore", json!({ "snapshot": "nothing" }), 404, "snapshot"),
        ("/two/reset", json!({}), 404, "worldId"),
    ] {
        let (found, message) = host.refused(post(path, &body)).await;
        assert!(found == status && message.starts_with(field), "{body}: {found} {message}");
    }
    assert_eq!(host.refused(Request::delete(format!("{WORLDS}/main"))).await.0, 400);
    let listed = host.sandbox.api.operator(Request::get(WORLDS)).await.content();
    assert_eq!(listed["data"].as_array().expect("a list").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_at_most_fifty_worlds() {
    let host = Host::start(&[]).await;
    for number in 0..50 {
        host.world(json!({ "name": format!("w{number}"), "world": {} })).await;
    }
    let create = || Request::post(WORLDS).json(&json!({}));
    let (status, message) = host.refused(create()).await;
    assert!(status == 409 && message.contains("50"), "{status} {message}");
    host.sandbox.api.operator(Request::delete(format!("{WORLDS}/w7"))).await.content();
    assert_eq!(host.sandbox.api.operator(create()).await.status, 200);
    host.sandbox.signal("TERM").await;
    assert!(host.sandbox.end().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_a_killed_process_is_deleted_at_the_next_start() {
    let temporary = tempfile::tempdir().expect("a folder");
    let start = async || {
        let mut dev = stagedoor(&["dev", "--json", "--listen", "127.0.0.1:0"]);
        dev.env("TMPDIR", temporary.path()).stdout(std::process::Stdio::piped());
        dev.stderr(std::process::Stdio::null());
        Sandbox::of(dev, temporary.path().join("log")).await
    };
    let folders = || {
        let entries = std::fs::read_dir(temporary.path()).expect("a folder");
        entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count()
    };
    let killed = start().await;
    killed.api.operator(Request::post(WORLDS).json(&json!({}))).await.content();
    killed.signal("KILL").await;
    assert!(!killed.end().await.0.success());
    assert_eq!(folders(), 1);
    let next = start().await;
    assert_eq!(folders(), 1);
    next.signal("TERM").await;
    assert!(next.end().await.0.success());
    assert_eq!(folders(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_refused_while_its_sandbox_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let dev = |name: &str| {
        stagedoor_in(folder.path(), &["dev", "--json", "--listen", "127.0.0.1:0", "--name", name])
    };
    let start = async || {
        let mut dev = dev("bot");
        dev.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        Sandbox::of(dev, folder.path().join("log")).await
    };
    let first = start().await;
    let refused = run(dev("bot")).await;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("a sandbox named bot runs already at http://"), "{}", refused.stderr);
    let clock = run(stagedoor_in(folder.path(), &["clock", "--sandbox", "bot"])).await;
    assert!(clock.status.success(), "the first one is found: {}", clock.stderr);
    first.signal("KILL").await;
    assert!(!first.end().await.0.success());
    let second = start().await;
    second.signal("TERM").await;
    assert!(second.end().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_that_start_at_once_have_names_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = async |number: usize| {
        let mut dev = stagedoor_in(folder.path(), &["dev", "--json", "--listen", "127.0.0.1:0"]);
        dev.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        Sandbox::of(dev, folder.path().join(format!("log-{number}"))).await
    };
    let (one, two, three) = tokio::join!(start(1), start(2), start(3));
    for name in ["default", "default-2", "default-3"] {
        let found = run(stagedoor_in(folder.path(), &["clock", "--sandbox", name])).await;
        assert!(found.status.success(), "{name}: {}", found.stderr);
    }
    for sandbox in [one, two, three] {
        sandbox.signal("TERM").await;
        assert!(sandbox.end().await.0.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_sandbox_are_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).expect("a folder");
    let mut dev = stagedoor_in(folder.path(), &["dev", "--json", "--listen", "127.0.0.1:0"]);
    dev.env("TMPDIR", &temporary).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let sandbox = Sandbox::of(dev, folder.path().join("log")).await;
    let export = sandbox.api.operator(Request::get("/sandbox/v1/worlds/main/export")).await;
    assert_eq!(export.status, 200);
    sandbox.api.operator(Request::post("/sandbox/v1/worlds").json(&json!({ "name": "two" }))).await.content();
    let (mut folders, mut seen) = (vec![temporary.clone()], 0);
    while let Some(path) = folders.pop() {
        for entry in std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry")) {
            let found = entry.metadata().expect("its mode");
            assert_eq!(found.permissions().mode() & 0o077, 0, "{}", entry.path().display());
            seen += 1;
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    assert!(seen > 4, "{seen}");
    sandbox.signal("TERM").await;
    assert!(sandbox.end().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_does_what_the_calls_do() {
    let host = Host::start(&[]).await;
    let command = async |arguments: &[&str]| {
        let mut command = stagedoor(&["world"]);
        command.args(arguments);
        command.env("STAGEDOOR_SERVER", host.sandbox.world["baseUrl"].as_str().expect("a text"));
        command.env("STAGEDOOR_OPERATOR_KEY", host.sandbox.world["operatorKey"].as_str().expect("a text"));
        run(command).await
    };
    let new = command(&["new", "one", "--seed", "7", "--json"]).await;
    let world = World::of(serde_json::from_str(&new.stdout).expect("JSON"));
    assert_eq!(world.id(), "one");
    world.follow().await;
    assert!(command(&["snapshot", "before", "--of", "one"]).await.stdout.contains("before of one"));
    assert!(command(&["reset", "one"]).await.status.success());
    assert_eq!(world.followers().await, 4);
    assert!(command(&["restore", "before", "--to", "one"]).await.stdout.starts_with("one "));
    assert_eq!(world.followers().await, 5);
    let listed = command(&["list"]).await.stdout;
    assert!(
        listed.starts_with("main ") && listed.contains("\none ") && listed.contains("seed 7"),
        "{listed}"
    );
    assert!(listed.contains("snapshot before of one"), "{listed}");
    let file = host._folder.path().join("one.json");
    let path = file.to_str().expect("UTF-8");
    assert!(command(&["export", "one", "--full", "--output", path]).await.status.success());
    assert!(command(&["delete", "one"]).await.stdout.contains("deleted one"));
    let again = World::of(
        serde_json::from_str(&command(&["import", path, "--name", "again", "--json"]).await.stdout)
            .expect("JSON"),
    );
    assert_eq!(again.followers().await, 5);
    let unknown = command(&["reset", "nothing"]).await;
    assert_eq!(unknown.status.code(), Some(1), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("there is no world nothing"), "{}", unknown.stderr);
    assert_eq!(command(&["reset", "no/id"]).await.status.code(), Some(2));
    let schema: Value = serde_json::from_str(&command(&["schema"]).await.stdout).expect("JSON");
    assert!(schema["properties"]["applications"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_wait_while_a_world_is_reset() {
    let host = Host::start(&[]).await;
    let world = host.world(json!({ "name": "one" })).await;
    let calls = async {
        for _ in 0..200 {
            let status = world.api.me(world.token()).await.status;
            assert_eq!(status, 200);
        }
    };
    let resets = async {
        for _ in 0..3 {
            let reset = host.post("/one/reset", json!({}));
            patiently("the reset ends", reset).await;
        }
    };
    tokio::join!(calls, resets);
}
