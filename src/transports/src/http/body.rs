//! Bodies, read up to a bound.

use portcullis::link::LinkError;

/// Most of the body of a failed request that is read.
pub(super) const ERROR_BYTES: usize = 64 << 10;
/// Room set aside before anything arrived, whatever a server announces.
const FIRST_BYTES: u64 = 64 << 10;

/// All of a body of at most `limit` bytes.
///
/// # Errors
///
/// [`LinkError::TooLarge`] beyond, [`LinkError::Broken`] where it ends early.
pub(super) async fn read(mut response: reqwest::Response, limit: usize) -> Result<Vec<u8>, LinkError> {
    let announced = response.content_length().unwrap_or_default();
    if announced > limit as u64 {
        return Err(LinkError::TooLarge { limit });
    }
    let mut body = Vec::with_capacity(usize::try_from(announced.min(FIRST_BYTES)).unwrap_or_default());
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > limit {
            return Err(LinkError::TooLarge { limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// An error while reading, without the URL.
pub(super) fn broken(error: reqwest::Error) -> LinkError {
    LinkError::Broken(error.without_url().into())
}
