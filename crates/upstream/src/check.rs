//! `stagedoor upstream check`: what is wrong with the configuration of a provider, step by step.

use domain::Timestamp;
use domain::upstream::redirect_address;
use http::{HeaderMap, header};
use openidconnect::core::{CoreJwsSigningAlgorithm, CoreResponseType};

use crate::id_token::LEEWAY_MS;
use crate::metadata::{self, Metadata, discovery_address};
use crate::{Failure, FlowSecrets, Provider};

/// A code that no provider has issued.
const WRONG_CODE: &str = "stagedoor-check-this-code-is-wrong";
/// A verifier of 43 characters.
const VERIFIER: &str = "stagedoor-check-this-verifier-is-not-secret";

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It is good.
    Ok,
    /// Sign-ins work, but something should be looked at.
    Warning,
    /// Sign-ins do not work.
    Failed,
}

/// A step of the check.
#[derive(Clone, Debug)]
pub struct Step {
    /// What was checked.
    pub name: &'static str,
    /// How it went.
    pub state: StepState,
    /// What was found.
    pub found: String,
    /// What to do; empty if there is nothing to do.
    pub advice: String,
}

/// The steps of a check. A failed step ends it where the further ones need it.
#[derive(Clone, Debug)]
pub struct Report {
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether the provider answered.
    pub is_reached: bool,
    /// The address to register at the provider.
    pub redirect_address: String,
}

impl Report {
    /// Whether no step failed.
    pub fn is_good(&self) -> bool {
        self.steps.iter().all(|step| step.state != StepState::Failed)
    }

    fn add(&mut self, name: &'static str, state: StepState, found: impl Into<String>, advice: &str) {
        self.steps.push(Step { name, state, found: found.into(), advice: advice.to_owned() });
    }

    fn ok(&mut self, name: &'static str, found: impl Into<String>) {
        self.add(name, StepState::Ok, found, "");
    }

    fn warn(&mut self, name: &'static str, found: impl Into<String>, advice: &str) {
        self.add(name, StepState::Warning, found, advice);
    }

    fn fail(&mut self, name: &'static str, found: impl Into<String>, advice: &str) {
        self.add(name, StepState::Failed, found, advice);
    }
}

/// Checks a provider. `base_url` is that of this service for browsers. The last step sends a code that the
/// provider must refuse, so it creates nothing there.
pub async fn check(provider: &Provider, base_url: &str, now: Timestamp) -> Report {
    let redirect_address = redirect_address(base_url, &provider.settings().name);
    let mut report = Report { steps: Vec::new(), is_reached: false, redirect_address };
    let Some(metadata) = discovery(&mut report, provider, now).await else { return report };
    endpoints(&mut report, provider, &metadata);
    code_flow(&mut report, &metadata);
    signatures(&mut report, &metadata);
    scopes(&mut report, provider, &metadata);
    if !report.is_good() {
        return report;
    }
    keys(&mut report, provider, &metadata).await;
    redirect(&mut report);
    client(&mut report, provider, now).await;
    report
}

async fn discovery(report: &mut Report, provider: &Provider, now: Timestamp) -> Option<Metadata> {
    let settings = provider.settings();
    let address = discovery_address(&settings.issuer);
    let answer = match metadata::get(provider.http(), &address).await {
        Ok(answer) => answer,
        Err(failure) => {
            report.is_reached = failure.to_string().contains(" answers ");
            let advice = "Check `issuer`, the network between this machine and the provider, and its certificate. \
                          A provider in a private network needs `privateNetwork: true`.";
            report.fail("discovery", failure.to_string(), advice);
            return None;
        }
    };
    report.is_reached = true;
    let metadata: Metadata = match metadata::parse("the discovery document", answer.body()) {
        Ok(metadata) => metadata,
        Err(failure) => {
            let advice =
                "`issuer` must be the address whose /.well-known/openid-configuration is the document.";
            report.fail("discovery", failure.to_string(), advice);
            return None;
        }
    };
    report.ok("discovery", address);
    match metadata::check_issuer(&metadata, settings) {
        Ok(()) => report.ok("issuer", settings.issuer.clone()),
        Err(failure) => {
            let advice = "Write `issuer` exactly as the provider does, also the slash at its end.";
            report.fail("issuer", failure.to_string(), advice);
        }
    }
    clock(report, answer.headers(), now);
    Some(metadata)
}

