//! The TLS of a sandbox in its description: the fixed hosts, and what makes programs trust them.

use std::collections::BTreeMap;

use commands::trust::quoted;
use sandbox::FixedHost;
use serde::Serialize;

use crate::Node;

/// What a program needs to reach the fixed hosts.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TlsEntry {
    /// The base URL for clients without a fixed host.
    base_url: String,
    /// The file of the local authority's certificate.
    authority: String,
    /// The file of the same certificate and the system's.
    bundle: String,
    hosts: Vec<FixedHost>,
    /// The lines for a hosts file.
    hosts_lines: Vec<String>,
    /// The variables that make programs trust the authority.
    environment: BTreeMap<&'static str, String>,
    /// The command that makes the truststore for Java, and the options of Java that name it.
    keytool: String,
    java_options: String,
}

impl TlsEntry {
    /// The TLS of a node; `None` without it.
    pub fn of(node: &Node) -> Option<Self> {
        let settings = node.settings().tls.as_ref()?;
        let trust = &settings.trust;
        Some(Self {
            base_url: format!("https://localhost:{}", node.address().port()),
            authority: trust.authority.display().to_string(),
            bundle: trust.bundle.display().to_string(),
            hosts: node.fixed_hosts()?.hosts,
            hosts_lines: settings.lines.iter().map(ToString::to_string).collect(),
            environment: trust.variables().into_iter().collect(),
            keytool: trust.keytool(),
            java_options: trust.java_options(),
        })
    }

    /// The same as text for a developer.
    pub fn text(&self) -> String {
        let Self { base_url, hosts, hosts_lines, environment, keytool, java_options, .. } = self;
        let mut out = format!("\nHTTPS, on the same port: {base_url}");
        for host in hosts {
            out += &format!(", {}", host.url);
        }
        let stagedoor = super::program::command();
        out += &format!(
            "\n`{stagedoor} run -- COMMAND` starts one command that knows these names and trusts them. For others:\n\n"
        );
        for (name, value) in environment {
            out += &format!("  export {name}={}\n", quoted(value));
        }
        out += &format!(
            "  {keytool}    # once, for Java\n  export JAVA_TOOL_OPTIONS={}\n",
            quoted(java_options)
        );
        if !hosts_lines.is_empty() {
            out += "\nThe lines for the hosts file, which --write-hosts writes:\n\n";
        }
        for line in hosts_lines {
            out += &format!("  {line}\n");
        }
        out
    }
}
