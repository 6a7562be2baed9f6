//! Lists, which are always paged.

use super::problem::ApiError;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The number of items of a page, unless the request says another.
const DEFAULT: usize = 50;
/// The most items of a page.
pub(super) const MOST: usize = 200;

/// The most digits of a cursor.
const DIGITS: usize = 19;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct List<T> {
    /// The items.
    pub(super) items: Vec<T>,
    /// The `cursor` of the next page, or `null` on the last one.
    pub(super) next_cursor: Option<String>,
}

/// The page that a request asks for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// The `next_cursor` of the page before.
    #[param(pattern = "^[0-9]{1,19}$")]
    pub(super) cursor: Option<String>,
    /// The most items of the page.
    #[param(minimum = 1, maximum = 200)]
    pub(super) limit: Option<usize>,
}

/// Returns the number of items of a page.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, ApiError> {
    match asked.unwrap_or(DEFAULT) {
        limit if (1..=MOST).contains(&limit) => Ok(limit),
        limit => Err(ApiError::Query(format!("`limit` is {limit}; 1 to {MOST} are accepted"))),
    }
}

/// Returns the number that a cursor stands for.
pub(super) fn cursor(asked: Option<&str>) -> Result<Option<u64>, ApiError> {
    let refused = || ApiError::Query("`cursor` has to be the `next_cursor` of a page".to_owned());
    let parse = |cursor: &str| {
        let is_number = cursor.len() <= DIGITS && cursor.bytes().all(|b| b.is_ascii_digit());
        let number = is_number.then(|| cursor.parse().ok()).flatten();
        number.ok_or_else(refused)
    };
    asked.map(parse).transpose()
}
