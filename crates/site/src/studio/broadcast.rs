//! `/studio/broadcast`: title, category and tags of the broadcast.

use std::sync::Arc;

use askama::Template;
use domain::limits::{NAME_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX};
use domain::live::{Category, CategoryChoice, CategoryType};
use service::broadcast_settings::{BroadcastSetting, SettingChange};
use web::pages::{Area, FieldErrors, Flash, Lang, Shell, filters};
use web::{FormTarget, PageAnswer};

use crate::forms::at_field;
use crate::studio::at;
use crate::studio::desk::{Desk, PostedAt, StudioAt};
use crate::studio::frame::StudioPlace;
use crate::studio::nav::StudioNav;

const BROADCAST: &str = StudioPlace::Broadcast.path();
/// The form of the category.
pub(crate) const CATEGORY: &str = "/studio/broadcast/category";
/// Categories that a search lists.
const FOUND_MAX: usize = 20;

/// A change of nothing.
const UNCHANGED: SettingChange =
    SettingChange { title: None, category_type: None, category: CategoryChoice::Unsaid, tags: None };

/// A category that may be chosen.
#[derive(Debug)]
struct CategoryRow<'a> {
    id: &'a str,
    /// Its name. Untrusted.
    name: &'a str,
    kind: &'static str,
}

impl<'a> CategoryRow<'a> {
    fn new(category: &'a Category, lang: Lang) -> Self {
        let kind = match category.category_type {
            CategoryType::Game => lang.pick("게임", "Game"),
            CategoryType::Sports => lang.pick("스포츠", "Sports"),
            CategoryType::Etc => lang.pick("기타", "Other"),
        };
        Self { id: category.category_id.as_str(), name: &category.category_value, kind }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/studio/broadcast.html")]
struct BroadcastPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static BroadcastTexts,
    form: FormTarget,
    /// The address of this page.
    here: String,
    live_title: String,
    tags: String,
    tags_hint: String,
    category_form: FormTarget,
    category: Option<CategoryRow<'a>>,
    /// The words that are searched; empty without a search.
    query: String,
    found: Vec<CategoryRow<'a>>,
    errors: FieldErrors,
}

impl BroadcastPage<'_> {
    fn title(&self) -> &'static str {
        StudioPlace::Broadcast.label(self.shell.lang)
    }
}

/// What a page shows.
struct BroadcastContent {
    setting: BroadcastSetting,
    query: String,
    found: Vec<Arc<Category>>,
}

impl BroadcastContent {
    async fn read(desk: &Desk) -> Result<Self, service::Error> {
        let service = desk.visitor.web().service();
        let query = desk.visitor.request().parameter("q").unwrap_or_default();
        let query: String = query.trim().chars().take(NAME_CHARS_MAX).collect();
        let found = match query.as_str() {
            "" => Vec::new(),
            query => service.search_categories(query, FOUND_MAX).await?,
        };
        Ok(Self { setting: service.broadcast_setting(&desk.channel_id).await?, query, found })
    }

    fn page<'a>(&'a self, desk: &'a Desk, errors: FieldErrors) -> BroadcastPage<'a> {
        let visitor = &desk.visitor;
        let lang = visitor.lang();
        let BroadcastSetting { channel_name, default_live_title, category, tags } = &self.setting;
        let live_title = if default_live_title.is_empty() { channel_name } else { default_live_title };
        BroadcastPage {
            shell: visitor.shell(Area::Studio),
            nav: StudioNav::at(StudioPlace::Broadcast, desk),
            t: texts(lang),
            form: desk.form(BROADCAST),
            here: desk.path(BROADCAST),
            live_title: live_title.clone(),
            tags: tags.join(" "),
            tags_hint: match lang {
                Lang::Ko => {
                    format!("빈칸으로 나눕니다. {TAGS_MAX}개까지, 하나에 문자와 숫자 {TAG_CHARS_MAX}자까지.")
                }
                Lang::En => format!(
                    "Separate them with spaces: up to {TAGS_MAX}, each of up to {TAG_CHARS_MAX} letters and digits."
                ),
            },
            category_form: desk.form(CATEGORY),
            category: category.as_ref().map(|category| CategoryRow::new(category, lang)),
            query: self.query.clone(),
            found: self.found.iter().map(|category| CategoryRow::new(category, lang)).collect(),
            errors,
        }
    }
}

