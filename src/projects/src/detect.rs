//! What a project is made of, told from the files that say so.

use std::{collections::BTreeSet, path::Path};

use serde::Serialize;
use serde_json::Value;

use crate::{Folder, ProjectError};

/// The system that this program runs on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Machine {
    /// Linux.
    #[default]
    Linux,
    /// Linux under Windows.
    Wsl,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// The system that a project's folder belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Linux.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
    /// Linux under Windows.
    Wsl,
}

impl Platform {
    /// That of a folder, as `machine` sees it: a drive of Windows under `/mnt`, a share of WSL in Windows.
    #[must_use]
    pub fn of(machine: Machine, path: &Path) -> Self {
        let text = path.to_string_lossy().replace('\\', "/").to_lowercase();
        match machine {
            Machine::MacOs => Self::MacOs,
            Machine::Linux => Self::Linux,
            Machine::Wsl => {
                let mut rest = text.strip_prefix("/mnt/").unwrap_or_default().chars();
                let drive = rest.next().is_some_and(|drive| drive.is_ascii_alphabetic());
                if drive && rest.next().is_none_or(|next| next == '/') { Self::Windows } else { Self::Wsl }
            }
            Machine::Windows if text.starts_with("//wsl$/") || text.starts_with("//wsl.localhost/") => Self::Wsl,
            Machine::Windows => Self::Windows,
        }
    }

    /// The name as it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::MacOs => "macos",
            Self::Windows => "windows",
            Self::Wsl => "wsl",
        }
    }
}

/// Languages, frameworks and tools, sorted.
pub type TechStack = Vec<String>;

/// What each file says by being there.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", "Rust"),
    ("package.json", "Node.js"),
    ("tsconfig.json", "TypeScript"),
    ("deno.json", "Deno"),
    ("deno.jsonc", "Deno"),
    ("bun.lockb", "Bun"),
    ("bun.lock", "Bun"),
    ("pyproject.toml", "Python"),
    ("requirements.txt", "Python"),
    ("setup.py", "Python"),
    ("Pipfile", "Python"),
    ("go.mod", "Go"),
    ("pom.xml", "Java"),
    ("build.gradle", "Gradle"),
    ("build.gradle.kts", "Kotlin"),
    ("Gemfile", "Ruby"),
    ("composer.json", "PHP"),
    ("mix.exs", "Elixir"),
    ("pubspec.yaml", "Dart"),
    ("Package.swift", "Swift"),
    ("build.sbt", "Scala"),
    ("stack.yaml", "Haskell"),
    ("dune-project", "OCaml"),
    ("build.zig", "Zig"),
    ("CMakeLists.txt", "CMake"),
    ("meson.build", "Meson"),
    ("Makefile", "Make"),
    ("flake.nix", "Nix"),
    ("Dockerfile", "Docker"),
    ("docker-compose.yml", "Docker"),
    ("compose.yaml", "Docker"),
];
/// What each end of a name says.
const ENDS: &[(&str, &str)] =
    &[(".csproj", ".NET"), (".fsproj", ".NET"), (".sln", ".NET"), (".tf", "Terraform"), (".cabal", "Haskell")];
/// What each dependency of a JavaScript project says.
const NODE: &[(&str, &str)] = &[
    ("react", "React"),
    ("next", "Next.js"),
    ("vue", "Vue"),
    ("nuxt", "Nuxt"),
    ("svelte", "Svelte"),
    ("@angular/core", "Angular"),
    ("express", "Express"),
    ("fastify", "Fastify"),
    ("@nestjs/core", "NestJS"),
    ("electron", "Electron"),
    ("@tauri-apps/api", "Tauri"),
    ("typescript", "TypeScript"),
    ("vite", "Vite"),
    ("@modelcontextprotocol/sdk", "MCP"),
];
const RUST: &[(&str, &str)] = &[
    ("axum", "Axum"),
    ("actix-web", "Actix"),
    ("tauri", "Tauri"),
    ("bevy", "Bevy"),
    ("leptos", "Leptos"),
    ("rmcp", "MCP"),
];
const PYTHON: &[(&str, &str)] =
    &[("django", "Django"), ("fastapi", "FastAPI"), ("flask", "Flask"), ("torch", "PyTorch"), ("mcp", "MCP")];