fn clock(report: &mut Report, headers: &HeaderMap, now: Timestamp) {
    let date = headers.get(header::DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
    let ms = date.and_then(|date| date.duration_since(std::time::UNIX_EPOCH).ok());
    let ms = ms.and_then(|since| i64::try_from(since.as_millis()).ok());
    let Some(ms) = ms else {
        return report.warn(
            "clock",
            "the provider does not say its time",
            "Check the clocks of both sides yourself.",
        );
    };
    let apart_s = (ms - now.as_millis()) / 1_000;
    let found = format!("{apart_s} seconds apart");
    match apart_s.abs() * 1_000 < LEEWAY_MS {
        true => report.ok("clock", found),
        false => {
            report.fail(
                "clock",
                found,
                "Set the clock of this machine: ID tokens are valid for minutes only.",
            );
        }
    }
}

fn endpoints(report: &mut Report, provider: &Provider, metadata: &Metadata) {
    match metadata::check_endpoints(metadata, provider.settings()) {
        Ok(()) => {
            let all = metadata::endpoints(metadata).into_iter();
            let found = all.filter_map(|(name, address)| Some(format!("{name} {}", address?)));
            report.ok("endpoints", found.collect::<Vec<_>>().join(", "));
        }
        Err(failure) => {
            let advice =
                "All endpoints must be https. Those in a private network need `privateNetwork: true`.";
            report.fail("endpoints", failure.to_string(), advice);
        }
    }
}

fn code_flow(report: &mut Report, metadata: &Metadata) {
    let has_code =
        metadata.response_types_supported().iter().any(|types| types[..] == [CoreResponseType::Code]);
    match has_code {
        true => report.ok("code flow", "response_types_supported has code"),
        false => report.fail(
            "code flow",
            "response_types_supported has no code",
            "Allow the authorization code flow at the provider.",
        ),
    }
    match metadata::knows_pkce(metadata) {
        Some(true) => report.ok("pkce", "S256"),
        Some(false) => report.warn(
            "pkce",
            "code_challenge_methods_supported has no S256",
            "The proof is sent all the same. Use a provider that checks it.",
        ),
        None => report.warn(
            "pkce",
            "the provider does not say whether it checks PKCE",
            "The proof is sent all the same.",
        ),
    }
}

fn signatures(report: &mut Report, metadata: &Metadata) {
    let accepted = metadata::algorithms(metadata);
    match accepted.is_empty() {
        false => report.ok("signatures", accepted.iter().map(name).collect::<Vec<_>>().join(", ")),
        true => report.fail(
            "signatures",
            "no algorithm of id_token_signing_alg_values_supported is accepted",
            "Let the provider sign ID tokens with RS256, PS256, ES256, ES384 or EdDSA.",
        ),
    }
}

/// The name of an algorithm in JSON.
fn name(algorithm: &CoreJwsSigningAlgorithm) -> String {
    let value = serde_json::to_value(algorithm).unwrap_or_default();
    value.as_str().unwrap_or("?").to_owned()
}

fn scopes(report: &mut Report, provider: &Provider, metadata: &Metadata) {
    let asked = &provider.settings().scopes;
    let Some(known) = metadata.scopes_supported() else {
        return report.ok("scopes", format!("openid {}", asked.join(" ")));
    };
    let unknown: Vec<_> =
        asked.iter().filter(|scope| !known.iter().any(|known| known.as_str() == *scope)).cloned().collect();
    match unknown.is_empty() {
        true => report.ok("scopes", format!("openid {}", asked.join(" "))),
        false => report.warn(
            "scopes",
            format!("scopes_supported has no {}", unknown.join(", ")),
            "Remove them from `scopes`, unless the provider is known to take them.",
        ),
    }
}

async fn keys(report: &mut Report, provider: &Provider, metadata: &Metadata) {
    match metadata::fetch_keys(provider.http(), metadata).await {
        Ok(keys) => report.ok("keys", format!("{} keys", keys.keys().len())),
        Err(failure) => report.fail("keys", failure.to_string(), "Check jwks_uri of the provider."),
    }
}

fn redirect(report: &mut Report) {
    let address = report.redirect_address.clone();
    match address.starts_with("https://") {
        true => report.ok("redirect address", address),
        false => report.warn(
            "redirect address",
            address,
            "Give --base-url, with https. Register exactly this address at the provider.",
        ),
    }
}

async fn client(report: &mut Report, provider: &Provider, now: Timestamp) {
    let (state, nonce, verifier) = (String::new(), String::new(), VERIFIER.to_owned());
    let secrets = FlowSecrets { state, nonce, verifier, asks_again: false };
    let redirect = report.redirect_address.clone();
    let refused = provider.try_code(WRONG_CODE, &secrets, &redirect, now).await;
    match refused {
        Ok(()) => report.fail(
            "client",
            "the provider took a code that it never issued",
            "Do not use this provider.",
        ),
        Err(Failure::Refused(error)) if error == "invalid_grant" => {
            report.ok("client", "a wrong code was refused with invalid_grant, so id and secret are right");
        }
        Err(Failure::Refused(error)) if error == "invalid_client" => report.fail(
            "client",
            "the provider does not accept this service: invalid_client",
            "Check `clientId` and the secret, and that the provider lets this client use its secret.",
        ),
        Err(Failure::Refused(error)) => report.fail(
            "client",
            format!("a wrong code was refused with {error}, and not with invalid_grant"),
            "Check at the provider that this client may use the authorization code flow and the redirect address.",
        ),
        Err(failure) => {
            report.fail("client", failure.to_string(), "Check the token endpoint of the provider.");
        }
    }
}
