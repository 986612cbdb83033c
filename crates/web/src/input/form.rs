//! The fields of a body or a query, declared once. The documents describe these declarations, and requests
//! are read with them.

use domain::limits::PAGE_MAX;
use domain::{Invalid, Rule};
use service::Page;

use super::shape::{self, Field, Kind, Shape};
use super::values::{InJson, InQuery, List, Reader, Value, integer};
use super::{Fields, Pairs};

/// A composition of fields: a field, a tuple of fields, or a form made by `map` and similar functions.
pub trait Form: Sized {
    /// The type of the result.
    type Out;

    /// The description for the documents.
    fn shape(&self) -> Shape;

    /// Applies a function to the result.
    fn map<T, F: Fn(Self::Out) -> T>(self, then: F) -> Map<Self, F> {
        Map(self, then)
    }

    /// Applies a function to the result, which may refuse.
    fn try_map<T, F: Fn(Self::Out) -> Result<T, Invalid>>(self, then: F) -> TryMap<Self, F> {
        TryMap(self, then)
    }

    /// Makes every error within the value name this field.
    fn with_error_field(self, field: &'static str) -> WithErrorField<Self> {
        WithErrorField(self, field)
    }
}

/// A form that is read from an `S`, field by field.
pub trait FormOf<S>: Form {
    /// Reads the fields in their order.
    ///
    /// # Errors
    /// `Invalid` naming the first wrong field.
    fn read(&self, source: &S) -> Result<Self::Out, Invalid>;
}

/// The form of a JSON object.
pub trait JsonForm: Form + for<'a> FormOf<Fields<'a>> {}
impl<F: Form + for<'a> FormOf<Fields<'a>>> JsonForm for F {}

/// The form of a query.
pub trait QueryForm: Form + FormOf<Pairs> {}
impl<F: Form + FormOf<Pairs>> QueryForm for F {}

/// A struct whose fields are read one by one: `record!(Type { field: form, … })`.
macro_rules! record {
    ($($type:ident)::+ { $($field:ident: $form:expr),+ $(,)? }) => {
        $crate::input::Form::map(($($form,)+), |($($field,)+)| $($type)::+ { $($field),+ })
    };
}

pub(crate) use record;

/// A required field.
pub fn required<R, K>(name: &'static str, value: Value<R, K>) -> Required<R, K> {
    Required { name, value }
}

/// An optional field.
pub fn optional<R, K>(name: &'static str, value: Value<R, K>) -> Optional<R, K> {
    Optional { name, value }
}

/// An optional field with a default value.
pub fn with_default<R: Reader, K>(
    name: &'static str,
    value: Value<R, K>,
    default: R::Out,
) -> WithDefault<R, K> {
    WithDefault { name, value, default }
}

/// Reads a [`required`] field.
#[derive(Clone, Copy)]
pub struct Required<R, K> {
    pub(super) name: &'static str,
    pub(super) value: Value<R, K>,
}

impl<R: Reader, K: Fn() -> Kind> Form for Required<R, K> {
    type Out = R::Out;

    fn shape(&self) -> Shape {
        Shape::of([shape::required(self.name, self.value.kind())])
    }
}

impl<R: InJson, K: Fn() -> Kind> FormOf<Fields<'_>> for Required<R, K> {
    fn read(&self, fields: &Fields<'_>) -> Result<R::Out, Invalid> {
        self.value.reader.read(self.name, fields)?.ok_or_else(|| fields.missing(self.name))
    }
}

impl<R: InQuery, K: Fn() -> Kind> FormOf<Pairs> for Required<R, K> {
    fn read(&self, pairs: &Pairs) -> Result<R::Out, Invalid> {
        self.value.reader.parse(self.name, pairs.text(self.name)?)
    }
}

/// Reads an [`optional`] field.
#[derive(Clone, Copy)]
pub struct Optional<R, K> {
    name: &'static str,
    value: Value<R, K>,
}

impl<R, K> Optional<R, K> {
    /// Adds a second spelling of a query parameter.
    pub fn or_spelled(self, other: &'static str) -> Respelled<Self> {
        Respelled { other, field: self }
    }
}

