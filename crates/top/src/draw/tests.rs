use std::time::Duration;

use dashpot_engine::Instant;
use expect_test::{Expect, expect, expect_file};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use super::{Theme, draw};
use crate::ask::News;
use crate::fixture;
use crate::frame::Moment;
use crate::state::{Origin, State};

fn drawn(state: &State, width: u16, height: u16, colour: bool) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let theme = Theme::new(colour);
    let draw = terminal.draw(|frame| draw(frame, state, theme));
    draw.expect("a drawing");
    terminal
}

/// The text on the screen, without blanks at the ends of lines.
fn text(state: &State, width: u16, height: u16) -> String {
    let terminal = drawn(state, width, height, true);
    let text = terminal.backend().to_string();
    let lines = text.lines().map(|line| line.trim_matches('"').trim_end());
    lines.map(|line| line.to_owned() + "\n").collect()
}

/// The state after forty frames of three disks.
fn watched() -> State {
    let source = Origin::Daemon("unix:/run/user/1000/dashpot/api.sock".to_owned());
    let mut state = State::new(source, Duration::from_secs(1));
    for second in 0..40 {
        state.hear(News::Frame(Box::new(fixture::frame_after(second))));
    }
    state
}

fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            key => KeyCode::Char(key),
        };
        state.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

#[test]
fn a_reason_is_said_once_however_many_promises_it_is_of() {
    let mut state = watched();
    let mut frame = fixture::frame_after(40);
    frame.promises.truncate(1);
    let doubtful = frame.promises[0].clone();
    frame.promises = vec![doubtful; 4];
    state.hear(News::Frame(Box::new(frame)));
    let text = text(&state, 200, 60);
    assert_eq!(text.matches("doubtful").count(), 1, "{text}");
    assert!(text.contains("doubtful: 4 promises: "), "{text}");
}

#[test]
fn a_small_terminal_shows_everything_that_matters() {
    expect_file!["snapshots/80x24"].assert_eq(&text(&watched(), 80, 24));
}

#[test]
fn a_larger_one_has_more_of_it() {
    let mut state = watched();
    press(&mut state, "j\tj");
    expect_file!["snapshots/120x40"].assert_eq(&text(&state, 120, 40));
}

#[test]
fn a_large_one_uses_the_room() {
    expect_file!["snapshots/200x60"].assert_eq(&text(&watched(), 200, 60));
}

#[test]
fn the_smallest_has_disks_and_rules() {
    expect_file!["snapshots/60x12"].assert_eq(&text(&watched(), 60, 12));
}

