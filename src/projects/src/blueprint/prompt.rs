//! What an agent is asked, to write or complete a blueprint that [`status`](super::status) can read.

use std::fmt::Write as _;

use super::{Rules, status::status};
use crate::{Folder, Platform, ProjectError, detect};

/// The manifest that the prompt shows.
pub(super) fn manifest_example(name: &str, platform: &str, stack: &[String]) -> String {
    let stack: Vec<_> = stack.iter().map(|technology| format!("{technology:?}")).collect();
    format!(
        "name: {name:?}\ndescription: \"What it is for, in one or two sentences.\"\nplatform: {platform}\n\
         techStack: [{}]\nmodules:\n  - core\n",
        stack.join(", ")
    )
}

/// The module that the prompt shows.
pub(super) const MODULE_EXAMPLE: &str = "# core

What this part is for.

## Read the configuration

- status: todo
- complexity: S
- files: src/config.rs
- depends: none
- acceptance: A wrong file is refused with the line of the mistake.

## Start the service

- status: concept
- complexity: M
- files: src/service.rs
- depends: Read the configuration
- acceptance: It answers on its port within a second.
";

/// Asks for the blueprint of a project, with its own facts.
///
/// # Errors
///
/// None where there is no blueprint yet or its manifest is wrong: then that is what is asked for. Otherwise what
/// keeps it from being read.
pub fn prompt(folder: &Folder, name: &str, platform: Platform, rules: &[Rules]) -> Result<String, ProjectError> {
    let stack = detect::stack(folder);
    let known = if stack.is_empty() { "not known from its files".to_owned() } else { stack.join(", ") };
    let mut text = format!(
        "Write the blueprint of the project {name:?} into its folder `.blueprint/`.\n\n\
         What is known: it runs on {}; it is made of: {known}.\n\n",
        platform.name()
    );
    match status(folder, rules) {
        Ok(found) => {
            let _ = writeln!(
                text,
                "There is a blueprint already, with {} cards in {} modules. Complete it; keep what is right.",
                found.cards,
                found.modules.len()
            );
            for problem in &found.problems {
                let _ = writeln!(text, "- {}:{}: {}; {}", problem.file, problem.line, problem.message, problem.help);
            }
        }
        Err(ProjectError::NoBlueprint) => text.push_str("There is none yet. Read the sources first.\n"),
        Err(ProjectError::Manifest(why)) => {
            let _ = writeln!(text, "Its manifest cannot be read ({why}): write it anew, keep the modules.");
        }
        Err(error) => return Err(error),
    }
    let _ = write!(
        text,
        "\nExactly these files, in exactly this form; `get_blueprint_status` then has to report no problem.\n\n\
         `.blueprint/manifest.yaml`:\n\n```yaml\n{}```\n\n\
         `.blueprint/modules/<module>.md`, one for each module in the manifest, whose name is letters, digits, `-` and `_`:\n\n\
         ```markdown\n{MODULE_EXAMPLE}```\n\n\
         Every card is a heading of the second level with a title that no other card has, and these five fields, each \
         on a line of its own:\n\
         - `status`: `todo`, `doing`, `done`, `blocked` or `concept`\n\
         - `complexity`: `S`, `M` or `L`\n\
         - `files`: paths from the project's folder, with commas between; those of cards that are doing or done exist\n\
         - `depends`: titles of other cards, with commas between, or `none`; never in a circle\n\
         - `acceptance`: what shows that it is done; a card that is done has one\n\n\
         Do not write `.blueprint/RULES.md`: `sync_blueprint_rules` does.\n",
        manifest_example(name, platform.name(), &stack)
    );
    Ok(text)
}
