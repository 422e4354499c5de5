//! viewers
