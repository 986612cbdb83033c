//! The servers that are known: those of the address, and those of their cluster that they name.

use std::sync::{Mutex, PoisonError};

use crate::address::{Address, Server};

/// Maximum number of servers that are learned from a cluster.
const LEARNED_MAX: usize = 64;

/// The servers that a client may connect to.
#[derive(Debug)]
pub struct Servers {
    configured: Vec<Server>,
    learned: Mutex<Vec<Server>>,
}

impl Servers {
    /// The servers of an address.
    pub fn new(address: &Address) -> Self {
        Self { configured: address.servers.clone(), learned: Mutex::default() }
    }

    /// The server of an attempt: first those of the address in their order, then those that were learned.
    /// `except` is left out; `None` if nothing else is known.
    pub fn choose(&self, attempt: usize, except: Option<&Server>) -> Option<Server> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<_> =
            self.configured.iter().chain(&*learned).filter(|server| Some(*server) != except).collect();
        known.get(attempt.checked_rem(known.len())?).map(|server| (*server).clone())
    }

    /// Replaces the learned servers by those that a server names. They are in the same order on every client.
    pub fn learn(&self, named: &[String]) {
        let parsed = named.iter().filter_map(|text| Server::parse(text).ok());
        let mut new: Vec<_> = parsed.filter(|server| !self.is_configured(server)).collect();
        new.sort();
        new.dedup();
        new.truncate(LEARNED_MAX);
        // A server in lame duck mode may list no other server.
        if !new.is_empty() {
            *self.learned.lock().unwrap_or_else(PoisonError::into_inner) = new;
        }
    }

    fn is_configured(&self, server: &Server) -> bool {
        self.configured.iter().any(|known| known == server)
    }

    /// The name that the certificate of a server must have. A cluster names its servers by addresses, which
    /// their certificates seldom have: these are checked by the name of the configured server.
    pub(crate) fn certificate_name<'a>(&'a self, server: &'a Server) -> &'a str {
        let is_address = server.host.parse::<std::net::IpAddr>().is_ok();
        match self.configured.first() {
            Some(first) if is_address && !self.is_configured(server) => &first.host,
            _ => &server.host,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learned_servers_come_after_the_configured_ones() {
        let servers = Servers::new(&Address::parse("nats://a.example:1,b.example:2").expect("good"));
        let order = |except: Option<&Server>| -> Vec<u16> {
            (0..4).filter_map(|attempt| Some(servers.choose(attempt, except)?.port)).collect()
        };
        assert_eq!(order(None), [1, 2, 1, 2]);
        servers.learn(&["10.0.0.2:4".into(), "10.0.0.1:3".into(), "a.example:1".into(), "a b".into()]);
        assert_eq!(order(None), [1, 2, 3, 4]);
        let first = servers.choose(0, None).expect("one");
        assert_eq!(order(Some(&first)), [2, 3, 4, 2]);
        servers.learn(&[]);
        assert_eq!(order(None), [1, 2, 3, 4]);
        let learned = servers.choose(2, None).expect("one");
        assert_eq!(servers.certificate_name(&learned), "a.example");
        assert_eq!(servers.certificate_name(&first), "a.example");
        let alone = Servers::new(&Address::parse("nats://a.example:1").expect("good"));
        assert!(alone.choose(0, Some(&first)).is_none());
    }
}