impl<R: Reader, K: Fn() -> Kind> Form for Optional<R, K> {
    type Out = Option<R::Out>;

    fn shape(&self) -> Shape {
        Shape::of([shape::optional(self.name, self.value.kind())])
    }
}

impl<R: InJson, K: Fn() -> Kind> FormOf<Fields<'_>> for Optional<R, K> {
    fn read(&self, fields: &Fields<'_>) -> Result<Self::Out, Invalid> {
        self.value.reader.read(self.name, fields)
    }
}

impl<R: InQuery, K: Fn() -> Kind> FormOf<Pairs> for Optional<R, K> {
    fn read(&self, pairs: &Pairs) -> Result<Self::Out, Invalid> {
        let parse = |text| self.value.reader.parse(self.name, text);
        pairs.optional(self.name)?.map(parse).transpose()
    }
}

/// Reads a field [`with_default`].
#[derive(Clone, Copy)]
pub struct WithDefault<R: Reader, K> {
    name: &'static str,
    value: Value<R, K>,
    default: R::Out,
}

impl<R: Reader<Out: Clone>, K> WithDefault<R, K> {
    /// Adds a second spelling of a query parameter.
    pub fn or_spelled(self, other: &'static str) -> Respelled<Self> {
        Respelled { other, field: self }
    }
}

impl<R: Reader<Out: Clone + Into<serde_json::Value>>, K: Fn() -> Kind> Form for WithDefault<R, K> {
    type Out = R::Out;

    fn shape(&self) -> Shape {
        let kind = self.value.kind().default(self.default.clone());
        Shape::of([shape::optional(self.name, kind)])
    }
}

impl<R, K: Fn() -> Kind> FormOf<Fields<'_>> for WithDefault<R, K>
where
    R: InJson + Reader<Out: Clone + Into<serde_json::Value>>,
{
    fn read(&self, fields: &Fields<'_>) -> Result<R::Out, Invalid> {
        Ok(self.value.reader.read(self.name, fields)?.unwrap_or_else(|| self.default.clone()))
    }
}

impl<R, K: Fn() -> Kind> FormOf<Pairs> for WithDefault<R, K>
where
    R: InQuery + Reader<Out: Clone + Into<serde_json::Value>>,
{
    fn read(&self, pairs: &Pairs) -> Result<R::Out, Invalid> {
        let parse = |text| self.value.reader.parse(self.name, text);
        Ok(pairs.optional(self.name)?.map(parse).transpose()?.unwrap_or_else(|| self.default.clone()))
    }
}

/// A parameter with two spellings. A query may have only one of them.
#[derive(Clone, Copy)]
pub struct Respelled<F> {
    other: &'static str,
    field: F,
}

impl<F: Form> Form for Respelled<F> {
    type Out = F::Out;

    fn shape(&self) -> Shape {
        self.field.shape()
    }
}

impl<R: InQuery, K: Fn() -> Kind> FormOf<Pairs> for Respelled<Optional<R, K>> {
    fn read(&self, pairs: &Pairs) -> Result<Self::Out, Invalid> {
        let Optional { name, value } = &self.field;
        pairs.either(name, self.other)?.map(|text| value.reader.parse(name, text)).transpose()
    }
}

impl<R, K: Fn() -> Kind> FormOf<Pairs> for Respelled<WithDefault<R, K>>
where
    R: InQuery + Reader<Out: Clone + Into<serde_json::Value>>,
{
    fn read(&self, pairs: &Pairs) -> Result<R::Out, Invalid> {
        let WithDefault { name, value, default } = &self.field;
        let read = pairs.either(name, self.other)?.map(|text| value.reader.parse(name, text));
        Ok(read.transpose()?.unwrap_or_else(|| default.clone()))
    }
}

/// A list parameter of a query, of at most `max` items. Lists are written as `a,b`, as repeated keys, or as
/// `name[]`. One item beyond `max` is read, to detect a list that is too long.
pub fn list_parameter<R, K>(name: &'static str, value: Value<List<R>, K>, max: usize) -> ListParameter<R, K> {
    ListParameter { name, value, max, required: false }
}

