//! Categories, as the platform reports them.

use domain::CategoryId;
use domain::limits::NAME_CHARS_MAX;
use domain::live::{Category, CategoryType};

use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING};
use crate::input::values::{chars, text, web_address};
use crate::input::{Body, Json, JsonForm, optional, record, required};
use crate::path::PathId;

/// The properties of a category.
#[derive(Debug)]
pub struct PutCategory {
    category_type: CategoryType,
    category_value: String,
    poster_image_url: Option<String>,
}

impl Body for PutCategory {
    fn form() -> impl JsonForm<Out = Self> {
        let category_type = text().one_of(CategoryType::NAMES).parsed(CategoryType::parse);
        record!(Self {
            category_type: required("categoryType", category_type),
            category_value: required("categoryValue", chars(1, NAME_CHARS_MAX)),
            poster_image_url: optional("posterImageUrl", web_address()),
        })
    }
}

impl PutCategory {
    pub(super) fn category(self, category_id: CategoryId) -> Category {
        let Self { category_type, category_value, poster_image_url } = self;
        Category { category_id, category_type, category_value, poster_image_url }
    }
}

pub(crate) const PUT: Summary = Summary::new("putCategory", "Make or replace a category", "카테고리 등록");

/// `PUT /platform/v1/categories/{categoryId}`: creates or replaces a category.
pub async fn put(operator: Operator, PathId(id): PathId, Json(body): Json<PutCategory>) -> Answer<()> {
    let category_id = CategoryId::parse("categoryId", &id)?;
    operator.service().put_category(body.category(category_id)).await?;
    Ok(NOTHING)
}
