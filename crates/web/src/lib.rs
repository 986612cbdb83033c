//! The HTTP side of the service: paths, authentication, and the form of answers.
//!
//! `router.rs` is the index of every endpoint. A handler is thin: extractors check the caller (`caller.rs`),
//! the quota (`quota.rs`) and the request (`input.rs`), in the order of `docs/spec/rest.md#checks`. The
//! service does the work, and `envelope.rs` writes the answer. A handler gets its caller only from an
//! extractor, so no handler can forget a scope.

mod account_forms;
mod app;
mod assets;
mod auth;
mod brand;
mod browser;
mod caller;
mod constant;
mod context;
mod contract;
mod cookies;
mod deletion;
pub mod documents;
mod envelope;
mod failures;
mod finish;
mod form_again;
mod form_fields;
mod health;
mod input;
mod language;
mod logos;
mod objectives;
mod open;
mod operations;
mod operator_person;
mod page_cache;
mod page_request;
pub mod pages;
mod path;
mod pictures;
mod platform;
mod problems;
mod providers;
mod quota;
mod request;
mod router;
mod traffic;
mod usage;
mod visitor;

pub use account_forms::{
    charge_password_reset, charge_registration, charge_studio_form, charge_studio_page,
    charge_upstream_sign_in, check_guess,
};
pub use app::{Served, router};
pub use auth::{client_of_sign_in, try_password};
pub use axum::Router;
pub use axum::body::Body;
pub use brand::{Brand, LOGO_BYTES_MAX, Logo};
pub use context::{BoxFuture, Config, Connection, NodeInfo, SignInProvider, Web};
pub use contract::Security;
pub use cookies::sign_in_cookie;
pub use envelope::Failure;
pub use failures::FailureFigures;
pub use form_fields::FormFields;
pub use objectives::{ANSWERED_RATIO, FAST_RATIO};
pub use operator_person::{NeedsRole, OperatorPerson, PostedByOperator, role};
pub use page_request::{PageRequest, code_page};
pub use path::{PathId, PathIds};
pub use quota::{QuotaFigure, quota_figures};
pub use request::{ClientAddress, KeepPlace, RequestId, SecureOrigin};
pub use router::{Endpoint, endpoints};
pub use traffic::{DURATION_BOUNDS_US, RouteFigures, STATUS_CLASSES, TrafficFigures};
pub use visitor::{
    FormTarget, PageAnswer, Person, Posted, PostedBy, SIGN_IN, SIGN_IN_CODE, SIGN_OUT, Visitor,
};
