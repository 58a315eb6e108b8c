//! What a child may know of the host's environment, and which names deserve a second look.

use std::ffi::{OsStr, OsString};

use portcullis::reference::Surroundings;

/// What is handed on from the host's own environment. Everything else stays here: tokens, keys,
/// whatever a shell once exported.
const HANDED_ON: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];
const HANDED_ON_PREFIXES: &[&str] = &["LC_", "XDG_"];
/// Without these hardly any program starts on Windows.
const HANDED_ON_WINDOWS: &[&str] = &[
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "COMMONPROGRAMFILES",
    "USERPROFILE",
    "USERNAME",
    "HOMEDRIVE",
    "HOMEPATH",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "OS",
    "PATH",
    "TMP",
    "TEMP",
];

/// Names whose value decides which code runs, and how.
const CHANGES_CODE: &[(&str, &str)] = &[
    ("PATH", "decides which programs the server starts"),
    ("PATHEXT", "decides which programs the server starts"),
    ("COMSPEC", "decides which shell the server starts"),
    ("SHELL", "decides which shell the server starts"),
    ("IFS", "changes how shells read commands"),
    ("ENV", "names a file that shells run"),
    ("BASH_ENV", "names a file that shells run"),
    ("ZDOTDIR", "names a folder of files that shells run"),
    ("PROMPT_COMMAND", "holds a command that shells run"),
    ("NODE_OPTIONS", "makes Node.js load other code"),
    ("NODE_PATH", "makes Node.js load other code"),
    ("NODE_REPL_EXTERNAL_MODULE", "makes Node.js load other code"),
    ("ELECTRON_RUN_AS_NODE", "makes Electron run other code"),
    ("NPM_CONFIG_REGISTRY", "decides where packages come from"),
    ("NPM_CONFIG_USERCONFIG", "decides where packages come from"),
    ("UV_INDEX_URL", "decides where packages come from"),
    ("UV_DEFAULT_INDEX", "decides where packages come from"),
    ("PIP_INDEX_URL", "decides where packages come from"),
    ("PIP_EXTRA_INDEX_URL", "decides where packages come from"),
    ("PYTHONPATH", "makes Python load other code"),
    ("PYTHONSTARTUP", "makes Python run other code"),
    ("PYTHONHOME", "makes Python load other code"),
    ("PYTHONUSERBASE", "makes Python load other code"),
    ("PYTHONBREAKPOINT", "makes Python run other code"),
    ("PERL5OPT", "makes Perl load other code"),
    ("PERL5LIB", "makes Perl load other code"),
    ("PERL5DB", "makes Perl run other code"),
    ("RUBYOPT", "makes Ruby load other code"),
    ("RUBYLIB", "makes Ruby load other code"),
    ("GEM_PATH", "makes Ruby load other code"),
    ("LUA_PATH", "makes Lua load other code"),
    ("LUA_CPATH", "makes Lua load other code"),
    ("LUA_INIT", "makes Lua run other code"),
    ("PHPRC", "makes PHP load other code"),
    ("PHP_INI_SCAN_DIR", "makes PHP load other code"),
    ("JAVA_TOOL_OPTIONS", "makes Java load other code"),
    ("_JAVA_OPTIONS", "makes Java load other code"),
    ("JDK_JAVA_OPTIONS", "makes Java load other code"),
    ("CLASSPATH", "makes Java load other code"),
    ("DOTNET_STARTUP_HOOKS", "makes .NET load other code"),
    ("CORECLR_PROFILER_PATH", "makes .NET load other code"),
    ("DENO_DIR", "decides which code Deno runs"),
    ("GIT_SSH", "is a command that Git runs"),
    ("GIT_SSH_COMMAND", "is a command that Git runs"),
    ("GIT_EXTERNAL_DIFF", "is a command that Git runs"),
    ("GIT_PROXY_COMMAND", "is a command that Git runs"),
    ("GIT_ASKPASS", "is a command that Git runs"),
    ("GIT_EXEC_PATH", "decides which code Git runs"),
    ("GIT_CONFIG_GLOBAL", "names settings that can hold commands"),
    ("GIT_CONFIG_SYSTEM", "names settings that can hold commands"),
    ("GIT_CONFIG_COUNT", "holds settings that can hold commands"),
    ("SSH_ASKPASS", "is a command that SSH runs"),
    ("EDITOR", "is a command that other programs run"),
    ("VISUAL", "is a command that other programs run"),
    ("PAGER", "is a command that other programs run"),
    ("BROWSER", "is a command that other programs run"),
    ("DOCKER_HOST", "decides where containers run"),
    ("OPENSSL_CONF", "names settings that can load code"),
    ("GCONV_PATH", "makes the system's library load other code"),
    ("MALLOC_CONF", "changes the system's library"),
    ("HOME", "decides which settings the server reads"),
    ("XDG_CONFIG_HOME", "decides which settings the server reads"),
    ("SSL_CERT_FILE", "decides whom the server believes on the network"),
    ("SSL_CERT_DIR", "decides whom the server believes on the network"),
    ("NODE_EXTRA_CA_CERTS", "decides whom the server believes on the network"),
    ("NODE_TLS_REJECT_UNAUTHORIZED", "decides whom the server believes on the network"),
];
const CHANGES_CODE_PREFIXES: &[(&str, &str)] = &[
    ("LD_", "makes the loader run other code"),
    ("DYLD_", "makes the loader run other code"),
    ("BASH_FUNC_", "defines a function in shells"),
    ("GIT_CONFIG_KEY_", "holds settings that can hold commands"),
    ("GIT_CONFIG_VALUE_", "holds settings that can hold commands"),
];

