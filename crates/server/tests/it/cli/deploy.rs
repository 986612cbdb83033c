//! Checks `deploy/` and `docs/operating.md` against the program's options and variables, and against each
//! other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const DEPLOYED: [&str; 9] = [
    "deploy/Dockerfile",
    "deploy/compose/one-node.yaml",
    "deploy/compose/three-nodes.yaml",
    "deploy/compose/nats.conf",
    "deploy/compose/nginx.conf",
    "deploy/systemd/stagedoor.service",
    "deploy/systemd/stagedoor@.service",
    "deploy/systemd/stagedoor-backup.service",
    "deploy/systemd/stagedoor-doctor.service",
];

/// The help of the commands of an operator.
fn help() -> String {
    let help = |command| {
        let output = Command::new(env!("CARGO_BIN_EXE_stagedoor")).args([command, "--help"]).output();
        String::from_utf8(output.expect("it runs").stdout).expect("a text")
    };
    ["serve", "backup", "restore", "migrate", "doctor"].map(help).concat()
}

/// The words of a text with this prefix: letters, digits, `_` and `-`.
fn words<'t>(text: &'t str, beginning: &str) -> BTreeSet<&'t str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.starts_with(beginning));
    words.filter(|word| word.len() > beginning.len()).collect()
}

#[test]
fn every_named_variable_and_option_exists() {
    let help = help();
    let (variables, options) = (words(&help, "STAGEDOOR_"), words(&help, "--"));
    assert!(variables.len() > 10 && options.len() > 10, "the help was read");
    for path in DEPLOYED.into_iter().chain(["docs/operating.md", "docs/scaling.md"]) {
        let text = text(path);
        let named = words(&text, "STAGEDOOR_");
        // The build reads this one: crates/server/build.rs.
        let unknown: Vec<_> =
            named.difference(&variables).filter(|name| **name != "STAGEDOOR_COMMIT").collect();
        assert!(unknown.is_empty(), "{path} names {unknown:?}");
    }
    let operating = text("docs/operating.md");
    // Options of other programs never stand at the beginning of a code span.
    let named: BTreeSet<&str> =
        operating.split("`--").skip(1).map(|rest| rest.split(['`', ' ']).next().expect("a word")).collect();
    assert!(named.len() > 5, "{named:?}");
    let unknown: Vec<_> =
        named.iter().filter(|name| !options.contains(format!("--{name}").as_str())).collect();
    assert!(unknown.is_empty(), "docs/operating.md names {unknown:?}");
}

/// The subset of YAML in the compose files: maps, texts and lists in brackets, `&names` of maps, and `<<`.
#[derive(Clone, Debug, PartialEq)]
enum Yaml {
    Text(String),
    List(Vec<String>),
    Map(BTreeMap<String, Yaml>),
}

impl Yaml {
    fn parse(text: &str) -> Self {
        let lines: Vec<(usize, &str)> = text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
            .map(|line| (line.len() - line.trim_start().len(), line.trim()))
            .collect();
        let (mut at, mut anchors) = (0, BTreeMap::new());
        let map = Self::map(&lines, &mut at, 0, &mut anchors);
        assert_eq!(at, lines.len(), "{:?}", lines.get(at));
        map
    }