/// Reads a [`list_parameter`].
#[derive(Clone, Copy)]
pub struct ListParameter<R, K> {
    name: &'static str,
    value: Value<List<R>, K>,
    max: usize,
    required: bool,
}

impl<R: Reader, K: Fn() -> Kind> ListParameter<R, K> {
    /// Refuses an empty list.
    pub fn required(self) -> impl FormOf<Pairs, Out = Vec<R::Out>>
    where
        R: InQuery,
    {
        let Self { name, max, .. } = self;
        Self { required: true, ..self }.try_map(move |items| match items.unwrap_or_default() {
            items if items.is_empty() => Err(Invalid::new(name, Rule::Required)),
            items if items.len() > max => Err(Invalid::new(name, Rule::Items { min: 1, max })),
            items => Ok(items),
        })
    }
}

impl<R: Reader, K: Fn() -> Kind> Form for ListParameter<R, K> {
    type Out = Option<Vec<R::Out>>;

    fn shape(&self) -> Shape {
        let Self { name, required, .. } = *self;
        Shape::of([Field { name, required, kind: self.value.kind() }])
    }
}

impl<R: InQuery, K: Fn() -> Kind> FormOf<Pairs> for ListParameter<R, K> {
    fn read(&self, pairs: &Pairs) -> Result<Self::Out, Invalid> {
        let Some(items) = pairs.optional_list(self.name, self.max) else { return Ok(None) };
        let List(item) = &self.value.reader;
        items.into_iter().map(|text| item.parse(self.name, text)).collect::<Result<_, _>>().map(Some)
    }
}

/// The form that [`Form::map`] returns.
#[derive(Clone, Copy)]
pub struct Map<A, F>(pub(super) A, F);