/// What a child gets of the host's environment.
pub(crate) fn handed_on(surroundings: &Surroundings) -> Vec<(OsString, OsString)> {
    let entries = surroundings.environment.iter().filter(|(name, _)| is_handed_on(name));
    entries.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_handed_on(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    HANDED_ON.contains(&name)
        || HANDED_ON_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || cfg!(windows) && HANDED_ON_WINDOWS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Why setting `name` deserves a second look. Case does not count: npm takes both, and so does
/// Windows.
pub(crate) fn warning(name: &str) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    let exact = CHANGES_CODE.iter().find(|(known, _)| *known == upper);
    let prefix = || CHANGES_CODE_PREFIXES.iter().find(|(prefix, _)| upper.starts_with(prefix));
    exact.or_else(prefix).map(|(_, why)| *why)
}

/// Why `name` cannot be the name of a variable.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("a variable needs a name")
    } else if name.contains('=') {
        Some("the name of a variable cannot hold `=`")
    } else if name.chars().any(|character| character.is_whitespace() || portcullis::display::is_hidden(character)) {
        Some("the name of a variable cannot hold spaces, line ends or characters that nobody sees")
    } else if name.eq_ignore_ascii_case(super::cookie::VARIABLE) {
        Some("this variable is how the processes of a server are found")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_names_that_change_what_runs_are_flagged() {
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "BASH_ENV",
            "ENV",
            "PATH",
            "Path",
            "npm_config_registry",
            "GIT_SSH_COMMAND",
            "BASH_FUNC_ls%%",
        ] {
            assert!(warning(name).is_some(), "{name}");
        }
        for name in ["API_KEY", "GITHUB_TOKEN", "PATHS", "DEBUG"] {
            assert_eq!(warning(name), None, "{name}");
        }
    }

    #[test]
    fn s7_names_that_are_none_are_refused() {
        for name in ["", "A=B", "A\0", "A\nB", "A B", "A\u{200b}", "A\u{202e}B", "PORTCULLIS_COOKIE"] {
            assert!(refusal(name).is_some(), "{name:?}");
        }
        for name in ["A", "_x1", "ProgramFiles(x86)", "BASH_FUNC_ls%%"] {
            assert_eq!(refusal(name), None, "{name}");
        }
    }

    #[test]
    fn s8_only_the_list_is_handed_on() {
        let environment = ["PATH", "LC_ALL", "XDG_DATA_HOME", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "PORTCULLIS_HOME"];
        let environment = environment.map(|name| (name.into(), "x".into())).into();
        let surroundings = Surroundings { environment, ..Surroundings::default() };
        let names: Vec<_> = handed_on(&surroundings).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["LC_ALL", "PATH", "XDG_DATA_HOME"]);
    }
}
