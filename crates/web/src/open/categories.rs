//! Categories (`docs/spec/lives.md#categories`).

use axum::extract::State;
use domain::limits::{CATEGORY_QUERY_CHARS_MAX, CATEGORY_SEARCH_SIZE_DEFAULT, CATEGORY_SEARCH_SIZE_MAX};
use domain::live::CategoryType;
use domain::{CategoryId, invalid};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Web;
use crate::caller::Client;
use crate::contract::Summary;
use crate::envelope::{Answer, Data, Success};
use crate::input::values::{chars, integer};
use crate::input::{Form, Params, Query, QueryForm, record, required, with_default};
use crate::pictures::Picture;

/// The query of a category search.
#[derive(Debug)]
pub struct CategorySearch {
    query: String,
    size: usize,
}

impl Params for CategorySearch {
    fn form() -> impl QueryForm<Out = Self> {
        let query = |text: &str| {
            invalid::text("query", text, 1, CATEGORY_QUERY_CHARS_MAX)?;
            Ok(text.to_owned())
        };
        let contained = chars(1, CATEGORY_QUERY_CHARS_MAX)
            .about("Found anywhere in the name, upper and lower case alike.");
        let size = integer(1, CATEGORY_SEARCH_SIZE_MAX);
        record!(Self {
            query: required("query", contained.parsed(query)),
            size: with_default("size", size, CATEGORY_SEARCH_SIZE_DEFAULT)
                .map(|size| size.unsigned_abs() as usize),
        })
    }
}

/// Category.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Category {
    /// Its kind.
    #[schemars(extend("enum" = CategoryType::NAMES))]
    category_type: &'static str,
    /// Its id.
    category_id: CategoryId,
    /// Its name.
    category_value: String,
    /// Its picture; one of the service's own when it has none.
    poster_image_url: String,
}

impl Category {
    pub(crate) fn new(web: &Web, category: &domain::live::Category) -> Self {
        let poster = category.poster_image_url.clone();
        Self {
            category_type: category.category_type.name(),
            category_id: category.category_id.clone(),
            category_value: category.category_value.clone(),
            poster_image_url: poster.unwrap_or_else(|| web.picture(Picture::Category)),
        }
    }
}

pub(crate) const SEARCH: Summary =
    Summary::new("searchCategories", "Categories by a part of their name", "카테고리 검색");

/// `GET /open/v1/categories/search`, client mode.
pub async fn search(
    _: Client,
    State(web): State<Web>,
    Query(search): Query<CategorySearch>,
) -> Answer<Data<Category>> {
    let found = web.service().search_categories(&search.query, search.size).await?;
    Ok(Success(Data { data: found.iter().map(|category| Category::new(&web, category)).collect() }))
}