/// Files of a project's folder that are looked at.
const LOOKED_AT: usize = 2000;

/// Whether a file of this name makes a folder a project.
pub(crate) fn is_manifest(name: &str) -> bool {
    let weak =
        ["Makefile", "Dockerfile", "docker-compose.yml", "compose.yaml", "tsconfig.json", "bun.lock", "bun.lockb"];
    let named = FILES.iter().any(|(file, _)| *file == name && !weak.contains(file));
    named || [".csproj", ".fsproj", ".sln", ".cabal"].iter().any(|end| name.ends_with(end))
}

/// The technologies of the project in `folder`. What cannot be read says nothing.
///
/// # Errors
///
/// [`ProjectError::Root`].
pub fn describe(folder: &Path) -> Result<TechStack, ProjectError> {
    Ok(stack(&Folder::open(folder)?))
}

pub(crate) fn stack(folder: &Folder) -> TechStack {
    let mut found = BTreeSet::new();
    for name in folder.files(".", LOOKED_AT) {
        found.extend(FILES.iter().filter(|(file, _)| *file == name).map(|(_, technology)| *technology));
        found.extend(ENDS.iter().filter(|(end, _)| name.ends_with(end)).map(|(_, technology)| *technology));
    }
    let text = |name: &str| folder.text(name).unwrap_or_default();
    if found.contains("Node.js")
        && let Ok(package) = serde_json::from_str::<Value>(&text("package.json"))
    {
        let has = |name: &str| ["dependencies", "devDependencies"].iter().any(|list| package[list].get(name).is_some());
        found.extend(NODE.iter().filter(|(name, _)| has(name)).map(|(_, technology)| *technology));
    }
    if found.contains("Rust")
        && let Ok(cargo) = toml::from_str::<Value>(&text("Cargo.toml"))
    {
        let has = |name: &str| {
            cargo["dependencies"].get(name).is_some() || cargo["workspace"]["dependencies"].get(name).is_some()
        };
        found.extend(RUST.iter().filter(|(name, _)| has(name)).map(|(_, technology)| *technology));
    }
    if found.contains("Python") {
        let required = [text("pyproject.toml"), text("requirements.txt")].concat().to_lowercase();
        // A name, and not a part of another one.
        let words: BTreeSet<&str> =
            required.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).collect();
        found.extend(PYTHON.iter().filter(|(name, _)| words.contains(name)).map(|(_, technology)| *technology));
    }
    found.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_stack_is_told_from_manifest_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert!(describe(folder.path()).unwrap().is_empty());
        write("package.json", r#"{"dependencies": {"react": "1"}, "devDependencies": {"typescript": "5"}}"#);
        write("Cargo.toml", "[dependencies]\naxum = \"0.8\"\n");
        write("pyproject.toml", "[project]\ndependencies = [\"FastAPI>=0.1\", \"flask-cors\"]\n");
        write("app.csproj", "");
        assert_eq!(
            describe(folder.path()).unwrap(),
            [".NET", "Axum", "FastAPI", "Node.js", "Python", "React", "Rust", "TypeScript"]
        );
        // What is broken says what its name says.
        write("package.json", "{");
        assert!(describe(folder.path()).unwrap().contains(&"Node.js".to_owned()));
        assert!(describe(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_folder_belongs_to_the_system_that_holds_it() {
        for (machine, path, platform) in [
            (Machine::Linux, "/mnt/c/x", Platform::Linux),
            (Machine::Wsl, "/mnt/c/x", Platform::Windows),
            (Machine::Wsl, "/mnt/c", Platform::Windows),
            (Machine::Wsl, "/mnt/data/x", Platform::Wsl),
            (Machine::Wsl, "/home/me", Platform::Wsl),
            (Machine::Windows, r"\\wsl$\Ubuntu\home", Platform::Wsl),
            (Machine::Windows, r"\\wsl.localhost\Ubuntu", Platform::Wsl),
            (Machine::Windows, r"C:\x", Platform::Windows),
            (Machine::MacOs, "/Users/me", Platform::MacOs),
        ] {
            assert_eq!(Platform::of(machine, Path::new(path)), platform, "{path}");
        }
    }
}
