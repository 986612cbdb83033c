//! Categories of lives, and the numbers of their writes.

use domain::CategoryId;
use domain::live::Category;

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const VERSION: &str = "SELECT version FROM category_clock WHERE clock_id = 1";

const NEXT_VERSION: &str = "UPDATE category_clock SET version = version + 1 WHERE clock_id = 1";

const PUT: &str = "
    INSERT INTO categories (category_id, category_type, category_value, poster_image_url, version)
    VALUES ($1, $2, $3, $4, (SELECT version FROM category_clock WHERE clock_id = 1))
    ON CONFLICT (category_id) DO UPDATE SET
        category_type = excluded.category_type, category_value = excluded.category_value,
        poster_image_url = excluded.poster_image_url, version = excluded.version";

const BY_ID: &str = sql!("SELECT ", Category::COLUMNS, " FROM categories k WHERE k.category_id = $1");

const AFTER: &str = sql!(
    "SELECT ",
    Category::COLUMNS,
    ", k.version FROM categories k
    WHERE (k.version, k.category_id) > ($1, $2) ORDER BY k.version, k.category_id LIMIT $3"
);

columns!(outer_join Category {
    category_type: "k.category_type",
    category_id: "k.category_id",
    category_value: "k.category_value",
    poster_image_url: "k.poster_image_url",
});

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
        self.fetch_one(VERSION, &[]).await
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
        self.fetch_optional(BY_ID, params![id]).await
    }

    /// The next `limit` categories after `mark` in the order of their last writes, each with the mark after
    /// it.
    pub async fn categories_after(
        &mut self,
        mark: &CategoryMark,
        limit: i64,
    ) -> Result<Vec<(Category, CategoryMark)>, StoreError> {
        let rows = self.fetch_all(AFTER, params![mark.version, &mark.category_id, limit]).await?;
        let with_mark = |(category, version): (Category, i64)| {
            let category_id = category.category_id.to_string();
            (category, CategoryMark { version, category_id })
        };
        Ok(rows.into_iter().map(with_mark).collect())
    }
}
