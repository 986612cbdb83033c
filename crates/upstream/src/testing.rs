//! A provider for tests, on a real socket, which can be wrong on purpose. A test stands for the browser: it
//! gives the address of [`crate::Provider::begin`] to [`TestProvider::sign_in`] and gets the callback.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use openidconnect::core::{CoreEdDsaPrivateSigningKey, CoreHmacKey, CoreJwsSigningAlgorithm};
use openidconnect::url::{Url, form_urlencoded};
use openidconnect::{
    AccessToken, AccessTokenHash, JsonWebKeyId, PkceCodeChallenge, PkceCodeVerifier, PrivateSigningKey,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The id of the service at every test provider.
pub const CLIENT_ID: &str = "stagedoor-test";
/// The secret of the service at every test provider.
pub const CLIENT_SECRET: &str = "a secret of the tests: +/%&";
/// The beginning of a PKCS #8 file with an Ed25519 key.
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// What is wrong with a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Nothing.
    Nothing,
    /// The ID token is of another issuer.
    Issuer,
    /// It is for another client.
    Audience,
    /// It is for this client and for another one.
    FurtherAudience,
    /// It was asked for by another client.
    AuthorizedParty,
    /// It has another nonce.
    Nonce,
    /// It has no nonce.
    NoNonce,
    /// It has no signature, and says so.
    NoSignature,
    /// Its signature was cut off.
    EmptySignature,
    /// It is signed with the public key as a shared secret.
    SharedPublicKey,
    /// It is signed with the secret of the client.
    SharedSecret,
    /// It is signed with another key that has the same id.
    OtherKey,
    /// It names a key that does not exist.
    UnknownKey,
    /// It has expired.
    Expired,
    /// It was issued in the future.
    Future,
    /// It belongs to another access token.
    OtherAccessToken,
    /// It has no subject.
    NoSubject,
    /// There is no ID token.
    NoIdToken,
    /// The callback names another issuer.
    CallbackIssuer,
    /// The callback names no issuer, which the provider promised.
    NoCallbackIssuer,
    /// The discovery document is of another issuer.
    DiscoveryIssuer,
    /// The discovery document names an endpoint in a private network.
    PrivateEndpoint,
    /// The provider signs with shared secrets only.
    SharedSecretsOnly,
    /// Every answer is longer than allowed.
    Oversized,
    /// Every answer never ends.
    Endless,
    /// No answer comes.
    Silent,
    /// Every answer has status 503.
    Down,
    /// Every answer is HTML.
    Html,
    /// The claims for the name are about another person.
    OtherUserInfo,
}

/// A provider on loopback.
pub struct TestProvider {
    address: SocketAddr,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

struct State {
    base: String,
    now_ms: AtomicI64,
    requests: AtomicUsize,
    book: Mutex<Book>,
}

struct Book {
    wrong: Wrong,
    keys: Vec<(String, u8)>,
    claims: Value,
    user_info: Value,
    codes: HashMap<String, Begun>,
    issued: usize,
}

/// What the address of a sign-in says.
#[derive(Clone)]
struct Begun {
    redirect: String,
    challenge: String,
    nonce: String,
}

impl TestProvider {
    /// A provider that is right, by the clock of the system.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let book = Book {
            wrong: Wrong::Nothing,
            keys: vec![("one".into(), 1)],
            claims: json!({ "sub": "somebody", "name": "하늘" }),
            user_info: json!({ "sub": "somebody" }),
            codes: HashMap::new(),
            issued: 0,
        };
        let state = Arc::new(State {
            base: format!("http://{address}"),
            now_ms: AtomicI64::new(0),
            requests: AtomicUsize::new(0),
            book: Mutex::new(book),
        });
        let shared = state.clone();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, shared.clone()));
            }
        });
        Self { address, state, listening }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.state.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The issuer.
    pub fn issuer(&self) -> &str {
        &self.state.base
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Makes it wrong, or right again.
    pub fn be(&self, wrong: Wrong) {
        self.book().wrong = wrong;
    }

    /// Sets its clock.
    pub fn set_clock(&self, now_ms: i64) {
        self.state.now_ms.store(now_ms, Relaxed);
    }

    /// Sets the claims of the next ID tokens.
    pub fn set_claims(&self, claims: Value) {
        self.book().claims = claims;
    }

    /// Sets the further claims.
    pub fn set_user_info(&self, claims: Value) {
        self.book().user_info = claims;
    }

    /// Replaces the keys by a new one.
    pub fn rotate_keys(&self, id: &str, seed: u8) {
        self.book().keys = vec![(id.to_owned(), seed)];
    }

    /// The number of requests so far.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Relaxed)
    }

    /// An entry of the operator's file.
    pub fn entry(&self, name: &str, further: &str) -> String {
        let issuer = self.issuer();
        format!(
            "  - name: {name}\n    label: {{ ko: {name} 계정, en: {name} account }}\n    issuer: {issuer}\n    \
             clientId: {CLIENT_ID}\n    clientSecret: '{CLIENT_SECRET}'\n    timeoutSeconds: 1\n{further}"
        )
    }

    /// The settings of an entry.
    ///
    /// # Panics
    /// When they are wrong.
    pub fn settings(&self, name: &str, further: &str) -> crate::ProviderSettings {
        let text = format!("upstreams:\n{}", self.entry(name, further));
        crate::settings::read(&text, &PathBuf::from(".")).expect("good settings").remove(0)
    }

    /// A person signs in here, and is sent back. Gives the address of the callback.
    ///
    /// # Panics
    /// When the address is not that of a sign-in with PKCE.
    pub fn sign_in(&self, address: &str) -> String {
        let url = Url::parse(address).expect("an address");
        assert_eq!(url.port(), Some(self.port()), "it is the address of another provider: {address}");
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let get = |name: &str| query.get(name).unwrap_or_else(|| panic!("{name} in {address}")).clone();
        assert_eq!((get("response_type").as_str(), get("code_challenge_method").as_str()), ("code", "S256"));
        assert!(get("scope").split(' ').any(|scope| scope == "openid"));
        assert_eq!(get("client_id"), CLIENT_ID);
        let mut book = self.book();
        book.issued += 1;
        let code = format!("code-{}", book.issued);
        let begun =
            Begun { redirect: get("redirect_uri"), challenge: get("code_challenge"), nonce: get("nonce") };
        let mut callback = Url::parse(&begun.redirect).expect("an address");
        callback.query_pairs_mut().append_pair("code", &code).append_pair("state", &get("state"));
        match book.wrong {
            Wrong::NoCallbackIssuer => {}
            Wrong::CallbackIssuer => {
                callback.query_pairs_mut().append_pair("iss", "https://other.example");
            }
            _ => {
                callback.query_pairs_mut().append_pair("iss", self.issuer());
            }
        }
        book.codes.insert(code, begun);
        callback.into()
    }
}

