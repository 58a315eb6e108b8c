//! Projects that a person registered, and the groups that they belong to.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{Gate, GateError, find};
use crate::{
    audit::{AuditEvent, AuditLine},
    canonical::{hex, unhex},
    secret::{Secret, SecretEntry, SecretKind},
    store::{Group, Project, State, StoreError, change, new_id},
};

/// What the HMAC of a token is for.
const TOKEN: &str = "group token";

fn of_token(id: &str, token: &str) -> Vec<u8> {
    [id.as_bytes(), b"/", token.as_bytes()].concat()
}

/// What is put into a group, or taken out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// Ids of projects.
    pub projects: Vec<String>,
    /// Names of servers.
    pub servers: Vec<String>,
}

fn project<'s>(state: &'s State, id: &str) -> Result<&'s Project, GateError> {
    state.project(id).ok_or_else(|| GateError::UnknownProject { id: id.to_owned() })
}

fn group_mut<'s>(state: &'s mut State, id: &str) -> Result<&'s mut Group, GateError> {
    let found = state.groups.iter_mut().find(|group| group.id == id);
    found.ok_or_else(|| GateError::UnknownGroup { id: id.to_owned() })
}

impl Gate {
    /// All projects, in the order in which they were registered.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn projects(&self) -> Result<Vec<Project>, GateError> {
        Ok(self.state().await?.projects.clone())
    }

    /// The project of this id; with a group, only if it belongs to it.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownProject`], the same whether there is none or it is not the group's.
    pub async fn project(&self, id: &str, of: Option<&str>) -> Result<Project, GateError> {
        let state = self.state().await?;
        let found = project(&state, id)?;
        let belongs =
            |group: &str| state.group(group).is_some_and(|group| group.projects.iter().any(|project| project == id));
        match of {
            Some(group) if !belongs(group) => Err(GateError::UnknownProject { id: id.to_owned() }),
            _ => Ok(found.clone()),
        }
    }

    /// Registers the folder `path`, absolute and without links, and says whether it is new.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn register_project(&self, path: &str, name: &str) -> Result<(Project, bool), GateError> {
        let (_, done) = change(self.store(), |state| {
            if let Some(known) = state.projects.iter().find(|project| project.path == path) {
                return Ok::<_, GateError>((known.clone(), false));
            }
            let id = new_id(name, |id| state.project(id).is_some());
            let project = Project { id, name: name.to_owned(), path: path.to_owned(), ..Project::default() };
            state.projects.push(project.clone());
            Ok((project, true))
        })
        .await?;
        if done.1 {
            self.note(AuditEvent::Add, format!("project {}", done.0.id))?;
        }
        Ok(done)
    }

    /// Forgets a project; its folder stays as it is. Of a group it is that group that forgets it: it stays where other
    /// groups hold it.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownProject`], the same whether there is none or it is not the group's, or what the store says.
    pub async fn unregister_project(&self, id: &str, of: Option<&str>) -> Result<Project, GateError> {
        let (_, (gone, stays)) = change(self.store(), |state| {
            let gone = project(state, id)?.clone();
            if let Some(of) = of {
                let held = state.groups.iter_mut().find(|group| group.id == of);
                let held = held.filter(|group| group.projects.iter().any(|held| held == id));
                let group = held.ok_or_else(|| GateError::UnknownProject { id: id.to_owned() })?;
                group.projects.retain(|held| held != id);
            }
            let stays = of.is_some() && state.groups.iter().any(|group| group.projects.iter().any(|held| held == id));
            if !stays {
                state.projects.retain(|project| project.id != id);
            }
            Ok::<_, GateError>((gone, stays))
        })
        .await?;
        match of {
            Some(group) if stays => self.note(AuditEvent::Change, format!("group {group}, without project {id}"))?,
            _ => self.note(AuditEvent::Remove, format!("project {id}"))?,
        }
        Ok(gone)
    }

    /// All groups, in the order in which they were made.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn groups(&self) -> Result<Vec<Group>, GateError> {
        Ok(self.state().await?.groups.clone())
    }

    /// The group of this id.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownGroup`], or what the store says.
    pub async fn group(&self, id: &str) -> Result<Group, GateError> {
        let state = self.state().await?;
        state.group(id).cloned().ok_or_else(|| GateError::UnknownGroup { id: id.to_owned() })
    }

    /// Makes a group with nothing in it.
    ///
    /// # Errors
    ///
    /// [`GateError::GroupExists`] where there is one of this name, or what the store says.
    pub async fn create_group(&self, name: &str) -> Result<Group, GateError> {
        let (_, group) = change(self.store(), |state| {
            if let Some(known) = state.groups.iter().find(|group| group.name == name) {
                return Err(GateError::GroupExists { id: known.id.clone() });
            }
            let id = new_id(name, |id| state.group(id).is_some());
            let group = Group { id, name: name.to_owned(), ..Group::default() };
            state.groups.push(group.clone());
            Ok(group)
        })
        .await?;
        self.note(AuditEvent::Add, format!("group {}", group.id))?;
        Ok(group)
    }

    /// Removes a group and its token. Its projects and servers stay.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownGroup`], or what the store says.
    pub async fn remove_group(&self, id: &str) -> Result<Group, GateError> {
        let (_, gone) = change(self.store(), |state| {
            let gone = group_mut(state, id)?.clone();
            state.groups.retain(|group| group.id != id);
            Ok::<_, GateError>(gone)
        })
        .await?;
        // What the token is known by went with the group: one that cannot be removed now opens nothing.
        let entry = self.token_entry(id).await?;
        if let Err(error) = self.0.parts.secrets.store.remove(&entry).await {
            tracing::warn!(group = id, %error, "the token of a group that is gone could not be removed");
        }
        self.note(AuditEvent::Remove, format!("group {id}"))?;
        Ok(gone)
    }

    /// Puts projects and servers into a group; what is there already stays once.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownGroup`], [`GateError::UnknownProject`], [`GateError::UnknownServer`]; nothing is changed.
    pub async fn add_to_group(&self, id: &str, members: &Members) -> Result<Group, GateError> {
        self.change_group(id, |state, group| {
            for member in &members.projects {
                project(state, member)?;
                if !group.projects.contains(member) {
                    group.projects.push(member.clone());
                }
            }
            for member in &members.servers {
                find(state, member)?;
                if !group.servers.contains(member) {
                    group.servers.push(member.clone());
                }
            }
            Ok(())
        })
        .await
    }

    /// Takes projects and servers out of a group.
    ///
    /// # Errors
    ///
    /// As [`add_to_group`](Self::add_to_group), where something is not in it.
    pub async fn remove_from_group(&self, id: &str, members: &Members) -> Result<Group, GateError> {
        self.change_group(id, |_, group| {
            if let Some(id) = members.projects.iter().find(|member| !group.projects.contains(member)) {
                return Err(GateError::UnknownProject { id: id.clone() });
            }
            if let Some(name) = members.servers.iter().find(|member| !group.servers.contains(member)) {
                return Err(GateError::UnknownServer { name: name.clone(), near: None });
            }
            group.projects.retain(|member| !members.projects.contains(member));
            group.servers.retain(|member| !members.servers.contains(member));
            Ok(())
        })
        .await
    }

    /// Names the file with the rules for the projects of a group, or none.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownGroup`], or what the store says.
    pub async fn set_group_rules(&self, id: &str, file: Option<String>) -> Result<Group, GateError> {
        self.change_group(id, |_, group| {
            group.rules.clone_from(&file);
            Ok(())
        })
        .await
    }

    async fn change_group(
        &self,
        id: &str,
        mut with: impl FnMut(&State, &mut Group) -> Result<(), GateError> + Send,
    ) -> Result<Group, GateError> {
        let (_, group) = change(self.store(), |state| {
            let mut group = group_mut(state, id)?.clone();
            with(state, &mut group)?;
            group_mut(state, id)?.clone_from(&group);
            Ok::<_, GateError>(group)
        })
        .await?;
        self.note(AuditEvent::Change, format!("group {id}"))?;
        Ok(group)
    }

    /// The group of this id, if `token` opens it. Takes as long whether there is none, or it is another's.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub async fn open_group(&self, id: &str, token: &str) -> Result<Option<Group>, GateError> {
        let state = self.state().await?;
        let key = self.key_of(&state).await?;
        let group = state.group(id);
        let known = group.and_then(|group| unhex(group.token.as_deref()?));
        let opens = key.verify(TOKEN, &of_token(id, token), &known.unwrap_or_default());
        Ok(group.filter(|_| opens && known.is_some()).cloned())
    }

    /// The token that opens a group's endpoint, if one was made.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownGroup`], or what the stores say.
    pub async fn group_token(&self, id: &str) -> Result<Option<Secret>, GateError> {
        self.group(id).await?;
        let entry = self.token_entry(id).await?;
        let Some(token) = self.0.parts.secrets.store.get(&entry).await? else { return Ok(None) };
        // One that an earlier group of this id left behind opens nothing.
        Ok(self.open_group(id, token.reveal()).await?.map(|_| token))
    }

    /// A new token for a group's endpoint, 32 random bytes in Base64; the old one opens nothing any more.
    ///
    /// # Errors
    ///
    /// [`GateError::UnknownGroup`], or what the stores say.
    pub async fn rotate_group_token(&self, id: &str) -> Result<Secret, GateError> {
        self.group(id).await?;
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| GateError::Store(StoreError::Random))?;
        let token = Secret::new(BASE64_URL_SAFE_NO_PAD.encode(bytes));
        let entry = self.token_entry(id).await?;
        self.0.parts.secrets.redactor.learn(&format!("group:{id}"), &token);
        self.0.parts.secrets.store.set(&entry, &token).await?;
        let known = hex(&self.key().await?.mac(TOKEN, &of_token(id, token.reveal())));
        self.change_group(id, |_, group| {
            group.token = Some(known.clone());
            Ok(())
        })
        .await?;
        Ok(token)
    }

    /// A line of the trail about something that is no server.
    fn note(&self, event: AuditEvent, what: String) -> Result<(), GateError> {
        self.record(&AuditLine { detail: Some(what), ..AuditLine::now(event) })
    }

    async fn token_entry(&self, id: &str) -> Result<SecretEntry, GateError> {
        let (_, entry) = self.entry(SecretKind::Group, id).await?;
        Ok(entry)
    }
}