impl<A: Form, T, F: Fn(A::Out) -> T> Form for Map<A, F> {
    type Out = T;

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

impl<S, A: FormOf<S>, T, F: Fn(A::Out) -> T> FormOf<S> for Map<A, F> {
    fn read(&self, source: &S) -> Result<T, Invalid> {
        self.0.read(source).map(&self.1)
    }
}

/// The form that [`Form::try_map`] returns.
#[derive(Clone, Copy)]
pub struct TryMap<A, F>(pub(super) A, F);

impl<A: Form, T, F: Fn(A::Out) -> Result<T, Invalid>> Form for TryMap<A, F> {
    type Out = T;

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

impl<S, A: FormOf<S>, T, F: Fn(A::Out) -> Result<T, Invalid>> FormOf<S> for TryMap<A, F> {
    fn read(&self, source: &S) -> Result<T, Invalid> {
        self.0.read(source).and_then(&self.1)
    }
}

/// [`Form::with_error_field`].
#[derive(Clone, Copy)]
pub struct WithErrorField<A>(A, &'static str);

impl<A: Form> Form for WithErrorField<A> {
    type Out = A::Out;

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

impl<S, A: FormOf<S>> FormOf<S> for WithErrorField<A> {
    fn read(&self, source: &S) -> Result<A::Out, Invalid> {
        self.0.read(source).map_err(|wrong| Invalid::new(self.1, wrong.rule))
    }
}

/// `page` and `size` of a page-number list.
pub fn page(size_default: i64, size_max: i64) -> PageForm {
    PageForm { size_default, size_max }
}

/// Reads [`page`].
#[derive(Clone, Copy)]
pub struct PageForm {
    size_default: i64,
    size_max: i64,
}

impl Form for PageForm {
    type Out = Page;

    fn shape(&self) -> Shape {
        Shape::page(self.size_default, self.size_max)
    }
}

impl FormOf<Pairs> for PageForm {
    fn read(&self, pairs: &Pairs) -> Result<Page, Invalid> {
        let size = with_default("size", integer(1, self.size_max), self.size_default).read(pairs)?;
        let page = with_default("page", integer(0, PAGE_MAX), 0).read(pairs)?;
        Ok(Page { size, page })
    }
}

/// A form without fields.
impl Form for () {
    type Out = ();

    fn shape(&self) -> Shape {
        Shape::default()
    }
}

impl<S> FormOf<S> for () {
    fn read(&self, _: &S) -> Result<(), Invalid> {
        Ok(())
    }
}

macro_rules! tuples {
    ($(($($form:ident),+);)+) => {$(
        #[allow(non_snake_case, reason = "a form and its type have one name")]
        impl<$($form: Form),+> Form for ($($form,)+) {
            type Out = ($($form::Out,)+);

            fn shape(&self) -> Shape {
                let ($($form,)+) = self;
                let shapes = [$($form.shape()),+];
                shapes.into_iter().fold(Shape::default(), Shape::and)
            }
        }

        #[allow(non_snake_case, reason = "a form and its type have one name")]
        impl<Src, $($form: FormOf<Src>),+> FormOf<Src> for ($($form,)+) {
            fn read(&self, source: &Src) -> Result<Self::Out, Invalid> {
                let ($($form,)+) = self;
                Ok(($($form.read(source)?,)+))
            }
        }
    )+};
}
tuples! {
    (A);
    (A, B);
    (A, B, C);
    (A, B, C, D);
    (A, B, C, D, E);
    (A, B, C, D, E, F);
    (A, B, C, D, E, F, G);
    (A, B, C, D, E, F, G, H);
}

#[cfg(test)]
mod tests {
    use super::super::values::{flag, text, texts};
    use super::*;

    #[test]
    fn required_lists_check_their_items() {
        let fields = Fields::parse(r#"{"a":[{"x":"y"}],"b":[],"c":[1],"d":null,"e":{},"f":["x"]}"#)
            .expect("an object");
        assert_eq!(fields.objects("a").expect("objects")[0].str("x"), Ok("y"));
        assert!(fields.objects("b").expect("objects").is_empty());
        for field in ["c", "e", "f"] {
            assert_eq!(fields.objects(field).err(), Some(Invalid::new(field, Rule::ObjectList)));
        }
        assert_eq!(fields.objects("d").err(), Some(Invalid::new("d", Rule::Required)));
        assert_eq!(required("b", texts(text(), 0)).read(&fields), Ok(Vec::new()));
        assert_eq!(required("f", texts(text(), 0)).read(&fields), Ok(vec!["x".to_owned()]));
        assert_eq!(required("d", texts(text(), 0)).read(&fields), Err(Invalid::new("d", Rule::Required)));
        assert_eq!(required("c", texts(text(), 0)).read(&fields), Err(Invalid::new("c", Rule::TextList)));
    }

    #[test]
    fn null_is_absent_and_wrong_types_are_named() {
        let json = r#"{"a":null,"b":5,"c":"x","d":true,"e":1.5,"f":5.0,"i":"\u0000","j":["\u0000"]}"#;
        let fields = Fields::parse(json).expect("an object");
        assert!(required("f", integer(0, 9)).read(&fields).is_err());
        assert_eq!(required("i", text()).read(&fields), Err(Invalid::new("i", Rule::NoNul)));
        assert_eq!(required("j", texts(text(), 0)).read(&fields), Err(Invalid::new("j", Rule::NoNul)));
        assert_eq!(fields.optional_text("a"), Ok(None));
        assert_eq!(required("a", text()).read(&fields), Err(Invalid::new("a", Rule::Required)));
        assert_eq!(required("b", text()).read(&fields), Err(Invalid::new("b", Rule::Text)));
        assert_eq!(required("c", text()).read(&fields), Ok("x".to_owned()));
        assert_eq!(required("d", flag()).read(&fields), Ok(true));
        assert_eq!(required("c", flag()).read(&fields), Err(Invalid::new("c", Rule::Boolean)));
        assert_eq!(required("b", integer(0, 9)).read(&fields), Ok(5));
        assert!(required("e", integer(0, 9)).read(&fields).is_err());
    }
}