impl Drop for TestProvider {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Answers the request of one connection.
async fn answer(mut stream: TcpStream, state: Arc<State>) {
    let Some((line, head, body)) = read_request(&mut stream).await else { return };
    state.requests.fetch_add(1, Relaxed);
    let wrong = state.lock().wrong;
    let (status, kind, body) = match wrong {
        Wrong::Silent => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            return;
        }
        Wrong::Down => (503, "text/plain", "down".to_owned()),
        Wrong::Html => (200, "text/html", "<p>Welcome</p>".to_owned()),
        Wrong::Oversized => (200, "application/json", format!("{{\"x\":\"{}\"}}", "x".repeat(200_000))),
        Wrong::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n").await;
            while stream.write_all(&[b' '; 4096]).await.is_ok() {}
            return;
        }
        _ => {
            let (status, content) = state.route(&line, &head, &body);
            (status, "application/json", content.to_string())
        }
    };
    let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(state.now_ms()));
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} X\r\nDate: {date}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// The request line, the head and the body of a request.
async fn read_request(stream: &mut TcpStream) -> Option<(String, String, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = header(head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                let line = head.lines().next()?.to_owned();
                return Some((line, head.to_owned(), body.to_owned()));
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut found = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim().to_owned())
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.now_ms.load(Relaxed)).unwrap_or(0)
    }

    fn route(&self, line: &str, head: &str, body: &str) -> (u16, Value) {
        match line.split(' ').nth(1).unwrap_or_default() {
            "/.well-known/openid-configuration" => (200, self.discovery()),
            "/keys" => (200, self.keys()),
            "/token" => self.token(head, body),
            "/claims" => self.user_info(head),
            _ => (404, json!({})),
        }
    }

    fn discovery(&self) -> Value {
        let (base, wrong) = (&self.base, self.lock().wrong);
        let issuer = if wrong == Wrong::DiscoveryIssuer { "https://other.example" } else { base };
        let token = match wrong {
            Wrong::PrivateEndpoint => "https://10.0.0.1/token".to_owned(),
            _ => format!("{base}/token"),
        };
        let algorithms = match wrong {
            Wrong::SharedSecretsOnly => json!(["HS256", "none"]),
            _ => json!(["RS256", "EdDSA", "HS256", "none"]),
        };
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{base}/authorize?tenant=1"),
            "token_endpoint": token,
            "jwks_uri": format!("{base}/keys"),
            "userinfo_endpoint": format!("{base}/claims"),
            "response_types_supported": ["code", "code id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
            "scopes_supported": ["openid", "profile", "email"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "further": { "of": ["a", "later", "version"] },
        })
    }

    fn keys(&self) -> Value {
        let mut keys: Vec<_> = self.lock().keys.iter().map(|(id, seed)| public_key(id, *seed)).collect();
        keys.push(json!({ "kty": "unknown", "kid": "later" }));
        json!({ "keys": keys })
    }

    fn token(&self, head: &str, body: &str) -> (u16, Value) {
        let form: HashMap<String, String> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
        let get = |name: &str| form.get(name).map_or("", String::as_str);
        let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let own = STANDARD.encode(format!("{}:{}", encode(CLIENT_ID), encode(CLIENT_SECRET)));
        if header(head, "authorization") != Some(format!("Basic {own}")) {
            return (401, json!({ "error": "invalid_client", "error_description": "secret of a stranger" }));
        }
        let begun = self.lock().codes.remove(get("code"));
        let verifier = PkceCodeVerifier::new(get("code_verifier").to_owned());
        let Some(begun) = begun.filter(|begun| {
            begun.redirect == get("redirect_uri")
                && begun.challenge == PkceCodeChallenge::from_code_verifier_sha256(&verifier).as_str()
        }) else {
            return (400, json!({ "error": "invalid_grant" }));
        };
        let access_token = format!("access-{}", get("code"));
        let mut answer = json!({ "access_token": access_token, "token_type": "Bearer", "expires_in": 60 });
        if self.lock().wrong != Wrong::NoIdToken {
            answer["id_token"] = self.id_token(&begun, &access_token).into();
        }
        (200, answer)
    }

    fn user_info(&self, head: &str) -> (u16, Value) {
        let is_known = header(head, "authorization").is_some_and(|value| value.starts_with("Bearer access-"));
        let book = self.lock();
        let mut claims = book.user_info.clone();
        if book.wrong == Wrong::OtherUserInfo {
            claims["sub"] = "somebody else".into();
        }
        if is_known { (200, claims) } else { (401, json!({})) }
    }

    fn id_token(&self, begun: &Begun, access_token: &str) -> String {
        let book = self.lock();
        let (wrong, now_s) = (book.wrong, i64::try_from(self.now_ms() / 1_000).unwrap_or(0));
        let (id, seed) = book.keys[0].clone();
        let mut claims = book.claims.clone();
        claims["iss"] = if wrong == Wrong::Issuer { "https://other.example" } else { &*self.base }.into();
        claims["aud"] = match wrong {
            Wrong::Audience => json!("other-client"),
            Wrong::FurtherAudience => json!([CLIENT_ID, "other-client"]),
            _ => json!(CLIENT_ID),
        };
        if wrong == Wrong::AuthorizedParty {
            claims["azp"] = "other-client".into();
        }
        match wrong {
            Wrong::NoNonce => {}
            Wrong::Nonce => claims["nonce"] = "another nonce".into(),
            _ => claims["nonce"] = begun.nonce.clone().into(),
        }
        let issued = match wrong {
            Wrong::Expired => now_s - 1_000,
            Wrong::Future => now_s + 300,
            _ => now_s,
        };
        (claims["iat"], claims["exp"]) = (issued.into(), (issued + 600).into());
        if wrong == Wrong::NoSubject {
            claims["sub"] = "".into();
        }
        let hashed = if wrong == Wrong::OtherAccessToken { "another token" } else { access_token };
        claims["at_hash"] = access_token_hash(hashed, seed).into();
        signed(wrong, &id, seed, &claims)
    }
}

