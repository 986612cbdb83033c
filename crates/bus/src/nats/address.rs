//! The address of NATS, and the subjects of this service.

use std::fmt;

use domain::{ChannelId, NodeId};

use crate::Message;

/// The default port.
const PORT: u16 = 4_222;
/// Maximum number of servers of an address.
const SERVERS_MAX: usize = 16;
/// Maximum length of a prefix, in bytes.
const PREFIX_BYTES_MAX: usize = 64;

/// The address of NATS: `nats://user:password@host:port`, or a token before the `@`, and further servers of
/// the same cluster after commas. `Debug` and `Display` hide the login.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(super) servers: Vec<Server>,
    pub(super) login: Login,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
}

/// How this node signs in.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Login {
    Anonymous,
    Token(String),
    User { user: String, password: String },
}

/// What is wrong with an address or a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// Not `nats://`.
    #[error("must begin with nats://")]
    Scheme,
    /// TLS is not supported.
    #[error(
        "must begin with nats://: TLS is not spoken here, so let a private network or a tunnel carry the bus"
    )]
    Tls,
    /// No host, a strange port, or too many servers.
    #[error("must name its servers as host or host:port, separated by commas")]
    Servers,
    /// `%` without two hexadecimal digits behind it, or no UTF-8.
    #[error("has a wrong %-escape in front of its @")]
    Login,
    /// Not a subject prefix.
    #[error("must be words of ASCII letters, digits, - and _, separated by dots, 64 bytes in all")]
    Prefix,
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    /// What is wrong with the address, without its text.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        if text.starts_with("tls://") {
            return Err(BadAddress::Tls);
        }
        let rest = text.strip_prefix("nats://").ok_or(BadAddress::Scheme)?;
        let (login, hosts) = match rest.rsplit_once('@') {
            Some((login, hosts)) => (Login::parse(login)?, hosts),
            None => (Login::Anonymous, rest),
        };
        let hosts = hosts.strip_suffix('/').unwrap_or(hosts);
        let servers: Vec<_> = hosts.split(',').map(Server::parse).collect::<Result<_, _>>()?;
        if servers.len() > SERVERS_MAX { Err(BadAddress::Servers) } else { Ok(Self { servers, login }) }
    }
}

impl Server {
    fn parse(text: &str) -> Result<Self, BadAddress> {
        let text = text.strip_prefix("nats://").unwrap_or(text);
        // An IPv6 address is in brackets, because it contains colons.
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or(BadAddress::Servers)?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| BadAddress::Servers)?,
            None if port.is_empty() => PORT,
            None => return Err(BadAddress::Servers),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':');
        if host.is_empty() || !host.bytes().all(plain) {
            return Err(BadAddress::Servers);
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl Login {
    fn parse(text: &str) -> Result<Self, BadAddress> {
        Ok(match text.split_once(':') {
            Some((user, password)) => Self::User { user: unescape(user)?, password: unescape(password)? },
            None => Self::Token(unescape(text)?),
        })
    }
}

fn unescape(text: &str) -> Result<String, BadAddress> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'%' {
            let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16)).ok_or(BadAddress::Login);
            (digit()? * 16 + digit()?) as u8
        } else {
            byte
        };
        plain.push(byte);
    }
    String::from_utf8(plain).map_err(|_| BadAddress::Login)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nats://")?;
        if self.login != Login::Anonymous {
            f.write_str("…@")?;
        }
        for (at, Server { host, port }) in self.servers.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }?;
        }
        Ok(())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The prefix of every subject of this service, so that several services can share one NATS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Default for Prefix {
    fn default() -> Self {
        Self("stagedoor".to_owned())
    }
}

