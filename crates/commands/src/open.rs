//! `stagedoor open`: opens a page of the sandbox in the browser.

use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use http::Method;
use serde_json::json;

use crate::failure::CommandFailure;
use crate::target::{Target, TargetOptions};

/// `stagedoor open`
#[derive(Debug, Args)]
pub struct OpenOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// The page.
    #[arg(value_enum, default_value = "console")]
    page: Page,

    /// With `signin`: the application, by id or name. Default: the oldest one.
    #[arg(long, value_name = "NAME")]
    client: Option<String>,

    /// Prints the address, and opens nothing.
    #[arg(long)]
    print: bool,
}

/// A page of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Page {
    /// The console: what happens, live, and a button for all of it.
    Console,
    /// The documentation of every call.
    Docs,
    /// A sign-in to an application.
    Signin,
}

/// The programs that open an address, in the order in which they are tried. Each has the arguments before the
/// address.
const OPENERS: [(&str, &[&str]); 4] =
    [("xdg-open", &[]), ("open", &[]), ("wslview", &[]), ("cmd.exe", &["/c", "start", ""])];

/// Runs the command, and returns its output: the address.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &OpenOptions) -> Result<String, CommandFailure> {
    let target = options.target.find().await?;
    let url = match options.page {
        Page::Console => link(&target).await?,
        Page::Docs => format!("{}&to=/docs", link(&target).await?),
        Page::Signin => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(options.client.iter().map(|client| ("client", client)));
            let path = format!("/sandbox/v1/sign-in?{}", query.finish());
            let answer = target.call(Method::GET, &path, None, Duration::ZERO).await?;
            let url = answer["url"].as_str().unwrap_or_default();
            match url.strip_prefix(target.server().base()) {
                Some(page) => format!("{}&to={}", link(&target).await?, encoded(page)),
                None => url.to_owned(),
            }
        }
    };
    let is_opened = !options.print && open(&url);
    Ok(if options.target.json {
        format!("{}\n", json!({ "url": url, "opened": is_opened }))
    } else {
        format!("{url}\n")
    })
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// A new address that opens the console once.
async fn link(target: &Target) -> Result<String, CommandFailure> {
    let made = target.call(Method::POST, "/sandbox/v1/console-link", None, Duration::ZERO).await?;
    Ok(made["url"].as_str().unwrap_or_default().to_owned())
}

/// Starts the first program that exists. It outlives the command.
fn open(url: &str) -> bool {
    OPENERS.iter().any(|(program, arguments)| {
        let mut command = Command::new(program);
        command.args(*arguments).arg(url);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
    })
}
