use super::*;
use crate::fixture;

/// A state with three disks. The second has two rules.
fn state() -> State {
    let mut state = State::new(Origin::Daemon("unix:/run/api".to_owned()), SECOND);
    state.hear(News::Frame(Box::new(fixture::frame())));
    state
}

const SECOND: Duration = Duration::from_secs(1);

/// Types keys: characters, and names in `<>`. Returns the resulting deeds.
fn press(state: &mut State, keys: &str) -> Vec<Deed> {
    let mut deeds = Vec::new();
    let mut rest = keys;
    while let Some(first) = rest.chars().next() {
        let named = NAMES.iter().find(|(name, _)| rest.starts_with(name));
        let (length, code) = match named {
            Some((name, code)) => (name.len(), *code),
            None => (first.len_utf8(), KeyCode::Char(first)),
        };
        rest = &rest[length..];
        deeds.extend(state.key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
    deeds
}

const NAMES: [(&str, KeyCode); 5] = [
    ("<enter>", KeyCode::Enter),
    ("<esc>", KeyCode::Esc),
    ("<tab>", KeyCode::Tab),
    ("<down>", KeyCode::Down),
    ("<up>", KeyCode::Up),
];

fn selected(state: &State) -> &str {
    &state.disk().expect("a disk").name
}

fn refusal(state: &State) -> &str {
    match &state.message {
        Some(Message::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn prompt(state: &State) -> &Prompt {
    match &state.mode {
        Mode::Prompt(prompt) => prompt,
        _ => panic!("no prompt"),
    }
}

#[test]
fn the_selection_stays_within_the_list_and_on_its_disk() {
    let mut state = state();
    assert_eq!(selected(&state), "c1t1d0");
    press(&mut state, "k");
    assert_eq!(selected(&state), "c1t1d0");
    press(&mut state, "j<down>j");
    assert_eq!(selected(&state), "log");
    press(&mut state, "<up>");
    assert_eq!(selected(&state), "c1t2d0");
    // Sorting does not change which disk is selected.
    press(&mut state, "ss");
    assert_eq!(selected(&state), "c1t2d0");
}

#[test]
fn figures_sort_down_and_names_up() {
    let mut state = state();
    let names = |state: &State| -> Vec<String> {
        state.disks().iter().map(|disk| disk.name.clone()).collect()
    };
    assert_eq!(names(&state), ["c1t1d0", "c1t2d0", "log"]);
    press(&mut state, "s>");
    assert_eq!(state.sort, SortKey::Writes);
    assert_eq!(names(&state), ["log", "c1t1d0", "c1t2d0"]);
    press(&mut state, "<<<");
    assert_eq!(state.sort, SortKey::Oldest);
    assert_eq!(names(&state)[0], "c1t2d0");
}

#[test]
fn a_rule_is_armed_in_the_words_of_inject() {
    let mut state = state();
    let deeds = press(&mut state, "a-D 10ms:1<enter>");
    let ask = Ask::Arm {
        disk: "c1t1d0".to_owned(),
        words: "-D 10ms:1".to_owned(),
    };
    assert_eq!(deeds, [Deed::Ask(ask.clone())]);
    // Keys do nothing until the answer comes.
    assert_eq!(press(&mut state, "q<enter>"), []);
    state.hear(News::Answer(ask, Ok("rule 7".to_owned())));
    assert!(matches!(state.mode, Mode::Watch));
    assert_eq!(state.message, Some(Message::Done("rule 7".to_owned())));
}

#[test]
fn words_that_are_no_rule_are_not_sent() {
    let mut state = state();
    for (words, why) in [
        ("-D 10:1", "did you mean 10ms:1?"),
        ("", "the rule does nothing"),
        ("c1t1d0 -D 10ms", "the disk is named already"),
        ("-D 'x", "a quote that does not end"),
    ] {
        assert_eq!(press(&mut state, &format!("a{words}<enter>")), []);
        let error = prompt(&state).error.clone().expect(words);
        assert!(error.contains(why), "{error}");
        // The words stay, so that the user can correct them, and the error disappears with the first key.
        assert_eq!(prompt(&state).line.text(), words);
        press(&mut state, "x");
        assert_eq!(prompt(&state).error, None);
        press(&mut state, "<esc>");
    }
}

#[test]
fn what_the_daemon_refuses_can_be_corrected() {
    let mut state = state();
    let deeds = press(&mut state, "a-D 1ms --with 99<enter>");
    let [Deed::Ask(ask)] = deeds.as_slice() else {
        panic!("{deeds:?}");
    };
    state.hear(News::Answer(ask.clone(), Err("no rule 99".to_owned())));
    assert_eq!(prompt(&state).error.as_deref(), Some("no rule 99"));
    assert_eq!(press(&mut state, "<enter>"), deeds);
}

#[test]
fn an_update_begins_with_the_words_of_the_rule() {
    let mut state = state();
    press(&mut state, "j<tab>ju");
    assert_eq!(prompt(&state).line.text(), "-D 500ms -T write -f 0.5%");
    press(&mut state, " --name x<enter>");
    let error = prompt(&state).error.clone().expect("an error");
    assert!(error.contains("leave --name"), "{error}");
    press(&mut state, "<esc>u");
    let words = "-D 500ms -T write -f 0.5%".to_owned();
    let ask = Ask::Update { rule: 3, words };
    assert_eq!(press(&mut state, "<enter>"), [Deed::Ask(ask)]);
}

#[test]
fn a_rule_is_cleared_if_the_answer_is_yes() {
    let mut state = state();
    assert_eq!(press(&mut state, "jcn"), []);
    assert_eq!(press(&mut state, "c<enter>"), []);
    let clear = Deed::Ask(Ask::Clear { rule: 2 });
    assert_eq!(press(&mut state, "cy"), [clear]);
}

#[test]
fn a_disk_without_rules_says_so() {
    let mut state = state();
    for key in ["c", "u"] {
        press(&mut state, &format!("jj{key}"));
        assert_eq!(refusal(&state), "log has no rule: press a to arm one");
    }
    press(&mut state, "j");
    assert_eq!(state.message, None);
}

#[test]
fn what_is_suspended_is_resumed() {
    let mut state = state();
    let suspend = Ask::Suspend {
        disk: "c1t1d0".to_owned(),
    };
    let resume = Ask::Resume {
        disk: "log".to_owned(),
    };
    assert_eq!(press(&mut state, "z"), [Deed::Ask(suspend)]);
    assert_eq!(press(&mut state, "jjz"), [Deed::Ask(resume)]);
}

#[test]
fn the_kernels_disks_are_only_watched() {
    let mut state = State::new(Origin::Kernel, SECOND);
    state.hear(News::Frame(Box::new(fixture::frame())));
    for key in ["a", "u", "c", "z"] {
        assert_eq!(press(&mut state, key), []);
        assert_eq!(refusal(&state), KERNELS);
    }
}

/// A simulation of a volume, its disk, and a disk outside of pools.
fn simulated() -> State {
    let mut state = State::new(Origin::Simulation("lab.toml".to_owned()), SECOND);
    state.hear(News::Frame(Box::new(fixture::simulated())));
    state
}

#[test]
fn volumes_come_first_and_their_disks_can_be_changed() {
    let mut state = simulated();
    let names = |state: &State| -> Vec<String> {
        state.disks().iter().map(|disk| disk.name.clone()).collect()
    };
    assert_eq!(names(&state), ["tank/foo", "c1t1d0", "log"]);
    press(&mut state, "s");
    assert_eq!(names(&state), ["tank/foo", "c1t1d0", "log"]);
    for key in ["a", "u", "c", "z"] {
        assert_eq!(press(&mut state, key), []);
        assert_eq!(refusal(&state), VOLUMES);
    }
    let suspend = Ask::Suspend {
        disk: "c1t1d0".to_owned(),
    };
    assert_eq!(press(&mut state, "jz"), [Deed::Ask(suspend)]);
}

#[test]
fn the_pool_is_that_of_what_is_selected_or_the_first() {
    let mut state = simulated();
    let mut frame = fixture::simulated();
    frame.pools.insert(0, frame.pools[0].clone());
    frame.pools[0].name = "other".to_owned();
    state.hear(News::Frame(Box::new(frame)));
    let pool = |state: &State| state.pool().expect("a pool").name.clone();
    assert_eq!(pool(&state), "tank");
    press(&mut state, "jj");
    assert_eq!(selected(&state), "log");
    assert_eq!(pool(&state), "other");
}

#[test]
fn nothing_can_be_changed_after_the_end() {
    let mut state = simulated();
    let mut last = fixture::simulated();
    if let Some(moment) = &mut last.moment {
        moment.at = moment.at + moment.lasts;
    }
    state.hear(News::Frame(Box::new(last)));
    for key in ["a", "u", "c", "z"] {
        assert_eq!(press(&mut state, key), []);
        assert_eq!(refusal(&state), ENDED);
    }
    assert_eq!(press(&mut state, "q"), [Deed::Quit]);
}

#[test]
fn nothing_can_be_done_where_there_is_no_disk() {
    let mut state = State::new(Origin::Daemon(String::new()), SECOND);
    assert_eq!(press(&mut state, "jka<tab>j<tab>jcz"), []);
    assert_eq!(refusal(&state), "there is no disk");
}

#[test]
fn a_paused_display_stands_while_looks_go_on() {
    let mut state = state();
    press(&mut state, " ");
    let mut later = fixture::frame();
    later.disks.truncate(1);
    state.hear(News::Frame(Box::new(later)));
    assert_eq!(state.disks().len(), 3);
    state.hear(News::Down("gone".to_owned()));
    assert_eq!(state.contact(), &Contact::Down("gone".to_owned()));
    press(&mut state, " ");
    assert_eq!(state.disks().len(), 1);
    let columns = state.board().history("c1t1d0").expect("a history");
    assert_eq!(columns.last(10).len(), 2);
}

#[test]
fn a_look_that_ends_no_interval_leaves_the_figures() {
    let mut state = state();
    let mut glance = fixture::frame();
    glance.disks.iter_mut().for_each(|disk| disk.done = None);
    state.hear(News::Frame(Box::new(glance)));
    assert!(state.disk().is_some_and(|disk| disk.done.is_some()));
    let columns = state.board().history("c1t1d0").expect("a history");
    assert_eq!(columns.last(10).len(), 1);
}

#[test]
fn another_life_of_the_daemon_begins_anew() {
    let mut state = state();
    let mut frame = fixture::frame();
    frame.restarted = true;
    frame.disks.iter_mut().for_each(|disk| disk.done = None);
    state.hear(News::Frame(Box::new(frame)));
    assert!(state.board().history("c1t1d0").is_none());
    assert!(state.disk().is_some_and(|disk| disk.done.is_none()));
}

#[test]
fn intervals_go_in_steps_and_have_ends() {
    let mut state = state();
    let every = |ms| Deed::Ask(Ask::Every(Duration::from_millis(ms)));
    assert_eq!(press(&mut state, "+-"), [every(2_000), every(1_000)]);
    press(&mut state, "++++++++++");
    assert_eq!(state.interval, Duration::from_secs(60));
    press(&mut state, "----------");
    assert_eq!(state.interval, Duration::from_millis(100));
    state.interval = Duration::from_millis(1_500);
    assert_eq!(press(&mut state, "-"), [every(1_000)]);
}

#[test]
fn the_focus_goes_round_and_moves_in_its_pane() {
    let mut state = state();
    press(&mut state, "j<tab>");
    assert_eq!(state.focus, Pane::Rules);
    press(&mut state, "jj");
    assert_eq!(state.rule().map(|rule| rule.id), Some(3));
    assert_eq!(selected(&state), "c1t2d0");
    press(&mut state, "<tab>jjjk");
    assert_eq!(state.client(), 0);
    press(&mut state, "<tab>k");
    assert_eq!((state.focus, selected(&state)), (Pane::Disks, "c1t1d0"));
}

#[test]
fn help_goes_with_any_key_and_ctrl_c_quits_everywhere() {
    let mut state = state();
    assert_eq!(press(&mut state, "?q"), []);
    assert!(matches!(state.mode, Mode::Watch));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for keys in ["", "?", "a-D 1ms", "jc"] {
        press(&mut state, keys);
        assert_eq!(state.key(control_c), Some(Deed::Quit));
        press(&mut state, "<esc>");
    }
    assert_eq!(press(&mut state, "q"), [Deed::Quit]);
}