    fn map(
        lines: &[(usize, &str)],
        at: &mut usize,
        indent: usize,
        anchors: &mut BTreeMap<String, Self>,
    ) -> Self {
        let mut map = BTreeMap::new();
        while let Some((depth, line)) = lines.get(*at).filter(|(depth, _)| *depth >= indent) {
            assert_eq!(*depth, indent, "{line}");
            let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("no key: {line}"));
            let value = value.trim();
            *at += 1;
            if key == "<<" {
                let name = value.strip_prefix('*').expect("a name");
                let Self::Map(merged) = anchors[name].clone() else { panic!("{name} is no map") };
                merged.into_iter().for_each(|(key, value)| _ = map.entry(key).or_insert(value));
                continue;
            }
            let child = match lines.get(*at) {
                Some((depth, _)) if *depth > indent => Some(*depth),
                _ => None,
            };
            let value = match (value.strip_prefix('&'), child) {
                (Some(name), Some(depth)) => {
                    let map = Self::map(lines, at, depth, anchors);
                    anchors.insert(name.to_owned(), map.clone());
                    map
                }
                (None, Some(depth)) if value.is_empty() => Self::map(lines, at, depth, anchors),
                _ => Self::scalar(value),
            };
            assert!(map.insert(key.to_owned(), value).is_none(), "{key} comes twice");
        }
        Self::Map(map)
    }

    fn scalar(value: &str) -> Self {
        let plain = |text: &str| text.trim().trim_matches('"').to_owned();
        match value.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
            Some(list) => Self::List(list.split(',').map(plain).collect()),
            None => Self::Text(plain(value)),
        }
    }

    fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(map) => map.get(key),
            _ => None,
        }
    }

    fn keys(&self, key: &str) -> BTreeSet<&str> {
        match self.get(key) {
            Some(Self::Map(map)) => map.keys().map(String::as_str).collect(),
            _ => BTreeSet::new(),
        }
    }

    fn list(&self, key: &str) -> Vec<&str> {
        match self.get(key) {
            Some(Self::List(items)) => items.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Self::Text(text)) => Some(text),
            _ => None,
        }
    }
}

#[test]
fn the_compose_files_are_consistent() {
    for (name, nodes) in [("one-node", 1), ("three-nodes", 3)] {
        let file = Yaml::parse(&text(&format!("deploy/compose/{name}.yaml")));
        let Some(Yaml::Map(services)) = file.get("services") else { panic!("no services") };
        let (secrets, volumes, networks) =
            (file.keys("secrets"), file.keys("volumes"), file.keys("networks"));
        let mut bases = BTreeSet::new();
        for (service, about) in services {
            assert_eq!(about.text("restart"), Some("unless-stopped"), "{service}");
            assert!(about.list("depends_on").iter().all(|other| services.contains_key(*other)), "{service}");
            assert!(about.list("secrets").iter().all(|secret| secrets.contains(secret)), "{service}");
            assert!(about.list("networks").iter().all(|network| networks.contains(network)), "{service}");
            for volume in about.list("volumes") {
                let source = volume.split(':').next().expect("a source");
                let there = match source.strip_prefix("./") {
                    Some(file) => root().join("deploy/compose").join(file).is_file(),
                    None => volumes.contains(source),
                };
                assert!(there, "{service}: {volume}");
            }
            // Every `_FILE` variable names a secret that the service has.
            let environment = about.get("environment");
            if let Some(Yaml::Map(environment)) = environment {
                for (variable, value) in
                    environment.iter().filter(|(variable, _)| variable.ends_with("_FILE"))
                {
                    let Yaml::Text(path) = value else { panic!("{variable}") };
                    let secret = path.strip_prefix("/run/secrets/").expect("a secret");
                    assert!(about.list("secrets").contains(&secret), "{service}: {variable}");
                }
            }
            if about.text("image") != Some("stagedoor") {
                continue;
            }
            let build = about.get("build").expect("how it is built");
            assert_eq!(
                (build.text("context"), build.text("dockerfile")),
                (Some("../.."), Some("deploy/Dockerfile"))
            );
            assert_eq!(about.text("read_only"), Some("true"), "{service}");
            assert_eq!(about.list("cap_drop"), ["ALL"], "{service}");
            let core = about.get("ulimits").and_then(|ulimits| ulimits.text("core"));
            assert_eq!(core, Some("0"), "{service}: a core holds the keys");
            let environment = environment.expect("its settings");
            let base = environment.text("STAGEDOOR_SESSION_BASE").or(environment.text("STAGEDOOR_BASE_URL"));
            assert!(bases.insert(base.expect("a base")), "{service}: another node's sockets");
        }
        assert_eq!(bases.len(), nodes, "{name}");
    }
}

