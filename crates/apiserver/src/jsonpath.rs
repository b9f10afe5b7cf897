//! placeholder
use serde_json::Value;
/// x
#[derive(Debug, Clone)]
pub struct JsonPath;
impl JsonPath {
    /// x
    pub fn parse(_: &str) -> Result<Self, String> {
        Err(String::new())
    }
    /// x
    pub fn find<'a>(&self, _: &'a Value) -> Vec<&'a Value> {
        Vec::new()
    }
}
