//! The OpenAPI document, made from the handlers themselves and committed as `web/openapi.json`.

use std::sync::OnceLock;

use axum::body::Bytes;
use dashpot_api::{By, Error, WatchedSecond};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{ContentBuilder, OpenApi as Document, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi};

use super::charged::JsonAnswer;
use super::page;
use super::routes::{
    disks, events, expect, meta, pools, rules, scenarios, seconds, statistics, status, volumes,
};
use crate::{Refusal, RefusalKind};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "dashpot",
        description = "See and change the disks of a running daemon. Times are integers of \
                       nanoseconds, sizes integers of bytes.",
    ),
    paths(
        page::index,
        meta::healthz,
        meta::version,
        openapi,
        meta::exports,
        meta::stop,
        meta::source,
        meta::clock,
        meta::layout,
        status::status,
        disks::list,
        disks::show,
        disks::latency,
        disks::suspend,
        disks::resume,
        disks::crash,
        disks::faults,
        disks::fail_attachment,
        pools::list,
        pools::show,
        pools::latency,
        pools::txgs,
        pools::tunables,
        pools::tune,
        pools::crash,
        volumes::list,
        volumes::show,
        volumes::latency,
        volumes::fail_attachment,
        events::finished,
        seconds::seconds,
        statistics::words,
        statistics::columns,
        statistics::watch,
        statistics::diff,
        statistics::ios,
        rules::list,
        rules::of_disk,
        rules::show,
        rules::latency,
        rules::inject,
        expect::rules,
        rules::lease,
        rules::update,
        rules::renew,
        rules::clear,
        rules::clear_many,
        rules::reset,
        scenarios::list,
        scenarios::run,
        scenarios::stop,
    ),
    components(schemas(By, Error, WatchedSecond)),
    modifiers(&Refusals, &Tokens),
)]
struct Api;

/// Describes the refusals. A status means the same for every operation, and the daemon may answer any request
/// with a refusal that its operation does not list.
struct Refusals;

/// Describes the token that a request over TCP needs. A request over a unix socket needs none.
struct Tokens;

/// The OpenAPI document of this API.
#[utoipa::path(get, path = "/v1/openapi.json", operation_id = "get_openapi", tag = "daemon",
    responses(
        (status = 200, description = "The OpenAPI document.", body = Object),
    ))]
pub(super) async fn openapi() -> Result<JsonAnswer, Refusal> {
    // All callers share one text, however slow they are.
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    if let Some(text) = TEXT.get() {
        return Ok(JsonAnswer(text.clone()));
    }
    let text = document().to_json();
    let text = text.map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))?;
    Ok(JsonAnswer(TEXT.get_or_init(|| text.into()).clone()))
}

/// The document of this build.
fn document() -> Document {
    Api::openapi()
}

impl Modify for Refusals {
    fn modify(&self, document: &mut Document) {
        for item in document.paths.paths.values_mut() {
            let operations = [
                &mut item.get,
                &mut item.post,
                &mut item.patch,
                &mut item.delete,
            ];
            operations.into_iter().flatten().for_each(describe_refusals);
        }
    }
}

fn describe_refusals(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        if let (RefOr::T(response), Some(meaning)) = (response, refusal(status)) {
            response.description = meaning.to_owned();
        }
    }
    responses.insert("default".to_owned(), RefOr::T(other_refusal()));
}

/// The meaning of a refusal that has this HTTP status.
fn refusal(status: &str) -> Option<&'static str> {
    match status {
        "400" => Some("The daemon cannot parse the request."),
        "404" => Some("The request names something that does not exist."),
        "409" => Some("The daemon's present state does not allow the request."),
        "422" => Some("The daemon can parse the request, but cannot do what it asks for."),
        _ => None,
    }
}

fn other_refusal() -> Response {
    let error = Ref::from_schema_name("Error");
    let content = ContentBuilder::new().schema(Some(error)).build();
    ResponseBuilder::new()
        .description(
            "Any other refusal. 401: a request over TCP has no valid token. 403: the request names \
             another host, or comes from a page of another host. 413: the body is too large. 503: \
             the shard of a disk has failed; or, with Retry-After, answers to other callers use all \
             the memory for answers.",
        )
        .content("application/json", content)
        .build()
}

impl Modify for Tokens {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let bearer = bearer.description(Some("The token that 'dashpot serve' prints."));
        let query = ApiKeyValue::with_description("token", "The same token, in the address.");
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
        let query = SecurityScheme::ApiKey(ApiKey::Query(query));
        components.add_security_scheme("token", query);
        let none = SecurityRequirement::default();
        let asked = ["bearer", "token"].map(|name| SecurityRequirement::new(name, [""; 0]));
        document.security = Some([none].into_iter().chain(asked).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::document;
    use std::path::Path;

    #[test]
    fn the_committed_document_is_that_of_this_build() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/openapi.json");
        let current = document().to_pretty_json().unwrap() + "\n";
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &current).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == current,
            "web/openapi.json is not what the API is: run `UPDATE=1 cargo test -p dashpot-daemon openapi`"
        );
    }
}