#[test]
fn the_balancer_routes_sessions_to_every_node() {
    let file = Yaml::parse(&text("deploy/compose/three-nodes.yaml"));
    let nginx = text("deploy/compose/nginx.conf");
    for node in ["node1", "node2", "node3"] {
        let environment = file.get("services").and_then(|services| services.get(node)?.get("environment"));
        let base = environment.and_then(|environment| environment.text("STAGEDOOR_SESSION_BASE"));
        assert_eq!(base, Some(format!("http://{node}.localhost:8080").as_str()));
        assert!(nginx.contains(&format!("server {node}:8080 ")), "{node} takes no REST");
        assert!(nginx.contains(&format!("~^{node}\\. {node}:8080;")), "{node} takes no sockets");
    }
    assert_eq!(nginx.matches('{').count(), nginx.matches('}').count());
}

/// The blocks of an nginx configuration that begin with these words, one level deep.
fn blocks<'t>(nginx: &'t str, begin: &str) -> Vec<&'t str> {
    let blocks = nginx.split(begin).skip(1);
    blocks.map(|block| block.split('}').next().expect("a block")).collect()
}

#[test]
fn the_balancer_names_its_clients_and_blocks_the_operators_endpoints() {
    let file = Yaml::parse(&text("deploy/compose/three-nodes.yaml"));
    let nginx = text("deploy/compose/nginx.conf");
    let balancer = file.get("services").and_then(|services| services.get("balancer")?.get("networks"));
    let address = balancer.and_then(|networks| networks.get("inside")?.text("ipv4_address"));
    for node in ["node1", "node2", "node3"] {
        let environment = file.get("services").and_then(|services| services.get(node)?.get("environment"));
        let trusted = environment.and_then(|environment| environment.text("STAGEDOOR_TRUSTED_PROXIES"));
        assert_eq!(trusted, address, "{node}");
    }
    assert!(address.is_some());
    let passing: Vec<_> =
        blocks(&nginx, "location ").into_iter().filter(|block| block.contains("proxy_pass")).collect();
    assert_eq!(passing.len(), 2);
    for block in passing {
        // A block with its own `proxy_set_header` inherits none, so it must set all of them.
        for header in ["Host $http_host", "X-Forwarded-For $remote_addr", "Forwarded \"\""] {
            assert!(block.contains(&format!("proxy_set_header {header};")), "{header}: {block}");
        }
    }
    for path in ["/platform", "/metrics", "/health"] {
        let denied = blocks(&nginx, &format!("location {path} {{"));
        assert!(denied.len() == 1 && denied[0].contains("return 404;"), "{path} is open");
    }
}

