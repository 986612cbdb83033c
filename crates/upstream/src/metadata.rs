//! The discovery document and the keys of a provider.

use http::{HeaderValue, Request, Response, StatusCode, header};
use openidconnect::core::{
    CoreAuthDisplay, CoreClaimName, CoreClaimType, CoreClientAuthMethod, CoreGrantType, CoreJsonWebKey,
    CoreJsonWebKeySet, CoreJweContentEncryptionAlgorithm, CoreJweKeyManagementAlgorithm,
    CoreJwsSigningAlgorithm, CoreResponseMode, CoreResponseType, CoreSubjectIdentifierType,
};
use openidconnect::{AdditionalProviderMetadata, AuthType, JsonWebKeySet, ProviderMetadata};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::address;
use crate::calls::HttpClient;
use crate::failure::Failure;
use crate::settings::ProviderSettings;

/// Most keys of a provider.
const KEYS_MAX: usize = 100;

/// The signatures that are accepted. A key that both sides share, and no key, prove nothing here.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// What the library does not read of the discovery document.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct FurtherMetadata {
    /// RFC 8414.
    #[serde(default)]
    code_challenge_methods_supported: Option<Vec<String>>,
    /// RFC 9207.
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl AdditionalProviderMetadata for FurtherMetadata {}

/// The discovery document.
pub(crate) type Metadata = ProviderMetadata<
    FurtherMetadata,
    CoreAuthDisplay,
    CoreClientAuthMethod,
    CoreClaimName,
    CoreClaimType,
    CoreGrantType,
    CoreJweContentEncryptionAlgorithm,
    CoreJweKeyManagementAlgorithm,
    CoreJsonWebKey,
    CoreResponseMode,
    CoreResponseType,
    CoreSubjectIdentifierType,
>;

/// The address of the discovery document.
pub(crate) fn discovery_address(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

/// Reads a document of a provider.
pub(crate) async fn get(http: &HttpClient, address: &str) -> Result<Response<Vec<u8>>, Failure> {
    let request = Request::get(address)
        .header(header::ACCEPT, HeaderValue::from_static("application/json"))
        .body(Vec::new())
        .map_err(|_| Failure::Provider(format!("{address} is no address")))?;
    let answer = http.send(request).await?;
    match answer.status() {
        StatusCode::OK => Ok(answer),
        status => Err(Failure::Unavailable(format!("{address} answers {}", status.as_u16()))),
    }
}

/// Reads JSON. The error names the place and not the text, which may be a secret.
pub(crate) fn parse<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let kind = match error.classify() {
            serde_json::error::Category::Data => "has not the expected fields",
            _ => "is not JSON",
        };
        Failure::Provider(format!("{what} {kind} (line {line}, column {column})"))
    })
}

/// Fetches the discovery document, and checks it.
pub(crate) async fn discover(http: &HttpClient, settings: &ProviderSettings) -> Result<Metadata, Failure> {
    let answer = get(http, &discovery_address(&settings.issuer)).await?;
    let metadata: Metadata = parse("the discovery document", answer.body())?;
    check_issuer(&metadata, settings)?;
    check_endpoints(&metadata, settings)?;
    if algorithms(&metadata).is_empty() {
        let text = "it signs ID tokens with no algorithm that is accepted: RS256 to ES384, EdDSA";
        return Err(Failure::Provider(text.into()));
    }
    Ok(metadata)
}

/// The issuer must be that of the configuration, byte for byte.
pub(crate) fn check_issuer(metadata: &Metadata, settings: &ProviderSettings) -> Result<(), Failure> {
    let (found, expected) = (metadata.issuer().as_str(), settings.issuer.as_str());
    match found == expected {
        true => Ok(()),
        false => Err(Failure::Provider(format!("it calls itself {found:?}, and not {expected:?}"))),
    }
}

/// The addresses of a provider that this service uses, by their name in the document.
pub(crate) fn endpoints(metadata: &Metadata) -> [(&'static str, Option<&str>); 4] {
    [
        ("authorization_endpoint", Some(metadata.authorization_endpoint().as_str())),
        ("token_endpoint", metadata.token_endpoint().map(|url| url.as_str())),
        ("jwks_uri", Some(metadata.jwks_uri().as_str())),
        ("userinfo_endpoint", metadata.userinfo_endpoint().map(|url| url.as_str())),
    ]
}

/// Every address must be one that may be called. Only that for further claims may be missing.
pub(crate) fn check_endpoints(metadata: &Metadata, settings: &ProviderSettings) -> Result<(), Failure> {
    for (name, address) in endpoints(metadata) {
        match address {
            None if name == "userinfo_endpoint" => {}
            None => return Err(Failure::Provider(format!("it has no {name}"))),
            Some(text) => {
                address::parse(text, settings.reach)
                    .map_err(|problem| Failure::Provider(format!("{name}: {problem}")))?;
            }
        }
    }
    Ok(())
}

/// Fetches the keys. Keys of a kind that the library does not know are left out.
pub(crate) async fn fetch_keys(http: &HttpClient, metadata: &Metadata) -> Result<CoreJsonWebKeySet, Failure> {
    let answer = get(http, metadata.jwks_uri().as_str()).await?;
    let mut keys: CoreJsonWebKeySet = parse("the list of keys", answer.body())?;
    if keys.keys().len() > KEYS_MAX {
        keys = JsonWebKeySet::new(keys.keys()[..KEYS_MAX].to_vec());
    }
    match keys.keys().is_empty() {
        true => Err(Failure::Provider("it has no key that can be read".into())),
        false => Ok(keys),
    }
}

/// The accepted signatures of a provider.
pub(crate) fn algorithms(metadata: &Metadata) -> Vec<CoreJwsSigningAlgorithm> {
    let offered = metadata.id_token_signing_alg_values_supported();
    ALGORITHMS.into_iter().filter(|algorithm| offered.contains(algorithm)).collect()
}

/// How this service proves itself to the provider: in the header, unless the provider only takes the body.
pub(crate) fn auth_type(metadata: &Metadata) -> AuthType {
    let methods = metadata.token_endpoint_auth_methods_supported();
    let takes = |method| methods.is_none_or(|methods| methods.contains(&method));
    match takes(CoreClientAuthMethod::ClientSecretBasic) || !takes(CoreClientAuthMethod::ClientSecretPost) {
        true => AuthType::BasicAuth,
        false => AuthType::RequestBody,
    }
}

/// Whether the provider knows PKCE with SHA-256; `None` if it does not say.
pub(crate) fn knows_pkce(metadata: &Metadata) -> Option<bool> {
    let methods = metadata.additional_metadata().code_challenge_methods_supported.as_ref()?;
    Some(methods.iter().any(|method| method == "S256"))
}

/// Whether the provider names itself when it sends a browser back.
pub(crate) fn names_itself(metadata: &Metadata) -> bool {
    metadata.additional_metadata().authorization_response_iss_parameter_supported
}
