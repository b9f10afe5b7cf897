//! Strategic merge patch: a merge patch that knows from the schema which lists are merged, and by which key.
