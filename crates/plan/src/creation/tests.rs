mod check;
mod course;
mod fit;
mod manifest;
