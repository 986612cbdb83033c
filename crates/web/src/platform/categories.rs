//! Categories, as the platform reports them.

use axum::extract::State;
use domain::limits::NAME_CHARS_MAX;
use domain::live::{Category, CategoryType};
use domain::{CategoryId, Invalid};

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::contract::shape::{Shape, chars, one_of, optional, required, web_address};
use crate::envelope::{Answer, NOTHING};
use crate::input::{Body, Fields, Json};
use crate::platform::PathId;

/// What a category is told to be.
#[derive(Debug)]
pub struct PutCategory {
    category_type: CategoryType,
    category_value: String,
    poster_image_url: Option<String>,
}

impl Body for PutCategory {
    fn shape() -> Shape {
        Shape::of([
            required("categoryType", one_of(CategoryType::NAMES)),
            required("categoryValue", chars(1, NAME_CHARS_MAX)),
            optional("posterImageUrl", web_address()),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        Ok(Self {
            category_type: CategoryType::parse(&fields.text("categoryType")?)?,
            category_value: fields.text("categoryValue")?,
            poster_image_url: fields.optional_text("posterImageUrl")?,
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

/// `PUT /platform/v1/categories/{categoryId}`: makes or replaces a category.
pub async fn put(
    _: Operator,
    State(web): State<Web>,
    PathId(id): PathId,
    Json(body): Json<PutCategory>,
) -> Answer<()> {
    let category_id = CategoryId::parse("categoryId", &id)?;
    web.service().put_category(body.category(category_id)).await?;
    Ok(NOTHING)
}
