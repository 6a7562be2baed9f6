//! Questions to the client's user and model during a call: the confirmation of the host, and the
//! questions of plugins.

pub(crate) mod confirmation_form;
mod form_dialect;
pub(crate) mod input_required;
pub(crate) mod plugin_question;
pub(crate) mod programs;
pub(crate) mod server_request;
pub(crate) mod signed_state;
