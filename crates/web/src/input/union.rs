//! Forms with alternatives.

use domain::{Invalid, Rule};

use super::Fields;
use super::form::{Form, FormOf, JsonForm, Map, Required, TryMap};
use super::shape::{self, Kind, Shape};
use super::values::InJson;

/// JSON objects of several kinds, distinguished by a field: `tagged!("field", { "name" => form, … })`.
macro_rules! tagged {
    ($tag:literal, { $($name:literal => $form:expr),+ $(,)? }) => {
        $crate::input::union::Tagged {
            shape: || $crate::input::shape::Shape {
                fields: Vec::new(),
                either: vec![$($crate::input::union::tagged_shape($tag, $name, &$form)),+],
            },
            read: |fields: &$crate::input::Fields<'_>| match fields.str($tag)? {
                $($name => $crate::input::FormOf::read(&$form, fields),)+
                _ => Err(domain::Invalid::new($tag, domain::Rule::OneOf(&[$($name),+]))),
            },
        }
    };
}
pub(crate) use tagged;

/// Exactly one of two fields.
pub fn either<A, B>(one: A, other: B) -> Either<A, B> {
    Either(one, other)
}

/// Reads [`either`].
#[derive(Clone, Copy)]
pub struct Either<A, B>(A, B);

/// An alternative of [`either`]: its presence can be checked before it is read.
pub trait Alternative: JsonForm {
    /// The name of the field.
    fn name(&self) -> &'static str;

    /// Whether the field is present.
    ///
    /// # Errors
    /// `Invalid` naming the field if it has another type.
    fn is_there(&self, fields: &Fields<'_>) -> Result<bool, Invalid>;
}

impl<R: InJson, K: Fn() -> Kind> Alternative for Required<R, K> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_there(&self, fields: &Fields<'_>) -> Result<bool, Invalid> {
        self.value.reader.is_there(self.name, fields)
    }
}

impl<A: Alternative, T, F: Fn(A::Out) -> T> Alternative for Map<A, F> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is_there(&self, fields: &Fields<'_>) -> Result<bool, Invalid> {
        self.0.is_there(fields)
    }
}

impl<A: Alternative, T, F: Fn(A::Out) -> Result<T, Invalid>> Alternative for TryMap<A, F> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is_there(&self, fields: &Fields<'_>) -> Result<bool, Invalid> {
        self.0.is_there(fields)
    }
}

impl<A: Alternative, B: Alternative<Out = A::Out>> Form for Either<A, B> {
    type Out = A::Out;

    fn shape(&self) -> Shape {
        let Self(one, other) = self;
        let without = |shape: Shape, name| shape.and(Shape::of([shape::absent(name)]));
        Shape::one_of([without(one.shape(), other.name()), without(other.shape(), one.name())])
    }
}

impl<A: Alternative, B: Alternative<Out = A::Out>> FormOf<Fields<'_>> for Either<A, B> {
    fn read(&self, fields: &Fields<'_>) -> Result<A::Out, Invalid> {
        let Self(one, other) = self;
        match (one.is_there(fields)?, other.is_there(fields)?) {
            (true, false) => one.read(fields),
            (false, true) => other.read(fields),
            _ => Err(Invalid::new(one.name(), Rule::EitherOr(other.name()))),
        }
    }
}

/// Reads [`tagged`].
pub struct Tagged<S, R> {
    /// The description.
    pub shape: S,
    /// The reader.
    pub read: R,
}

/// The shape of one kind of a [`Tagged`].
pub fn tagged_shape(tag: &'static str, name: &str, form: &impl Form) -> Shape {
    Shape::of([shape::required(tag, shape::one_of(&[name]))]).and(form.shape())
}

impl<T, S: Fn() -> Shape, R: Fn(&Fields<'_>) -> Result<T, Invalid>> Form for Tagged<S, R> {
    type Out = T;

    fn shape(&self) -> Shape {
        (self.shape)()
    }
}

impl<T, S: Fn() -> Shape, R: Fn(&Fields<'_>) -> Result<T, Invalid>> FormOf<Fields<'_>> for Tagged<S, R> {
    fn read(&self, fields: &Fields<'_>) -> Result<T, Invalid> {
        (self.read)(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::required;
    use super::super::values::{integer, text};
    use super::*;

    #[test]
    fn exactly_one_of_two_fields_is_accepted() {
        let form = either(required("a", text()).map(Ok), required("b", integer(0, 9)).map(Err));
        let read = |text| form.read(&Fields::parse(text).expect("an object"));
        let refused = || Err(Invalid::new("a", Rule::EitherOr("b")));
        assert_eq!(read(r#"{"a":"x"}"#), Ok(Ok("x".to_owned())));
        assert_eq!(read(r#"{"a":null,"b":1}"#), Ok(Err(1)));
        assert_eq!(read(r#"{"a":"x","b":1}"#), refused());
        assert_eq!(read("{}"), refused());
        // A field of another type explains more than the presence of two fields.
        assert_eq!(read(r#"{"a":5,"b":1}"#), Err(Invalid::new("a", Rule::Text)));
    }

    #[test]
    fn the_tag_selects_the_fields() {
        let form = tagged!("kind", {
            "one" => required("n", integer(0, 9)),
            "two" => ().map(|()| 2),
        });
        let read = |text| form.read(&Fields::parse(text).expect("an object"));
        assert_eq!(read(r#"{"kind":"one","n":1}"#), Ok(1));
        assert_eq!(read(r#"{"kind":"two"}"#), Ok(2));
        assert_eq!(read(r#"{"kind":"one"}"#), Err(Invalid::new("n", Rule::Required)));
        assert_eq!(read(r#"{"kind":"none"}"#), Err(Invalid::new("kind", Rule::OneOf(&["one", "two"]))));
        assert_eq!(form.shape().either.len(), 2);
    }
}
