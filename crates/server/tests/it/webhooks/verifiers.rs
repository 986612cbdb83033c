//! The verifiers in the code blocks of `docs/webhooks.md`, with genuine and forged messages.

use std::io::Write;
use std::path::Path;

use domain::delivery::signature;
use domain::secret::WebhookSecret;
use domain::{DeliveryId, Timestamp};
use tokio::process::Command;

use crate::cli::process::CommandOutput;
use crate::webhooks::verifier;

const DOCUMENT: &str = include_str!("../../../../../docs/webhooks.md");
const SECRETS: [&str; 2] = ["0123456789abcdef0123456789abcdef", "-!\"#$%&'()*+,./:;<=>?@[\\]^_`{|}~"];
const ID: &str = "019f75a4-5739-7128-b08a-e1ac19733c3e";
const BODY: &str = "{\"한글\":\"값 🚀\",\"a\":\"\\\\n\",\r\n \"b\":\"'$x`\"}\n";

/// A received message, the receiver's secrets, and whether the message is genuine.
struct Case {
    what: &'static str,
    id: &'static str,
    timestamp: String,
    signature: String,
    body: String,
    secrets: Vec<&'static str>,
    genuine: bool,
}

fn signed(secret: &str, at: Timestamp) -> String {
    let secret = WebhookSecret::given(secret).expect("a secret");
    signature(&secret, &DeliveryId::stored(ID.to_owned()), at, BODY.as_bytes())
}

/// The cases for every verifier. `fresh` is whether the verifier checks the date itself.
fn cases(fresh: bool) -> Vec<Case> {
    let now = service::Clock::system().now();
    let case = |what, genuine, change: &dyn Fn(&mut Case)| {
        let mut case = Case {
            what,
            id: ID,
            timestamp: now.rfc3339(),
            signature: signed(SECRETS[0], now),
            body: BODY.to_owned(),
            secrets: vec![SECRETS[0]],
            genuine,
        };
        change(&mut case);
        case
    };
    let dated = |ms: i64| {
        move |case: &mut Case| {
            case.timestamp = now.plus_ms(ms).rfc3339();
            case.signature = signed(SECRETS[0], now.plus_ms(ms));
        }
    };
    vec![
        case("as it was sent", true, &|_| ()),
        case("the second of two secrets", true, &|case| case.secrets = vec![SECRETS[1], SECRETS[0]]),
        case("the first of two secrets", true, &|case| case.secrets = SECRETS.to_vec()),
        case("a secret of every other sign", true, &|case| {
            case.signature = signed(SECRETS[1], now);
            case.secrets = vec![SECRETS[1]];
        }),
        case("another secret", false, &|case| case.secrets = vec![SECRETS[1]]),
        case("no secret", false, &|case| case.secrets = Vec::new()),
        case("another body", false, &|case| case.body.push(' ')),
        case("another id", false, &|case| case.id = "019f75a4-5739-7128-b08a-e1ac19733c3f"),
        case("another timestamp", false, &|case| case.timestamp = now.plus_ms(1).rfc3339()),
        case("no signature", false, &|case| case.signature.clear()),
        case("half a signature", false, &|case| case.signature.truncate(39)),
        case("a signature without its name", false, &|case| drop(case.signature.drain(..7))),
        case("a signature that is no hex", false, &|case| case.signature.replace_range(7..9, "é")),
        case("a minute ago", true, &dated(-60_000)),
        case("ten minutes ago", !fresh, &dated(-600_000)),
        case("in ten minutes", !fresh, &dated(600_000)),
    ]
}

/// The only code block of the document in a language.
fn block(language: &str) -> &'static str {
    let section = DOCUMENT.split("\n## Verifying\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("its end");
    let fence = format!("\n```{language}\n");
    let mut blocks = section.split(&fence).skip(1);
    let block = blocks.next().and_then(|rest| rest.split("```").next()).expect("a block");
    assert!(blocks.next().is_none(), "{language} stands twice");
    block
}

/// Runs a program with id, timestamp, signature, the body's file and the secrets; it prints `true` or
/// `false`. A language that is not installed is reported on stderr.
async fn try_out(language: &str, command: &[&str], file: &str, program: String) {
    if Command::new(command[0]).arg("--version").output().await.is_err() {
        let written = writeln!(std::io::stderr(), "NOT AT HAND: {}: its verifier was not run", command[0]);
        return written.expect("stderr");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    if language == "java" {
        std::fs::write(folder.path().join("Main.java"), program).expect("a program");
        let mut compiler = Command::new("javac");
        compiler.arg("Main.java").current_dir(folder.path());
        let output = crate::cli::process::run(compiler).await;
        assert!(output.status.success(), "{}", output.stderr);
    } else {
        std::fs::write(folder.path().join(file), program).expect("a program");
    }
    for case in cases(true) {
        let output = one(folder.path(), command, file, &case).await;
        let outcome = (output.status.success(), output.stdout.trim());
        let expected = (true, if case.genuine { "true" } else { "false" });
        assert_eq!(outcome, expected, "{language}, {}: {}", case.what, output.stderr);
    }
}

async fn one(folder: &Path, command: &[&str], file: &str, case: &Case) -> CommandOutput {
    std::fs::write(folder.join("body"), &case.body).expect("a body");
    let mut program = Command::new(command[0]);
    program.args(&command[1..]).args([file, case.id, &case.timestamp, &case.signature, "body"]);
    program.args(&case.secrets).current_dir(folder);
    // With this locale, non-ASCII arguments arrive unchanged.
    program.env("LC_ALL", "C.UTF-8");
    crate::cli::process::run(program).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_verifier() {
    let rest = "\nif verify \"$@\"; then echo true; else echo false; fi\n";
    try_out("sh", &["bash"], "verify.sh", format!("{}{rest}", block("sh"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_verifier() {
    let rest = "
import sys
message_id, timestamp, signature, body, *secrets = sys.argv[1:]
print(str(verify(secrets, message_id, timestamp, signature, open(body, 'rb').read())).lower())
";
    try_out("python", &["python3"], "verify.py", format!("{}{rest}", block("python"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_verifier() {
    let rest = "
const [id, timestamp, signature, body, ...secrets] = process.argv.slice(2);
console.log(verify(secrets, id, timestamp, signature, require('node:fs').readFileSync(body)));
";
    try_out("js", &["node"], "verify.js", format!("{}{rest}", block("js"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_in_java() {
    let (imports, class) = block("java").split_once("\n\n").expect("imports, then the class");
    let main = "
class Main {
  public static void main(String[] given) throws Exception {
    byte[] body = java.nio.file.Files.readAllBytes(java.nio.file.Path.of(given[3]));
    List<String> secrets = List.of(given).subList(4, given.length);
    System.out.println(Webhook.verify(secrets, given[0], given[1], given[2], body));
  }
}
";
    try_out("java", &["java", "-cp", "."], "Main", format!("{imports}\n{main}\n{class}")).await;
}

#[test]
fn the_one_in_rust() {
    assert_eq!(block("rust"), include_str!("verifier.rs"), "what is compiled here is what stands there");
    for Case { what, id, timestamp, signature, body, secrets, genuine } in cases(false) {
        let found = verifier::verify(&secrets, id, &timestamp, &signature, body.as_bytes());
        assert_eq!(found, genuine, "{what}");
    }
}
