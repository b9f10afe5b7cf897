//! Objects that are read without their `metadata.managedFields`: they are up to half of an answer, and cost more than the rest to
//! read, because they are trees. Whoever does not decide by them asks for a `Trimmed` object.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, ObjectList, PartialObjectMeta};
use kube::core::Request;
use kube::{Api, Resource};
use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// An object without its managed fields.
#[derive(Debug, Clone)]
pub struct Trimmed<K>(pub K);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Trimmed<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        K::deserialize(Trim { inner: deserializer, at: At::Object }).map(Self)
    }
}

impl<K: Resource> Resource for Trimmed<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

/// What [`Api::list`] gives.
pub async fn list<K>(api: &Api<K>, params: &ListParams) -> kube::Result<Vec<K>>
where
    K: Resource + Clone + DeserializeOwned,
{
    let request = Request::new(api.resource_url()).list(params).map_err(kube::Error::BuildRequest)?;
    answered(api, request, "list").await
}

/// What [`Api::list`] gives, as it is on the wire: for whoever reads fields that are not known before.
pub async fn list_values<K>(api: &Api<K>, params: &ListParams) -> kube::Result<Vec<Value>>
where
    K: Resource + Clone + DeserializeOwned,
{
    let request = Request::new(api.resource_url()).list(params).map_err(kube::Error::BuildRequest)?;
    answered(api, request, "list").await
}

/// What [`Api::list_metadata`] gives.
pub async fn list_metadata<K>(api: &Api<K>, params: &ListParams) -> kube::Result<Vec<PartialObjectMeta<K>>>
where
    K: Resource + Clone + DeserializeOwned,
{
    let request = Request::new(api.resource_url()).list_metadata(params).map_err(kube::Error::BuildRequest)?;
    answered(api, request, "list_metadata").await
}

/// `name` is what kube calls the request in its spans.
async fn answered<K, T>(api: &Api<K>, mut request: http::Request<Vec<u8>>, name: &'static str) -> kube::Result<Vec<T>>
where
    K: Resource + Clone,
    T: Clone + DeserializeOwned,
{
    request.extensions_mut().insert(name);
    let listed: ObjectList<Trimmed<T>> = api.clone().into_client().request(request).await?;
    Ok(listed.items.into_iter().map(|Trimmed(object)| object).collect())
}

/// Where in an object the reader is.
#[derive(Clone, Copy)]
enum At {
    /// At the object itself.
    Object,
    /// At its metadata.
    Metadata,
}

/// Whatever reads from the inside, and is shown less of it.
struct Trim<T> {
    inner: T,
    at: At,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Trim<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(Trim { inner: visitor, at: self.at })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(Trim { inner: visitor, at: self.at })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(Trim { inner: visitor, at: self.at })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, fields, Trim { inner: visitor, at: self.at })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct enum identifier ignored_any
    }
}

/// What is no map, and not there, is refused in the words of the visitor inside.
impl<'de, V: Visitor<'de>> Visitor<'de> for Trim<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Fields { inner: fields, at: self.at, inside: None })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(items)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Trim { inner: deserializer, at: self.at })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Trim<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Trim { inner: deserializer, at: self.at })
    }
}

/// The fields of an object, or of its metadata.
struct Fields<A> {
    inner: A,
    at: At,
    /// Where the value is that comes next, if anything is left out there.
    inside: Option<At>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            let Some(name) = self.inner.next_key::<Name<'de>>()? else { return Ok(None) };
            let text = name.as_str();
            if matches!(self.at, At::Metadata) && text == "managedFields" {
                self.inner.next_value::<IgnoredAny>()?;
                continue;
            }
            self.inside = (matches!(self.at, At::Object) && text == "metadata").then_some(At::Metadata);
            return match name {
                Name::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
                Name::Owned(name) => seed.deserialize(StrDeserializer::new(&name)),
            }
            .map(Some);
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.inside.take() {
            Some(at) => self.inner.next_value_seed(Trim { inner: seed, at }),
            None => self.inner.next_value_seed(seed),
        }
    }
}

/// The name of a field, copied only where it has to be.
enum Name<'de> {
    Borrowed(&'de str),
    Owned(Box<str>),
}

impl Name<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(name) => name,
            Self::Owned(name) => name,
        }
    }
}

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(NameVisitor(PhantomData))
    }
}

struct NameVisitor<'de>(PhantomData<&'de str>);

impl<'de> Visitor<'de> for NameVisitor<'de> {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name::Borrowed(name))
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name::Owned(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::DynamicObject;
    use serde::Serialize;

    use super::*;

    const OBJECT: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"managedFields":"x"},
        "managedFields":[{"manager":"kubectl","fieldsV1":{"f:data":{}}}]},"data":{"managedFields":"y"}}"#;

    /// Reads a text as a type, with and without managed fields: nothing else may differ.
    #[track_caller]
    fn check<K: DeserializeOwned + Serialize>(text: &str) {
        let mut whole: Value = serde_json::to_value(serde_json::from_str::<K>(text).unwrap()).unwrap();
        assert!(whole["metadata"].as_object_mut().unwrap().remove("managedFields").is_some(), "{text}");
        let Trimmed(trimmed) = serde_json::from_str::<Trimmed<K>>(text).unwrap();
        assert_eq!(serde_json::to_value(trimmed).unwrap(), whole);
        let Trimmed(trimmed) = serde_json::from_value::<Trimmed<K>>(serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(serde_json::to_value(trimmed).unwrap(), whole);
    }

    #[test]
    fn only_the_managed_fields_of_the_metadata_are_left_out() {
        check::<ConfigMap>(OBJECT);
        check::<DynamicObject>(OBJECT);
        check::<Value>(OBJECT);
        check::<PartialObjectMeta<ConfigMap>>(OBJECT);
        let list = format!(r#"{{"apiVersion":"v1","kind":"ConfigMapList","metadata":{{}},"items":[{OBJECT}]}}"#);
        let list: ObjectList<Trimmed<ConfigMap>> = serde_json::from_str(&list).unwrap();
        assert_eq!(list.items[0].0.metadata.managed_fields, None);
        assert_eq!(list.items[0].meta().name.as_deref(), Some("a"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_in_the_same_words() {
        for text in
            [r#"{"metadata":7}"#, r#"{"metadata":{"name":7}}"#, r#"{"data":["x"]}"#, "7", "null", r#"{"metadata":"#]
        {
            let whole = serde_json::from_str::<ConfigMap>(text).map(|_| ()).map_err(|error| error.to_string());
            let trimmed =
                serde_json::from_str::<Trimmed<ConfigMap>>(text).map(|_| ()).map_err(|error| error.to_string());
            assert_eq!(trimmed, whole, "{text}");
        }
    }
}
