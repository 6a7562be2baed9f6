//! The rate limiter of the host: a token bucket, alone or one for each key. The current time is a
//! parameter, so that a limiter has no clock of its own.

mod keyed;
mod line_limit;
mod token_bucket;

pub(crate) use keyed::KeyedBuckets;
pub(crate) use line_limit::LineLimit;
pub(crate) use token_bucket::{Rate, TokenBucket};