#[test]
fn nats_requires_a_password_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let nats = text("deploy/compose/nats.conf");
    let include = nats.lines().find_map(|line| line.strip_prefix("include ")).expect("its users");
    assert_eq!(include, "\"../../run/secrets/nats-authorization\"", "from /etc/nats");
    assert!(nats.contains("http: \"127.0.0.1:") && !nats.contains("http_port"), "monitoring is open");
    let file = text("deploy/compose/three-nodes.yaml");
    assert!(!file.contains("STAGEDOOR_BUS_URL:"), "the password would stand in the environment");
    // The password line that three-nodes.yaml describes.
    let line = file.lines().find(|line| line.ends_with(">nats-authorization")).expect("how it is made");
    let form = line.split('\'').nth(1).expect("a form").replace("%s", "bus-password");
    let (etc, secrets) = (folder.path().join("etc/nats"), folder.path().join("run/secrets"));
    for each in [&etc, &secrets] {
        std::fs::create_dir_all(each).expect("a folder");
    }
    std::fs::write(secrets.join("nats-authorization"), form.replace("\\n", "\n")).expect("it can be written");
    let configuration = etc.join("nats.conf");
    std::fs::write(&configuration, &nats).expect("it can be written");
    let check = Command::new(bus::testing::program()).arg("-t").arg("-c").arg(&configuration).output();
    let output = check.expect("nats-server runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The value of a constant in the test command.
fn tested(constant: &str) -> String {
    let script = text("test");
    let (_, behind) = script.split_once(&format!("{constant}=")).expect("the test command names it");
    behind.split_whitespace().next().expect("a value").to_owned()
}

#[test]
fn the_supported_releases_are_the_tested_ones() {
    let postgres = format!("PostgreSQL {} to {}", tested("POSTGRES_OLDEST"), tested("POSTGRES_NEWEST"));
    let nats = format!("NATS {} to {}", tested("NATS_OLDEST"), tested("NATS_NEWEST"));
    for path in ["README.md", "docs/operating.md"] {
        let text = text(path);
        assert!(
            text.contains(&postgres) && text.contains(&nats),
            "{path} does not promise {postgres}, {nats}"
        );
    }
}

#[test]
fn no_example_gives_a_secret_as_an_argument() {
    let documents =
        ["README.md", "docs/operating.md", "docs/drops.md", "docs/webhooks.md", "docs/clients.md"];
    let sources = ["crates/server/src/dev/world.rs"];
    for path in DEPLOYED.into_iter().chain(documents).chain(sources) {
        let text = text(path);
        for option in ["--operator-key ", "--client-secret ", "--service-key ", "--bus-url nats://"] {
            assert!(!text.contains(option), "{path}: {option}");
        }
    }
}

#[test]
fn the_image_runs_unprivileged_and_is_built_with_the_pinned_toolchain() {
    let image = text("deploy/Dockerfile");
    let toolchain = text("rust-toolchain.toml");
    let channel = toolchain.split('"').nth(1).expect("a channel");
    let minor = channel.rsplit_once('.').expect("a version").0;
    assert!(image.contains(&format!("FROM rust:{minor}-slim")), "the toolchain is {channel}");
    assert_eq!(image.lines().filter(|line| line.starts_with("FROM ")).count(), 2);
    let (_, last) = image.rsplit_once("FROM ").expect("a stage");
    let user = last.lines().find_map(|line| line.strip_prefix("USER ")).expect("a user");
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}");
    assert!(image.contains("STAGEDOOR_COMMIT=$COMMIT cargo build --release --locked"));
}

#[test]
fn systemd_accepts_the_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut checked = Vec::new();
    for (unit, instance) in
        [("stagedoor.service", "stagedoor.service"), ("stagedoor@.service", "stagedoor@node1.service")]
    {
        let text = text(&format!("deploy/systemd/{unit}"));
        for line in [
            "LimitCORE=0",
            "Restart=always",
            "StartLimitIntervalSec=0",
            "NoNewPrivileges=yes",
            "ProtectSystem=strict",
            "DynamicUser=yes",
        ] {
            assert!(text.lines().any(|each| each == line), "{unit} lacks {line}");
        }
        // From the second start on an empty place is refused. The file that says so has its own folder.
        let of =
            |key: &str| text.lines().filter_map(|line| line.strip_prefix(key)).collect::<Vec<_>>().join(" ");
        let marker = of("Environment=STAGEDOOR_EXISTING_MARKER=%S/");
        let (marked, _) = marker.rsplit_once('/').expect("a folder");
        let states = of("StateDirectory=");
        assert!(marked != "stagedoor" && states.split(' ').any(|state| state == marked), "{unit}: {marked}");
        let number = |key: &str| {
            let line =
                text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("{key}"));
            line.parse::<u64>().expect("a number")
        };
        assert!(number("LimitNOFILE=") >= 1_000_000);
        assert!(number("TimeoutStopSec=") >= 20);
        // The program is not installed here, so the path of the built one is used.
        let text = text.replace("/usr/local/bin/stagedoor", env!("CARGO_BIN_EXE_stagedoor"));
        let path = folder.path().join(instance);
        std::fs::write(&path, text.replace("EnvironmentFile=", "EnvironmentFile=-"))
            .expect("it can be written");
        checked.push(path);
    }
    // A machine that runs the tests may lack systemd.
    if let Ok(output) = Command::new("systemd-analyze").arg("verify").args(&checked).output() {
        let complaints = String::from_utf8_lossy(&output.stderr);
        let about_ours: Vec<_> = complaints.lines().filter(|line| line.contains("stagedoor")).collect();
        assert!(about_ours.is_empty(), "{about_ours:#?}");
    }
}
