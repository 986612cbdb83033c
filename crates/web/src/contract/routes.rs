//! Routes that describe themselves. The input and output of an operation come from its handler's signature,
//! so the documents cannot differ from the code.

use axum::Router;
use axum::extract::{Extension, State};
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use domain::Scope;
use domain::operator_key::OperatorRole;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::operation::{Operation, Output, Section, Security, Summary};
use crate::caller::{Administrator, Client, DropsClient, NeedsScope, Operator, User};
use crate::envelope::{Answer, SuccessBody};
use crate::input::shape::Shape;
use crate::input::{Body, Form, Json, JsonText, OptionalJson, Params, Query};
use crate::language::Spoken;
use crate::quota::{Extra, Standard};
use crate::{ClientAddress, RequestId, SecureOrigin, Web};

/// A router together with the description of every operation on it.
pub struct Routes {
    router: Router<Web>,
    section: &'static Section,
    operations: Vec<Operation>,
}

impl Routes {
    /// No routes yet. Routes that are added belong to this section.
    pub fn of(section: &'static Section) -> Self {
        Self { router: Router::new(), section, operations: Vec::new() }
    }

    /// Adds a path, like [`Router::route`].
    pub fn route(mut self, path: &'static str, methods: Methods) -> Self {
        let Self { section, .. } = self;
        self.router = self.router.route(path, methods.router);
        let at = |operation| Operation { section, path, ..operation };
        self.operations.extend(methods.operations.into_iter().map(at));
        self
    }

    /// Adds paths, in their order.
    pub fn routes(self, routes: impl IntoIterator<Item = DescribedRoute>) -> Self {
        routes.into_iter().fold(self, |all, (path, methods)| all.route(path, methods))
    }

    /// Appends other routes.
    pub fn and(mut self, more: Self) -> Self {
        self.router = self.router.merge(more.router);
        self.operations.extend(more.operations);
        self
    }

    /// The router.
    pub fn into_router(self) -> Router<Web> {
        self.router
    }

    /// The descriptions, in the order of the routes.
    pub fn into_operations(self) -> Vec<Operation> {
        self.operations
    }
}

/// A path and its handlers.
pub type DescribedRoute = (&'static str, Methods);

/// The handlers of one path, like [`MethodRouter`].
pub struct Methods {
    router: MethodRouter<Web>,
    operations: Vec<Operation>,
}

macro_rules! methods {
    ($($name:ident $method:literal),+) => {
        $(
            #[doc = concat!("A path that answers to ", $method, ".")]
            #[allow(dead_code, reason = "a path may begin with any method")]
            pub fn $name<H, M, A>(handler: H, summary: Summary) -> Methods
            where
                M: 'static,
                H: Handler<M, Web> + Describe<A>,
            {
                Methods { router: MethodRouter::new(), operations: Vec::new() }.$name(handler, summary)
            }
        )+

        impl Methods {
            $(
                #[doc = concat!("Answers to ", $method, " as well.")]
                pub fn $name<H, M, A>(mut self, handler: H, summary: Summary) -> Self
                where
                    M: 'static,
                    H: Handler<M, Web> + Describe<A>,
                {
                    self.operations.push(H::operation($method, summary));
                    self.router = self.router.merge(routing::$name(handler));
                    self
                }
            )+
        }
    };
}
methods!(get "GET", post "POST", put "PUT", patch "PATCH", delete "DELETE");

/// A handler with the description from its signature. `A` is the tuple of its arguments.
pub trait Describe<A> {
    /// The operation, without path and section.
    fn operation(method: &'static str, summary: Summary) -> Operation;
}

macro_rules! describe {
    ($(($($argument:ident),*);)+) => {$(
        impl<F, Fut, $($argument),*> Describe<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut,
            Fut: Future<Output: DescribeOutput>,
            $($argument: DescribeInput,)*
        {
            fn operation(method: &'static str, summary: Summary) -> Operation {
                let mut operation = Operation::new(method, summary, Fut::Output::output());
                $($argument::describe(&mut operation);)*
                operation
            }
        }
    )+};
}
describe! {
    (A1);
    (A1, A2);
    (A1, A2, A3);
    (A1, A2, A3, A4);
    (A1, A2, A3, A4, A5);
    (A1, A2, A3, A4, A5, A6);
}

/// The output of a handler.
pub trait DescribeOutput {
    /// Its description.
    fn output() -> Output;
}

impl<T: JsonSchema> DescribeOutput for Answer<T> {
    fn output() -> Output {
        fn content<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
            generator.subschema_for::<SuccessBody<T>>()
        }
        Output::Content(content::<T>)
    }
}

/// The pages of the sign-in.
impl DescribeOutput for Response {
    fn output() -> Output {
        Output::Page
    }
}

/// The input of a handler. Each extractor adds the parts of a request that it reads, and its refusals.
pub trait DescribeInput {
    /// Adds the description to the operation.
    fn describe(operation: &mut Operation);
}

impl<S: NeedsScope, Q: Extra> DescribeInput for User<S, Q> {
    fn describe(operation: &mut Operation) {
        operation.security = Security::User;
        operation.scope = S::SCOPE;
        operation.quota = Q::EXTRA.map(|(_, quota)| quota);
        operation.may_refuse(&[401, 429]);
        if S::SCOPE.is_some() {
            operation.may_refuse(&[403]);
        }
    }
}

impl<Q: Extra> DescribeInput for Client<Q> {
    fn describe(operation: &mut Operation) {
        operation.security = Security::Client;
        operation.quota = Q::EXTRA.map(|(_, quota)| quota);
        operation.may_refuse(&[401, 429]);
    }
}

impl DescribeInput for DropsClient {
    fn describe(operation: &mut Operation) {
        Client::<Standard>::describe(operation);
        operation.scope = Some(Scope::Drops);
        operation.may_refuse(&[403]);
    }
}

impl DescribeInput for Operator {
    fn describe(operation: &mut Operation) {
        let is_read = operation.method == "GET";
        operation.security =
            Security::Operator(if is_read { OperatorRole::Read } else { OperatorRole::Write });
        operation.may_refuse(&[401, 403, 429]);
    }
}

impl DescribeInput for Administrator {
    fn describe(operation: &mut Operation) {
        operation.security = Security::Operator(OperatorRole::Admin);
        operation.may_refuse(&[401, 403, 429]);
    }
}

impl<T: Body> DescribeInput for Json<T> {
    fn describe(operation: &mut Operation) {
        operation.takes_json(&T::form().shape());
        operation.may_refuse(&[400]);
        operation.may_refuse(T::REFUSES);
    }
}

impl<T: Body> DescribeInput for JsonText<T> {
    fn describe(operation: &mut Operation) {
        Json::<T>::describe(operation);
    }
}

impl<T: Body> DescribeInput for OptionalJson<T> {
    fn describe(operation: &mut Operation) {
        Json::<T>::describe(operation);
        operation.need_not_have_its_body();
    }
}

impl<T: Params> DescribeInput for Query<T> {
    fn describe(operation: &mut Operation) {
        let Shape { fields, .. } = T::form().shape();
        operation.query.extend(fields);
        operation.may_refuse(&[400]);
    }
}

macro_rules! ask_nothing {
    ($($type:ty),+ $(,)?) => {$(
        impl DescribeInput for $type {
            fn describe(_: &mut Operation) {}
        }
    )+};
}
ask_nothing!(
    State<Web>,
    Spoken,
    Extension<RequestId>,
    Extension<crate::quota::Charged>,
    Option<Extension<ClientAddress>>,
    Option<Extension<SecureOrigin>>,
);
