//! What packages of the program rely on: completions, manual pages, and the health check of containers.

use std::fs;

use crate::cli::process::{run, stagedoor};
use crate::cli::serving::{command, serve, stop};

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_manual_pages_name_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("share/man/man1");
    let mut manual = stagedoor(&["manual", pages.to_str().expect("a path")]);
    manual.env("STAGEDOOR_OPERATOR_KEY", "hunter2").env("STAGEDOOR_DATABASE_URL", "postgres://hunter2");
    let output = run(manual).await;
    assert_eq!((output.status.code(), output.stderr.as_str()), (Some(0), ""));
    let page = |name: &str| fs::read_to_string(pages.join(name)).expect("a page");
    assert!(page("stagedoor-serve.1").contains("STAGEDOOR_OPERATOR_KEY"));
    assert!(page("stagedoor-webhook-listen.1").starts_with(".ie"), "{}", page("stagedoor-webhook-listen.1"));

    for shell in ["bash", "zsh", "fish"] {
        let mut completions = stagedoor(&["completions", shell]);
        completions.env("STAGEDOOR_OPERATOR_KEY", "hunter2");
        let script = run(completions).await.stdout;
        assert!(!script.contains("hunter2"), "{shell}");
        // fish would run a command that stands in the help of a value.
        assert!(!script.contains("$(stagedoor"), "{shell}");
        let help = run(stagedoor(&["--help"])).await.stdout;
        let (_, commands) = help.split_once("Commands:\n").expect("the commands");
        let commands = commands.lines().take_while(|line| !line.is_empty());
        let names: Vec<_> = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
        assert!(names.len() > 20, "{names:?}");
        for name in names.into_iter().filter(|name| !name.is_empty() && *name != "help") {
            assert!(script.contains(name), "{shell} does not complete {name}");
            assert!(!page(&format!("stagedoor-{name}.1")).contains("hunter2"), "{name}");
        }
    }

    // A folder that cannot be made is a failure that names it; a shell without completions is wrong use.
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let refused = run(stagedoor(&["manual", file.join("man").to_str().expect("a path")])).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("/file/man: "), "{}", refused.stderr);
    assert_eq!(run(stagedoor(&["completions", "csh"])).await.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_of_a_node_is_an_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let (child, base_url) = serve(command(&folder), &folder).await;
    let address = base_url.strip_prefix("http://").expect("a URL").to_owned();
    let everywhere = address.replace("127.0.0.1", "0.0.0.0");
    for (listen, arguments, word) in
        [(&address, &["health"][..], "ready"), (&everywhere, &["health", "--live"], "live")]
    {
        let mut health = stagedoor(arguments);
        health.env("STAGEDOOR_LISTEN", listen);
        let output = run(health).await;
        assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
        assert_eq!(output.stdout, format!("{base_url} is {word}\n"));
    }
    // --server is asked instead of --listen.
    let output = run(stagedoor(&["health", "--server", &base_url, "--listen", "127.0.0.1:1"])).await;
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
    stop(child).await;
    let output = run(stagedoor(&["health", "--server", &base_url])).await;
    assert_eq!(output.status.code(), Some(3), "{}", output.stderr);
    assert!(output.stderr.contains(&base_url), "{}", output.stderr);
    assert_eq!(run(stagedoor(&["health", "--server", "nothing"])).await.status.code(), Some(2));
}
