//! As many calls on the wire as tickets were used, whatever servers and people do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portcullis::{
    approval::Answer,
    gate::Requested,
    serde_json::json,
    session::Lifecycle,
    testing::Reply,
    tokio::{runtime::Builder, time::timeout},
};
use portcullis_harness::call;
use proptest::prelude::*;

use crate::eras::{Person, host, stateless};

/// What happens to one call.
#[derive(Debug, Clone, Copy)]
enum Turn {
    /// It is answered after so many rounds of questions; the person approves so many attempts.
    Asks { rounds: usize, approved: usize },
    /// It is refused by the server.
    Refused,
    /// The server ends.
    Crash,
    /// Nothing comes.
    Silence,
    /// The server is started anew between approval and execution.
    Reconnect,
    /// Whoever waits goes away after a time.
    GivenUp,
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        4 => (0_usize..4, 0_usize..5).prop_map(|(rounds, approved)| Turn::Asks { rounds, approved: approved.min(rounds + 1) }),
        1 => Just(Turn::Refused),
        1 => Just(Turn::Crash),
        1 => Just(Turn::Silence),
        1 => Just(Turn::Reconnect),
        1 => Just(Turn::GivenUp),
    ]
}

/// Plays the turns; for each, how many tickets were used and how many calls arrived.
async fn play(turns: &[Turn]) -> Vec<(usize, usize)> {
    let server = stateless();
    let host = host(&server, Lifecycle::Stateless, &Arc::<Person>::default()).await;
    let mut counts = Vec::new();
    for turn in turns {
        server.forget();
        let answered = if let Turn::Asks { approved, .. } = turn { *approved } else { 1 };
        for _ in 0..answered {
            host.approver().will_say(Answer::Once);
        }
        let (asked, rounds) =
            (Arc::new(AtomicUsize::new(0)), if let Turn::Asks { rounds, .. } = turn { *rounds } else { 0 });
        let turn_now = *turn;
        server.on("tools/call", move |_| match turn_now {
            Turn::Refused => Reply::Error(-1, "no".to_owned()),
            Turn::Crash => Reply::Crash(3),
            Turn::Silence | Turn::GivenUp => Reply::Nothing,
            _ if asked.fetch_add(1, Ordering::SeqCst) >= rounds => Reply::text("done"),
            _ => Reply::Result(
                json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
                    "who": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {}}}}})
                .to_string(),
            ),
        });
        let used = match turn {
            Turn::Asks { rounds, approved } => {
                // One who has no more answers denies.
                let result = host.call("fake", "echo", "{}").await;
                assert_eq!(result.is_ok(), approved > rounds, "{turn:?}");
                *approved
            }
            Turn::Reconnect => {
                let Requested::Asked(waiting) = host.gate().request(call("fake", "echo", "{}").unwrap()).await.unwrap()
                else {
                    panic!("nobody is asked")
                };
                host.gate().questions().answer(&waiting.question().id.clone(), Answer::Once).unwrap();
                let ticket = host.gate().answered(waiting).await.unwrap();
                host.gate().disconnect("fake").await;
                host.gate().connect("fake").await.unwrap();
                assert_eq!(host.gate().execute(ticket).await.unwrap_err().code(), "approval-stale");
                // The answer of the script is still there.
                server.reset("tools/call");
                host.call("fake", "echo", "{}").await.unwrap();
                1
            }
            Turn::GivenUp => {
                assert!(timeout(Duration::from_millis(20), host.call("fake", "echo", "{}")).await.is_err());
                1
            }
            Turn::Refused | Turn::Crash | Turn::Silence => {
                host.call("fake", "echo", "{}").await.unwrap_err();
                1
            }
        };
        counts.push((used, server.calls().len()));
    }
    host.gate().close().await;
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s21_as_many_calls_arrive_as_tickets_were_used(turns in prop::collection::vec(turn(), 1..8)) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        for (turn, (used, arrived)) in turns.iter().zip(runtime.block_on(play(&turns))) {
            prop_assert_eq!(arrived, used, "{:?} of {:?}", turn, turns);
        }
    }
}
