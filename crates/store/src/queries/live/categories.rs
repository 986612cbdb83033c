//! Categories of lives, and the numbers of their writes.

use domain::CategoryId;
use domain::live::{Category, CategoryType};

use crate::{Row, StoreError, Tx, params};

const VERSION: &str = "SELECT version FROM category_clock WHERE clock_id = 1";

const NEXT_VERSION: &str = "UPDATE category_clock SET version = version + 1 WHERE clock_id = 1";

const PUT: &str = "
    INSERT INTO categories (category_id, category_type, category_value, poster_image_url, version)
    VALUES ($1, $2, $3, $4, (SELECT version FROM category_clock WHERE clock_id = 1))
    ON CONFLICT (category_id) DO UPDATE SET
        category_type = excluded.category_type, category_value = excluded.category_value,
        poster_image_url = excluded.poster_image_url, version = excluded.version";

const BY_ID: &str = "
    SELECT category_type, category_id, category_value, poster_image_url FROM categories WHERE category_id = $1";

const AFTER: &str = "
    SELECT category_type, category_id, category_value, poster_image_url, version FROM categories
    WHERE (version, category_id) > ($1, $2) ORDER BY version, category_id LIMIT $3";

/// The position of a reader of all categories: the number and id of the last category that it read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CategoryMark {
    /// The write that it was last changed by.
    pub version: i64,
    /// Its id.
    pub category_id: String,
}

impl Tx {
    /// The number of the last write of a category. Every row with this number or a smaller one is committed.
    pub async fn category_version(&mut self) -> Result<i64, StoreError> {
        self.query_one(VERSION, &[]).await?.get(0)
    }

    /// Takes the next number, and locks the writes of categories for the rest of the transaction.
    pub async fn next_category_version(&mut self) -> Result<(), StoreError> {
        self.execute(NEXT_VERSION, &[]).await?;
        Ok(())
    }

    /// Creates or replaces a category, under the number that was taken last.
    pub async fn put_category(&mut self, category: &Category) -> Result<(), StoreError> {
        let Category { category_id, category_type, category_value, poster_image_url } = category;
        self.execute(PUT, params![category_id, category_type.name(), category_value, poster_image_url])
            .await?;
        Ok(())
    }

    /// The category of that id.
    pub async fn category(&mut self, id: &CategoryId) -> Result<Option<Category>, StoreError> {
        match self.query_opt(BY_ID, params![id]).await? {
            Some(row) => category_at(&row, 0),
            None => Ok(None),
        }
    }

    /// The next `limit` categories after `mark` in the order of their last writes, each with the mark after
    /// it.
    pub async fn categories_after(
        &mut self,
        mark: &CategoryMark,
        limit: i64,
    ) -> Result<Vec<(Category, CategoryMark)>, StoreError> {
        let rows = self.query(AFTER, params![mark.version, &mark.category_id, limit]).await?;
        let item = |row: &Row| {
            let category = category_at(row, 0)?.ok_or(StoreError::NoRow)?;
            let mark = CategoryMark { version: row.get(4)?, category_id: category.category_id.to_string() };
            Ok((category, mark))
        };
        rows.iter().map(item).collect()
    }
}

/// A category in four columns from `first` on: type, id, value, picture. `None` where a join found none.
pub(crate) fn category_at(row: &Row, first: usize) -> Result<Option<Category>, StoreError> {
    let Some(name) = row.get::<Option<&str>>(first)? else { return Ok(None) };
    let category_type = CategoryType::stored(name).ok_or_else(|| StoreError::Decode {
        column: first,
        wanted: "a category type",
        found: "another text".to_owned(),
    })?;
    Ok(Some(Category {
        category_type,
        category_id: row.get(first + 1)?,
        category_value: row.get(first + 2)?,
        poster_image_url: row.get(first + 3)?,
    }))
}