/// The token, signed in the way that is asked for.
fn signed(wrong: Wrong, id: &str, seed: u8, claims: &Value) -> String {
    let algorithm = match wrong {
        Wrong::NoSignature => "none",
        Wrong::SharedPublicKey | Wrong::SharedSecret => "HS256",
        _ => "EdDSA",
    };
    let id = if wrong == Wrong::UnknownKey { "missing" } else { id };
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = encode(&json!({ "alg": algorithm, "kid": id, "typ": "JWT" }));
    let text = format!("{head}.{}", encode(claims));
    let message = text.as_bytes();
    let edwards = |seed| private_key(id, seed).sign(&CoreJwsSigningAlgorithm::EdDsa, message);
    let shared = |key: &[u8]| CoreHmacKey::new(key).sign(&CoreJwsSigningAlgorithm::HmacSha256, message);
    let signature = match wrong {
        Wrong::NoSignature | Wrong::EmptySignature => Ok(Vec::new()),
        Wrong::SharedSecret => shared(CLIENT_SECRET.as_bytes()),
        Wrong::SharedPublicKey => {
            let key = public_key(id, seed)["x"].as_str().map(|x| URL_SAFE_NO_PAD.decode(x));
            shared(&key.and_then(Result::ok).unwrap_or_default())
        }
        Wrong::OtherKey => edwards(seed + 100),
        _ => edwards(seed),
    };
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.expect("a signature")))
}

/// The private key that is made of a seed.
fn private_key(id: &str, seed: u8) -> CoreEdDsaPrivateSigningKey {
    let file = STANDARD.encode([&PKCS8[..], &[seed; 32]].concat());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{file}\n-----END PRIVATE KEY-----\n");
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, Some(JsonWebKeyId::new(id.to_owned()))).expect("a key")
}

fn public_key(id: &str, seed: u8) -> Value {
    serde_json::to_value(private_key(id, seed).as_verification_key()).expect("JSON")
}

fn access_token_hash(token: &str, seed: u8) -> String {
    let key = private_key("", seed).as_verification_key();
    let hash = AccessTokenHash::from_token(
        &AccessToken::new(token.to_owned()),
        &CoreJwsSigningAlgorithm::EdDsa,
        &key,
    );
    hash.expect("a hash").as_str().to_owned()
}
