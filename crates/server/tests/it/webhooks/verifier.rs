use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub fn verify(secrets: &[&str], id: &str, timestamp: &str, signature: &str, body: &[u8]) -> bool {
    let hex = signature.strip_prefix("sha256=").unwrap_or_default();
    if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return false;
    }
    let tag: Vec<u8> = (0..32).filter_map(|n| u8::from_str_radix(&hex[2 * n..][..2], 16).ok()).collect();
    secrets.iter().any(|secret| {
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return false };
        let mac = mac.chain_update(id).chain_update(timestamp).chain_update(body);
        mac.verify_slice(&tag).is_ok() // in constant time
    })
}
