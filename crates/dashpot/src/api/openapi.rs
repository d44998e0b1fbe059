//! The OpenAPI document, made from the handlers themselves and committed as `web/openapi.json`.

use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;

use super::routes::{disks, events, meta, rules};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "dashpot",
        description = "See and change the disks of a running daemon. Times are integers of \
                       nanoseconds, sizes integers of bytes.",
    ),
    paths(
        meta::healthz,
        meta::version,
        meta::openapi,
        disks::status,
        disks::list,
        disks::show,
        disks::latency,
        disks::suspend,
        disks::resume,
        disks::lose,
        events::finished,
        events::seconds,
        rules::list,
        rules::of_disk,
        rules::show,
        rules::latency,
        rules::inject,
        rules::lease,
        rules::update,
        rules::clear,
        rules::clear_many,
        rules::reset,
    )
)]
struct Api;

/// The document of this build.
pub(crate) fn document() -> Document {
    Api::openapi()
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
            "web/openapi.json is not what the API is: run `UPDATE=1 cargo test -p dashpot openapi`"
        );
    }
}
