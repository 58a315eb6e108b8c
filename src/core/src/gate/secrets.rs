//! Secrets: kept, listed by name, forgotten, and moved out of definitions.
//!
//! No function here answers with a value.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Value, json};

use super::{Gate, GateError, find, nearest};
use crate::{
    definition::Definition,
    reference::{InputAnswer, Reference, Template},
    secret::{KeptIn, Resolver, Secret, SecretEntry, SecretKind, name_problem},
    store::State,
    transport::{FieldValue, OpenContext, TransportError},
};

mod literal;

pub use literal::{Literal, Moved};

/// One secret, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretView {
    /// Its name, or the id of the input that it answers.
    pub name: String,
    /// What it is for.
    pub kind: SecretKind,
    /// Where its value lies; `None` where there is none yet.
    pub place: Option<KeptIn>,
    /// The servers that refer to it, in document order.
    pub used_by: Vec<String>,
}

impl SecretView {
    /// As hosts write it; never a value.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "kind": self.kind.to_string(),
            "place": self.place.map(|place| place.to_string()),
            "usedBy": self.used_by,
        })
    }
}

impl Gate {
    /// What is filled in at the start of one server.
    pub(super) fn resolver<'a>(&'a self, state: &'a State, server: &'a str) -> Resolver<'a> {
        Resolver {
            server,
            secrets: &self.0.parts.secrets,
            surroundings: &self.0.parts.context.surroundings,
            store: &state.id,
            inputs: &state.inputs,
        }
    }

    /// What a plan is made in: with the answers to the inputs that stand where everybody sees them.
    pub(super) async fn context_for(
        &self,
        state: &State,
        definition: &Definition,
    ) -> Result<Cow<'_, OpenContext>, GateError> {
        let context = &self.0.parts.context;
        let mut needed = BTreeSet::new();
        for (field, value) in definition.fields() {
            if !self.is_secret(definition, field) {
                walk(field, value, &mut |_, text| needed.extend(inputs(text)));
            }
        }
        if needed.is_empty() {
            return Ok(Cow::Borrowed(context));
        }
        let mut context = context.clone();
        let resolver = Resolver { store: &self.store_id(state).await?, ..self.resolver(state, definition.name()) };
        for id in needed {
            let value = resolver.input(&id).await.map_err(|source| GateError::Transport {
                server: definition.name().to_owned(),
                source: TransportError::Reference { field: format!("${{input:{id}}}"), source },
            })?;
            let password = state.inputs.iter().any(|input| input.id == id && input.password);
            if password {
                self.0.parts.secrets.redactor.learn(&format!("input:{id}"), &value);
            }
            context.surroundings.inputs.insert(id, InputAnswer { value, password });
        }
        Ok(Cow::Owned(context))
    }

    /// Learns what stands in the definition itself and is nobody's business.
    pub(super) fn learn(&self, definition: &Definition) {
        let surroundings = &self.0.parts.context.surroundings;
        let redactor = &self.0.parts.secrets.redactor;
        for (field, value) in definition.fields() {
            let kind = self.0.parts.registry.kind(definition.kind());
            let table = kind.and_then(|kind| kind.fields.iter().find(|known| known.name == field));
            match table.map(|known| (known.secret, known.value)) {
                Some((true, _)) => walk(field, value, &mut |path, text| {
                    if !path.ends_with(".type") && !text.contains("${") {
                        redactor.learn(path, &Secret::new(text));
                    }
                }),
                Some((false, FieldValue::Url)) => {
                    let url = surroundings.expand(value.as_str().unwrap_or_default()).unwrap_or_default();
                    for (name, value) in url::Url::parse(&url).iter().flat_map(url::Url::query_pairs) {
                        redactor.learn(&format!("{field}?{name}"), &Secret::new(value));
                    }
                    // As it is written, too: encoded once more it would not be found otherwise.
                    for (name, value) in url.split(['?', '&']).skip(1).filter_map(|pair| pair.split_once('=')) {
                        redactor.learn(&format!("{field}?{name}"), &Secret::new(value));
                    }
                }
                _ => {}
            }
        }
    }

    fn is_secret(&self, definition: &Definition, field: &str) -> bool {
        let kind = self.0.parts.registry.kind(definition.kind());
        kind.is_some_and(|kind| kind.fields.iter().any(|known| known.name == field && known.secret))
    }

    /// The id of the store, whose key is made first if need be.
    async fn store_id(&self, state: &State) -> Result<String, GateError> {
        if !state.id.is_empty() {
            return Ok(state.id.clone());
        }
        self.key().await?;
        Ok(self.state().await?.id.clone())
    }

    pub(super) async fn entry(
        &self,
        kind: SecretKind,
        name: &str,
    ) -> Result<(std::sync::Arc<State>, SecretEntry), GateError> {
        let state = self.state().await?;
        let store = self.store_id(&state).await?;
        Ok((state, SecretEntry { store, kind, name: name.to_owned() }))
    }

    /// Keeps the value of `${secret:name}`. A running server keeps the old one until it is started again.
    ///
    /// # Errors
    ///
    /// [`GateError::SecretName`], [`GateError::EmptySecret`], [`GateError::Secret`].
    pub async fn set_secret(&self, name: &str, value: Secret) -> Result<KeptIn, GateError> {
        if let Some(source) = name_problem(name) {
            return Err(GateError::SecretName { name: name.to_owned(), source });
        }
        let (_, entry) = self.entry(SecretKind::Secret, name).await?;
        self.keep(&entry, value).await
    }

    /// Keeps the answer to a declared input.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownInput`], [`GateError::EmptySecret`], [`GateError::Secret`].
    pub async fn set_input(&self, id: &str, value: Secret) -> Result<KeptIn, GateError> {
        let (state, entry) = self.entry(SecretKind::Input, id).await?;
        if !state.inputs.iter().any(|input| input.id == id) {
            let near = nearest(id, state.inputs.iter().map(|input| input.id.as_str()));
            return Err(GateError::UnknownInput { id: id.to_owned(), near });
        }
        self.keep(&entry, value).await
    }

    async fn keep(&self, entry: &SecretEntry, value: Secret) -> Result<KeptIn, GateError> {
        if value.is_empty() {
            return Err(GateError::EmptySecret);
        }
        let store = &self.0.parts.secrets.store;
        self.0.parts.secrets.redactor.learn(&format!("{}:{}", entry.kind, entry.name), &value);
        store.set(entry, &value).await?;
        let kept = store.list(&entry.store).await?;
        Ok(kept.into_iter().find(|kept| kept.entry == *entry).map_or(KeptIn::Memory, |kept| kept.place))
    }

    /// Every secret that is kept or referred to, sorted. Reads no value.
    ///
    /// # Errors
    ///
    /// What the stores say.
    pub async fn secrets(&self) -> Result<Vec<SecretView>, GateError> {
        let state = self.state().await?;
        let mut found: Vec<SecretView> = Vec::new();
        if !state.id.is_empty() {
            for kept in self.0.parts.secrets.store.list(&state.id).await? {
                let (name, kind) = (kept.entry.name, kept.entry.kind);
                // Whoever wants it asks for the group's token.
                if kind == SecretKind::Group {
                    continue;
                }
                found.push(SecretView { name, kind, place: Some(kept.place), used_by: Vec::new() });
            }
        }
        for definition in &state.definitions {
            for (kind, name) in used(definition) {
                let at = found.iter().position(|view| view.kind == kind && view.name == name).unwrap_or_else(|| {
                    found.push(SecretView { name, kind, place: None, used_by: Vec::new() });
                    found.len() - 1
                });
                found[at].used_by.push(definition.name().to_owned());
            }
        }
        found.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Ok(found)
    }

    /// Forgets a secret or an answer; what was known about it. Servers that refer to it do not start
    /// any more until it is set again.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownSecret`], or what the stores say.
    pub async fn remove_secret(&self, kind: SecretKind, name: &str) -> Result<SecretView, GateError> {
        let known = self.secrets().await?;
        let of_kind = || known.iter().filter(|view| view.kind == kind && view.place.is_some());
        let Some(view) = of_kind().find(|view| view.name == name) else {
            let near = nearest(name, of_kind().map(|view| view.name.as_str()));
            return Err(GateError::UnknownSecret { name: name.to_owned(), near });
        };
        let (_, entry) = self.entry(kind, name).await?;
        self.0.parts.secrets.store.remove(&entry).await?;
        Ok(view.clone())
    }
}

/// Each text in `value`, with its path: `env.TOKEN`.
pub(super) fn walk(path: &str, value: &Value, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => visit(path, text),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                walk(&format!("{path}[{at}]"), item, visit);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                walk(&format!("{path}.{key}"), item, visit);
            }
        }
        _ => {}
    }
}

fn inputs(text: &str) -> Vec<String> {
    let of = |reference: &Reference| match reference {
        Reference::Input(id) => Some(id.clone()),
        _ => None,
    };
    Template::parse(text).iter().flat_map(Template::references).filter_map(of).collect()
}

/// The secrets and inputs that a definition refers to, each once.
fn used(definition: &Definition) -> BTreeSet<(SecretKind, String)> {
    let mut found = BTreeSet::new();
    for (field, value) in definition.fields() {
        walk(field, value, &mut |_, text| {
            for reference in Template::parse(text).iter().flat_map(Template::references) {
                match reference {
                    Reference::Secret(name) => found.insert((SecretKind::Secret, name.clone())),
                    Reference::Input(id) => found.insert((SecretKind::Input, id.clone())),
                    _ => false,
                };
            }
        });
    }
    found
}
