//! Shows what a server would do, and asks.

use portcullis::{
    Fingerprint, GateError,
    display::{escape, quote},
    gate::{Choice, ToolView, TrustQuestion},
};

use crate::{
    app::App,
    error::CliError,
    render::{self, shell},
    terminal::Terminal,
};

/// Show what a server would do and decide whether to trust it.
///
/// Without a terminal only the exact fingerprint counts, which `show` prints.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    pub name: String,
    /// The fingerprint of what you have looked at already.
    #[arg(long, value_name = "HEX")]
    pub fingerprint: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// What the gate says; nobody to ask; a no.
pub async fn run(args: &Args, app: &App) -> Result<u8, CliError> {
    let question = app.gate.trust_question(&args.name).await?;
    if let Some(fingerprint) = &args.fingerprint {
        if Fingerprint::parse(fingerprint.trim()) != Some(question.fingerprint()) {
            return Err(GateError::WrongFingerprint { server: args.name.clone() }.into());
        }
        app.gate.trust(question).await?;
        let next =
            format!("{} is trusted; its tools: portcullis tools {} --refresh", quote(&args.name), shell(&args.name));
        return super::done(app, &args.name, &next).await;
    }
    if question.differences().is_some_and(<[String]>::is_empty) {
        let words = format!("{} is trusted already, as it is now", quote(&args.name));
        return super::done(app, &args.name, &words).await;
    }
    if app.terminal.is_some() || !app.output.json {
        app.output.note(&render::trust::text(&question));
        app.output.note("");
    }
    let Some(terminal) = app.terminal else {
        let help = format!(
            "look at it, then: portcullis trust {} --fingerprint {}",
            shell(&args.name),
            question.fingerprint()
        );
        return Err(
            CliError::blocked("nobody-to-ask", "there is no terminal to ask at, so it is not trusted").help(help)
        );
    };
    if !ask(terminal, app, question).await? {
        return Err(CliError::blocked("not-trusted", format!("the server `{}` is not trusted", escape(&args.name))));
    }
    onwards(&args.name, terminal, app).await?;
    super::done(app, &args.name, "").await
}

/// Asks, and remembers a yes.
///
/// # Errors
///
/// What the terminal or the gate says.
pub(crate) async fn ask(terminal: Terminal, app: &App, question: TrustQuestion) -> Result<bool, CliError> {
    let yes = terminal.confirm("Trust this server?").await.map_err(|error| no_answer(&error))?;
    if yes {
        app.gate.trust(question).await?;
    }
    Ok(yes)
}

fn no_answer(error: &std::io::Error) -> CliError {
    CliError::blocked("no-answer", "the terminal gave no answer, so nothing was done").because(error)
}

/// The rest of the way, as far as the person wants to go.
async fn onwards(name: &str, terminal: Terminal, app: &App) -> Result<(), CliError> {
    let start = terminal.confirm("It is trusted. Start it now to see its tools?").await;
    if !start.map_err(|error| no_answer(&error))? {
        app.output.note(&format!("later: portcullis tools {} --refresh", shell(name)));
        return Ok(());
    }
    app.gate.refresh(name).await?;
    let (views, refused) = app.gate.tools(name).await?;
    app.output.note(&render::tools::text(&views, &refused));
    if views.is_empty() {
        return Ok(());
    }
    let chosen = loop {
        let answer = terminal.ask("\nWhich may be called? `all`, numbers such as 1,3, or Enter for none: ").await;
        match choose(&views, &answer.map_err(|error| no_answer(&error))?) {
            Ok(chosen) => break chosen,
            Err(problem) => app.output.note(&problem),
        }
    };
    let Some(chosen) = chosen else {
        app.output.note(&format!("none is on; later: portcullis tools {} --enable TOOL,…", shell(name)));
        return Ok(());
    };
    app.gate.select(name, Some(as_seen(&views, &chosen)), None).await?;
    app.gate.enable(name).await?;
    app.output.note(&format!("{} is on. Try: portcullis call {} TOOL key=value", quote(name), shell(name)));
    Ok(())
}

/// The choice, bound to what was on the screen.
fn as_seen(views: &[ToolView], chosen: &Choice) -> Choice {
    let taken = |view: &&ToolView| match chosen {
        Choice::All => true,
        Choice::Named(names) => names.contains(&view.descriptor.name),
        Choice::Seen(seen) => seen.contains_key(&view.descriptor.name),
    };
    Choice::Seen(views.iter().filter(taken).map(|view| (view.descriptor.name.clone(), view.pin)).collect())
}

fn choose(views: &[ToolView], answer: &str) -> Result<Option<Choice>, String> {
    let numbers: Vec<&str> = answer.split([',', ' ']).filter(|part| !part.is_empty()).collect();
    match numbers[..] {
        [] | ["none"] => return Ok(None),
        ["all"] => return Ok(Some(Choice::All)),
        _ => {}
    }
    let tool = |number: &str| {
        let view = number.parse::<usize>().ok().and_then(|number| views.get(number.checked_sub(1)?));
        view.map(|view| view.descriptor.name.clone())
            .ok_or_else(|| format!("`{}` is no number of the list", escape(number)))
    };
    numbers.into_iter().map(tool).collect::<Result<Vec<_>, _>>().map(|names| Some(Choice::Named(names)))
}
