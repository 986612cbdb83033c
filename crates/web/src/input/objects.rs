//! Lists of objects in a JSON object.

use domain::Invalid;

use super::Fields;
use super::form::JsonForm;
use super::shape::{self, Kind};
use super::values::{InJson, Reader, Value};

/// A list of objects of this form.
pub fn objects<A: JsonForm, F: Fn() -> A + Copy>(
    items: F,
    min: usize,
    max: usize,
) -> Value<Objects<F>, impl Fn() -> Kind> {
    Value::new(Objects(items), move || shape::list(shape::object(&items().shape()), min, max))
}

/// Reads a list of objects.
#[derive(Clone, Copy)]
pub struct Objects<F>(F);

impl<A: JsonForm, F: Fn() -> A> Reader for Objects<F> {
    type Out = Vec<A::Out>;
}

impl<A: JsonForm, F: Fn() -> A> InJson for Objects<F> {
    fn read(&self, name: &'static str, fields: &Fields<'_>) -> Result<Option<Vec<A::Out>>, Invalid> {
        let Some(objects) = fields.optional_objects(name)? else { return Ok(None) };
        let form = (self.0)();
        objects.iter().map(|object| form.read(object)).collect::<Result<_, _>>().map(Some)
    }
}