/// `GET /studio/broadcast`. With `q` it lists the categories of these words.
pub(crate) async fn show(StudioAt { desk, .. }: StudioAt<at::Broadcast>) -> PageAnswer {
    let content = BroadcastContent::read(&desk).await?;
    desk.visitor.page(&content.page(&desk, FieldErrors::default()))
}

/// `POST /studio/broadcast`: title and tags.
pub(crate) async fn submit(PostedAt { desk, fields, .. }: PostedAt<at::Broadcast>) -> PageAnswer {
    let visitor = &desk.visitor;
    let (title, tags) = (fields.text("defaultLiveTitle"), fields.text("tags"));
    let change =
        SettingChange { title: Some(title.to_owned()), tags: Some(separate_tags(tags)), ..UNCHANGED };
    match visitor.web().service().change_broadcast_setting(&desk.channel_id, change).await {
        Ok(()) => Ok(desk.redirect(BROADCAST, Some(Flash::Saved))),
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let content = BroadcastContent::read(&desk).await?;
            let mut page = content.page(&desk, errors);
            page.live_title = title.to_owned();
            page.tags = tags.to_owned();
            visitor.form_again(&page)
        }
    }
}

/// `POST /studio/broadcast/category`: the category with the id `categoryId`, or none.
pub(crate) async fn submit_category(PostedAt { desk, fields, .. }: PostedAt<at::Broadcast>) -> PageAnswer {
    let visitor = &desk.visitor;
    let changed = match CategoryChoice::parse(Some(fields.text("categoryId"))) {
        Ok(category) => {
            let change = SettingChange { category, ..UNCHANGED };
            visitor.web().service().change_broadcast_setting(&desk.channel_id, change).await
        }
        Err(invalid) => Err(invalid.into()),
    };
    match changed {
        Ok(()) => Ok(desk.redirect(BROADCAST, Some(Flash::Saved))),
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let content = BroadcastContent::read(&desk).await?;
            visitor.form_again(&content.page(&desk, errors))
        }
    }
}

/// The tags of a line. People also write commas between them, and `#` before them.
fn separate_tags(line: &str) -> Vec<String> {
    let words = line.split(|c: char| c.is_whitespace() || c == ',');
    let tags = words.map(|word| word.strip_prefix('#').unwrap_or(word)).filter(|tag| !tag.is_empty());
    tags.map(str::to_owned).collect()
}

#[derive(Debug)]
struct BroadcastTexts {
    lead: &'static str,
    about: &'static str,
    live_title: &'static str,
    title_hint: &'static str,
    tags: &'static str,
    save: &'static str,
    category: &'static str,
    no_category: &'static str,
    remove: &'static str,
    search: &'static str,
    find: &'static str,
    found_none: &'static str,
    choose: &'static str,
}

fn texts(lang: Lang) -> &'static BroadcastTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: BroadcastTexts = BroadcastTexts {
    lead: "저장하면 다음 방송에 쓰이고, 방송 중이면 바로 바뀝니다.",
    about: "제목과 태그",
    live_title: "방송 제목",
    title_hint: "1자 이상 100자 이하",
    tags: "태그",
    save: "저장",
    category: "카테고리",
    no_category: "고른 카테고리가 없습니다.",
    remove: "카테고리 빼기",
    search: "카테고리 찾기",
    find: "찾기",
    found_none: "찾은 카테고리가 없습니다.",
    choose: "고르기",
};

const EN: BroadcastTexts = BroadcastTexts {
    lead: "For your next broadcast, and for the one that is on air at once.",
    about: "Title and tags",
    live_title: "Title",
    title_hint: "1 to 100 characters",
    tags: "Tags",
    save: "Save",
    category: "Category",
    no_category: "There is no category.",
    remove: "Remove the category",
    search: "Find a category",
    find: "Find",
    found_none: "No category has these words.",
    choose: "Choose",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_separated_by_spaces_and_commas() {
        let separated = |line: &str| separate_tags(line).join("|");
        assert_eq!(separated(" 게임, #talk\u{3000}a,,b\n# "), "게임|talk|a|b");
        assert_eq!(separated("##a"), "#a", "the rule for tags refuses it");
        assert_eq!(separated(" , "), "");
    }
}