impl Prefix {
    /// Parses a prefix.
    ///
    /// # Errors
    /// [`BadAddress::Prefix`].
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_plain);
        if text.len() <= PREFIX_BYTES_MAX && text.split('.').all(is_word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadAddress::Prefix)
        }
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn of_channel(&self, channel: &ChannelId) -> String {
        format!("{}.event.{}", self.0, word(channel.as_str()))
    }

    pub(super) fn of_node(&self, node: &NodeId) -> String {
        format!("{}.node.{}", self.0, word(node.as_str()))
    }

    /// The subject of a message.
    pub(super) fn of_message(&self, message: &Message) -> String {
        match message {
            Message::Event(event) => self.of_channel(&event.channel_id),
            Message::SessionChanged { node, .. }
            | Message::SessionEvicted { node, .. }
            | Message::NodeDeclaredDead { node } => self.of_node(node),
        }
    }

    /// The channel of a subject of events.
    pub(super) fn channel_of(&self, subject: &str) -> Option<ChannelId> {
        let word = subject.strip_prefix(self.0.as_str())?.strip_prefix(".event.")?;
        Some(ChannelId::stored(unescape(&word.replace('~', "%")).ok()?))
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// An id as one token of a subject. Dots separate tokens and some bytes are wildcards, so they are escaped.
fn word(id: &str) -> String {
    let mut word = String::with_capacity(id.len());
    for byte in id.bytes() {
        if is_plain(byte) { word.push(byte.into()) } else { word.push_str(&format!("~{byte:02X}")) }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let shown = |text: &str| Address::parse(text).map(|address| address.to_string());
        for (text, expected) in [
            ("nats://bus", Ok("nats://bus:4222")),
            ("nats://bus:1234/", Ok("nats://bus:1234")),
            ("nats://me:s%40cret@a,nats://b:1,[::1]:7", Ok("nats://…@a:4222,b:1,[::1]:7")),
            ("nats://t0ken@10.0.0.1", Ok("nats://…@10.0.0.1:4222")),
            ("tls://bus", Err(BadAddress::Tls)),
            ("http://bus", Err(BadAddress::Scheme)),
            ("nats://", Err(BadAddress::Servers)),
            ("nats://a,", Err(BadAddress::Servers)),
            ("nats://a:x", Err(BadAddress::Servers)),
            ("nats://a:70000", Err(BadAddress::Servers)),
            ("nats://[::1", Err(BadAddress::Servers)),
            ("nats://a b", Err(BadAddress::Servers)),
            ("nats://a/b", Err(BadAddress::Servers)),
            ("nats://u%4:p@a", Err(BadAddress::Login)),
            ("nats://%ff@a", Err(BadAddress::Login)),
        ] {
            assert_eq!(shown(text), expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn logins_are_parsed_and_never_shown() {
        let address = Address::parse("nats://me:s%40cr%3Aet@a").expect("good");
        assert!(address.login == Login::User { user: "me".into(), password: "s@cr:et".into() });
        assert!(Address::parse("nats://s3cret@a").expect("good").login == Login::Token("s3cret".into()));
        assert!(!format!("{address:?} {address}").contains("cr"));
    }

    #[test]
    fn prefixes_are_words() {
        for (text, ok) in [("a", true), ("a.b-c_D9", true), (&"p".repeat(64), true), (&"p".repeat(65), false)]
        {
            assert_eq!(Prefix::parse(text).is_ok(), ok, "{text}");
        }
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "한", "a\r\n"] {
            assert_eq!(Prefix::parse(text), Err(BadAddress::Prefix), "{text}");
        }
    }

    #[test]
    fn every_id_is_one_word_and_comes_back() {
        let prefix = Prefix::default();
        for id in ["haneul", "a.b", "..a", "A-b_9", "~2E", "%2E", "한 > *", "."] {
            let channel = ChannelId::stored(id.into());
            let subject = prefix.of_channel(&channel);
            assert_eq!(subject.split('.').count(), 3, "{subject}");
            assert!(subject.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'*' | b'>')), "{subject}");
            assert_eq!(prefix.channel_of(&subject), Some(channel));
        }
        assert_eq!(prefix.of_channel(&ChannelId::stored("a.b".into())), "stagedoor.event.a~2Eb");
        assert_eq!(prefix.of_node(&NodeId::stored("n".into())), "stagedoor.node.n");
        assert_eq!(prefix.channel_of("stagedoor.node.n"), None);
        assert_eq!(prefix.channel_of("other.event.n"), None);
    }
}
