//! Values that queries keep in a transaction. The driver does not know their types.

use std::any::Any;

/// At most one value of each type.
#[derive(Default)]
pub(crate) struct Notes(Vec<Box<dyn Any + Send>>);

impl Notes {
    /// The value of this type, created by `Default` at the first call.
    #[expect(clippy::expect_used, reason = "the type of the value was checked")]
    pub fn of<T: Any + Default + Send>(&mut self) -> &mut T {
        let index = self.0.iter().position(|note| note.is::<T>()).unwrap_or_else(|| {
            self.0.push(Box::new(T::default()));
            self.0.len() - 1
        });
        self.0[index].downcast_mut().expect("a note has the type that it was found by")
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_value_of_each_type_until_all_are_cleared() {
        let mut notes = Notes::default();
        notes.of::<Vec<u8>>().push(1);
        notes.of::<Vec<u8>>().push(2);
        notes.of::<String>().push('a');
        assert_eq!(*notes.of::<Vec<u8>>(), [1, 2]);
        assert_eq!(notes.of::<String>(), "a");
        assert_eq!(notes.0.len(), 2);
        notes.clear();
        assert!(notes.of::<Vec<u8>>().is_empty());
    }
}
