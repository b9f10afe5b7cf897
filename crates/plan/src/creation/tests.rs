mod check;
mod course;
mod manifest;