#[test]
fn a_terminal_that_is_too_small_says_so() {
    expect![[r#"
        59x12 is too small for
        dashpot top: it needs 60x12
        q quits









    "#]]
    .assert_eq(&text(&watched(), 59, 12));
    assert!(text(&watched(), 60, 11).contains("60x11 is too small"));
    // No size may make the drawing fail.
    for (width, height) in [(1, 1), (10, 2), (1, 60), (200, 1)] {
        text(&watched(), width, height);
    }
}

#[test]
fn every_size_and_every_mode_can_be_drawn() {
    for keys in ["", "?", "a", "a-D 10:1\n", "jcx", "jc", "\t\t", "u"] {
        let mut state = watched();
        press(&mut state, keys);
        for (width, height) in [
            (60, 12),
            (61, 13),
            (79, 17),
            (119, 31),
            (120, 12),
            (300, 100),
        ] {
            text(&state, width, height);
        }
    }
    let state = simulated();
    for (width, height) in [(60, 13), (61, 20), (79, 17), (120, 12), (300, 100)] {
        text(&state, width, height);
    }
    let simulation = Origin::Simulation(String::new());
    for source in [Origin::Kernel, Origin::Daemon(String::new()), simulation] {
        let mut empty = State::new(source, Duration::from_millis(500));
        text(&empty, 80, 24);
        empty.hear(News::Frame(Box::default()));
        text(&empty, 80, 24);
    }
}

/// Checks which lines are at the bottom of a small terminal after these keys.
fn footer(keys: &str, expected: &Expect) {
    let mut state = watched();
    press(&mut state, keys);
    let text = text(&state, 80, 24);
    let lines: Vec<&str> = text.lines().skip(20).collect();
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn the_last_lines_are_what_is_asked() {
    footer(
        "a",
        &expect![[r#"
                                                    -40s      -30s      -20s      -10s   now
            arm a rule on c1t1d0: the words of 'dashpot inject c1t1d0 ...'
            > -D 10ms:1 -T read -f 10%
            Enter sends it, Esc cancels it
        "#]],
    );
    footer(
        "a-D 10:1\n",
        &expect![[r#"
        arm a rule on c1t1d0: the words of 'dashpot inject c1t1d0 ...'
        > -D 10:1
        invalid value '10:1' for '-D <SERVICE[:LANES]>': '10:1' has no unit: did you
        mean 10ms:1?
    "#]],
    );
    footer(
        "ju",
        &expect![[r#"
                                                    -40s      -30s      -20s      -10s   now
            update rule 2: the words of 'dashpot update 2 ...'
            > -D lognormal=2ms..30ms -T read
            Enter sends it, Esc cancels it
        "#]],
    );
    footer(
        "jc",
        &expect![[r#"
                   10ms                             ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
                    1ms                             ████████████████████████████████████████
                                                    -40s      -30s      -20s      -10s   now
            clear rule 2 (-D lognormal=2ms..30ms -T read)? y/n
        "#]],
    );
    footer(
        "jjc",
        &expect![[r#"
                   10us                             ████████████████████████████████████████
                 3.14us
                                                    -40s      -30s      -20s      -10s   now
            log has no rule: press a to arm one
        "#]],
    );
}

/// The state after forty frames of a simulation.
fn simulated() -> State {
    let lab = "scenario3-openzfs".to_owned();
    let mut state = State::new(Origin::Simulation(lab), Duration::from_secs(1));
    for _ in 0..40 {
        state.hear(News::Frame(Box::new(fixture::simulated())));
    }
    state
}

#[test]
fn a_simulation_has_volumes_and_throttles() {
    let mut state = simulated();
    expect_file!["snapshots/sim-80x24"].assert_eq(&text(&state, 80, 24));
    expect_file!["snapshots/sim-60x12"].assert_eq(&text(&state, 60, 12));
    expect_file!["snapshots/sim-120x40"].assert_eq(&text(&state, 120, 40));
    press(&mut state, "?");
    expect_file!["snapshots/sim-help"].assert_eq(&text(&state, 80, 24));
}

#[test]
fn the_end_of_a_simulation_is_on_the_screen() {
    let mut state = simulated();
    let mut last = fixture::simulated();
    let lasts = last.moment.map(|moment| moment.lasts).expect("a moment");
    last.moment = Some(Moment {
        at: Instant::ZERO + lasts,
        lasts,
    });
    state.hear(News::Frame(Box::new(last)));
    // After the last frame, silence is not an error.
    state.silent_for(Duration::from_secs(7));
    let text = text(&state, 80, 24);
    assert!(
        text.contains("ENDED at 60.0 s") && !text.contains("NO ANSWER"),
        "{text}"
    );
}

#[test]
fn help_lies_over_everything() {
    let mut state = watched();
    press(&mut state, "?");
    expect_file!["snapshots/help"].assert_eq(&text(&state, 80, 24));
}

#[test]
fn all_of_the_help_can_be_read_on_the_smallest_terminal() {
    let mut state = watched();
    press(&mut state, "?");
    let mut read = String::new();
    for _ in 0..40 {
        read += &text(&state, 60, 12);
        press(&mut state, "j");
    }
    for words in ["select in the pane", "scroll, other keys", "below 100"] {
        assert!(read.contains(words), "{words}");
    }
    let last = text(&state, 60, 12);
    assert!(last.contains("below 100"), "{last}");
    press(&mut state, "q");
    assert!(!text(&state, 60, 12).contains("help: j k"));
}

#[test]
fn a_daemon_that_is_gone_is_on_the_screen() {
    let mut state = watched();
    state.hear(News::Down("no daemon at unix:/run/api".to_owned()));
    assert!(text(&state, 80, 24).contains("NO FIGURES, trying again: no daemon at unix:/run/api"));
    state.silent_for(Duration::from_secs(7));
    assert!(text(&state, 80, 24).contains("NO ANSWER for 7 s"));
    // The screen still shows the last facts.
    assert!(text(&state, 80, 24).contains("c1t2d0"));
}

#[test]
fn no_colour_means_none() {
    for (colour, coloured) in [(false, false), (true, true)] {
        let terminal = drawn(&watched(), 120, 40, colour);
        let cells = terminal.backend().buffer().content();
        let any = cells
            .iter()
            .any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(any, coloured);
    }
}

/// Everything that colour shows is visible without colour, too.
#[test]
fn colours_say_nothing_alone() {
    let symbols = |colour| {
        let terminal = drawn(&watched(), 120, 40, colour);
        let cells = terminal.backend().buffer().content();
        cells
            .iter()
            .map(|cell| cell.symbol().to_owned())
            .collect::<String>()
    };
    assert_eq!(symbols(false), symbols(true));
    assert!(symbols(false).contains("suspended") && symbols(false).contains("OVERLOADED"));
}
