//! Tests how rules affect a zio, and which zios a rule matches.

use super::*;

on_both_machines! {
    adds_sum_up_before_the_store
    floor_and_add_together
    the_store_is_never_hastened
    a_hang_holds_one_zio_until_it_is_released
    errors_with_and_without_work
    errors_after_a_delay
    a_ramp_leads_from_one_time_to_another
    flushes_only_when_named
    a_durable_write_is_charged_as_a_flush_too
    limits_count_what_matched
    an_update_counts_from_one_again
    a_rule_begins_and_ends
    a_rule_rests_between_its_turns
    an_update_begins_a_cycle_anew_or_keeps_it
    ranges_touch
    ranges_at_the_end_of_the_disk
    clients_match_by_glob
}

fn adds_sum_up_before_the_store<M: Machine>() {
    let rules = [add(lanes(10, 1)), add(lanes(3, 1))];
    let mut driver = stack::<M>(&rules);
    let store = ms(4);
    driver.submit(Ask { store, ..read() });
    driver.submit(Ask { store, ..read() });
    assert_eq!(completions(&mut driver), [17, 30]);
    assert_eq!(driver.log().starts, [(at(13), 0), (at(26), 1)]);
}

fn floor_and_add_together<M: Machine>() {
    let mut driver = stack::<M>(&[lanes(10, 1), add(lanes(3, 1))]);
    for store in [0, 4, 30] {
        let store = ms(store);
        driver.submit(Ask { store, ..read() });
    }
    // The lane of the `floor` rule serves the zios until 10, 20 and 30 ms; the lane of the `add` rule holds
    // them for 3, 6 and 9 ms before the store's work.
    assert_eq!(completions(&mut driver), [13, 26, 39]);
    assert_eq!(driver.log().starts, [(at(3), 0), (at(6), 1), (at(9), 2)]);
}

fn the_store_is_never_hastened<M: Machine>() {
    let mut driver = pool::<M>(&[lanes(10, 1)]);
    for store in [3, 25] {
        let store = ms(store);
        driver.submit(Ask { store, ..read() });
    }
    assert_eq!(completions(&mut driver), [10, 25]);
    let state = rule(&driver, 1);
    assert_eq!((state.chosen, state.held, state.overrun), (2, 1, 1));
}

fn a_hang_holds_one_zio_until_it_is_released<M: Machine>() {
    for (mode, started) in [(Mode::Floor, 0), (Mode::Add, 70)] {
        let hang = RuleSpec {
            mode,
            ..hang_first()
        };
        let mut driver = stack::<M>(&[RuleSpec::delay(ms(2), None), hang]);
        let hung = submit(&mut driver, 0, read());
        let free = submit(&mut driver, 0, read());
        driver.run_until(at(70));
        assert_eq!(driver.end_of(hung), None);
        assert_eq!(driver.end_of(free).map(|(when, _)| when), Some(at(2)));
        assert_eq!(rule(&driver, 1).matched, 1, "the hang was considered first");
        clear(&mut driver, 2, Release::All);
        assert_eq!(completions(&mut driver), [70, 2]);
        assert!(driver.log().starts.contains(&(at(started), hung)));
    }
}

fn a_ramp_leads_from_one_time_to_another<M: Machine>() {
    // From 10 to 20 ms in 100 ms, beginning after 50 ms; then it stays or begins again.
    for (repeats, ends) in [(false, [60, 115, 159, 270]), (true, [60, 115, 159, 260])] {
        let (from, lasts) = (ms(10), ms(100));
        let delay = Delay {
            ramp: Some(Ramp {
                from,
                lasts,
                repeats,
            }),
            ..Delay::new(Service::Constant(ms(20)), None)
        };
        let rule = RuleSpec {
            when: When {
                after: ms(50),
                ..When::default()
            },
            ..RuleSpec::new(Effect::Delay(delay))
        };
        let mut driver = stack::<M>(&[rule]);
        let zios = [50, 100, 140, 250].map(|now| {
            driver.run_until(at(now));
            driver.submit(read())
        });
        driver.run();
        let done = zios.map(|zio| driver.end_of(zio).map(|(at, _)| at));
        // An I/O waits 15 ms after half of the ramp, and 19 ms after nine tenths of it.
        assert_eq!(done, ends.map(|ms| Some(at(ms))), "{repeats}");
    }
}

fn errors_after_a_delay<M: Machine>() {
    // One lane of 10 ms serves two zios, for which the store takes 15 ms.
    for (work, ends, starts) in [(false, [10, 20], 0), (true, [15, 20], 2)] {
        let errno = Errno::NoSpc;
        let (service, lanes) = (Service::Constant(ms(10)), Some(1));
        let delay = Some(Delay::new(service, lanes));
        let fail = RuleSpec::new(Effect::Fail { errno, work, delay });
        let mut driver = stack::<M>(&[fail]);
        let ask = Ask {
            store: ms(15),
            ..read()
        };
        let zios = [driver.submit(ask), driver.submit(ask)];
        driver.run();
        let failed = End::Completed(Err("ENOSPC"));
        for (zio, end) in zios.into_iter().zip(ends) {
            assert_eq!(driver.end_of(zio), Some((at(end), failed)), "{work}");
        }
        assert_eq!(driver.log().starts.len(), starts);
        let state = rule(&driver, 1);
        assert_eq!((state.matched, state.chosen, state.failed), (2, 2, 2));
    }
}

fn errors_with_and_without_work<M: Machine>() {
    for (work, end, starts) in [(false, 0, 0), (true, 5, 1)] {
        let errno = Errno::Io;
        let delay = None;
        let fail = RuleSpec::new(Effect::Fail { errno, work, delay });
        let mut driver = stack::<M>(&[lanes(10, 1), fail]);
        let zio = driver.submit(Ask {
            store: ms(5),
            ..read()
        });
        driver.run();
        let failed = End::Completed(Err("EIO"));
        assert_eq!(driver.end_of(zio), Some((at(end), failed)));
        assert_eq!(driver.log().starts.len(), starts);
        assert_eq!(rule(&driver, 1).matched, 0);
        let state = rule(&driver, 2);
        assert_eq!((state.matched, state.chosen, state.failed), (1, 1, 1));
    }
}

fn flushes_only_when_named<M: Machine>() {
    let flushes = of(RuleSpec::delay(ms(20), None), Op::Flush);
    let mut driver = stack::<M>(&[RuleSpec::delay(ms(2), None), flushes]);
    for ask in [read(), Ask::new(Op::Flush), Ask::new(Op::Trim)] {
        driver.submit(ask);
    }
    assert_eq!(completions(&mut driver), [2, 20, 0]);
    assert_eq!(rule(&driver, 1).matched, 1);
}

fn a_durable_write_is_charged_as_a_flush_too<M: Machine>() {
    let flushes = of(lanes(20, 1), Op::Flush);
    let mut driver = stack::<M>(&[lanes(10, 1), flushes]);
    let fua = true;
    driver.submit(Ask { fua, ..write() });
    driver.submit(write());
    driver.submit(Ask { fua, ..write() });
    assert_eq!(completions(&mut driver), [30, 20, 50]);
    assert_eq!(driver.log().starts.len(), 3);
    assert_eq!((rule(&driver, 1).held, rule(&driver, 2).held), (3, 2));
}

fn limits_count_what_matched<M: Machine>() {
    let two_of_every_second_after_one = Count {
        skip: 1,
        every: 2,
        first: Some(2),
    };
    for (count, expected) in [
        (Count::first(2), [10, 10, 0, 0, 0, 0]),
        (Count::every(3), [0, 0, 10, 0, 0, 10]),
        (two_of_every_second_after_one, [0, 0, 10, 0, 10, 0]),
    ] {
        let limited = RuleSpec {
            count,
            ..RuleSpec::delay(ms(10), None)
        };
        let mut driver = pool::<M>(&[limited]);
        assert_eq!(reads(&mut driver, &[0; 6]), expected);
        let state = rule(&driver, 1);
        assert_eq!((state.matched, state.chosen, state.not_counted), (6, 2, 4));
    }
}

fn an_update_counts_from_one_again<M: Machine>() {
    let mut driver = pool::<M>(&[RuleSpec::delay(ms(10), None)]);
    for _ in 0..2 {
        driver.submit(read());
    }
    let limited = RuleSpec {
        count: Count::first(1),
        ..RuleSpec::delay(ms(5), None)
    };
    driver.order(Command::Update(RuleId(1), Box::new(limited)));
    assert_eq!(reads(&mut driver, &[0; 2]), [10, 10, 5, 0]);
    let state = rule(&driver, 1);
    assert_eq!((state.matched, state.not_counted), (4, 1));
}

fn a_rule_begins_and_ends<M: Machine>() {
    let brief = RuleSpec {
        when: When {
            after: ms(10),
            lasts: Some(ms(20)),
            cycle: None,
        },
        ..RuleSpec::delay(ms(5), None)
    };
    let ends = reads(&mut pool::<M>(&[brief]), &[9, 10, 29, 30]);
    assert_eq!(ends, [9, 15, 34, 30]);
}

fn a_rule_rests_between_its_turns<M: Machine>() {
    let cycle = |jitter| Cycle {
        on: ms(10),
        period: ms(40),
        jitter,
    };
    let when = |jitter| When {
        after: ms(5),
        lasts: Some(ms(82)),
        cycle: Some(cycle(jitter)),
    };
    let plain = RuleSpec {
        when: when(Duration::ZERO),
        ..RuleSpec::delay(ms(100), None)
    };
    let times = [4, 5, 14, 15, 44, 45, 54, 55, 85, 86, 87, 125];
    let held = |times: [u64; 12], hits: &[usize]| {
        let mut ends = times;
        for hit in hits {
            ends[*hit] += 100;
        }
        ends
    };
    let hits = &[1, 2, 5, 6, 8, 9];
    assert_eq!(reads(&mut pool::<M>(&[plain]), &times), held(times, hits));
    let hang = RuleSpec {
        when: when(Duration::ZERO),
        ..RuleSpec::new(Effect::Hang)
    };
    let ends = reads(&mut pool::<M>(&[hang]), &[4, 5, 14, 15, 50, 86, 87]);
    assert_eq!(ends, [4, 15, 15, 15, 55, 87, 87]);
}

fn an_update_begins_a_cycle_anew_or_keeps_it<M: Machine>() {
    let cycle = |on, after| When {
        after: ms(after),
        lasts: None,
        cycle: Some(Cycle {
            on: ms(on),
            period: ms(40),
            jitter: Duration::ZERO,
        }),
    };
    let rule = |effect, when| RuleSpec {
        when,
        ..RuleSpec::new(effect)
    };
    // A rule that has not begun begins with the update.
    let waits = rule(Effect::Hang, cycle(10, 1_000));
    let mut driver = pool::<M>(&[waits]);
    driver.order(Command::Update(
        RuleId(1),
        Box::new(rule(Effect::Hang, cycle(10, 0))),
    ));
    assert_eq!(reads(&mut driver, &[0]), [10]);
    // What a rule hangs waits for the end of the first turn of another cycle.
    let mut driver = pool::<M>(&[rule(Effect::Hang, cycle(10, 0))]);
    driver.submit(read());
    driver.run_until(at(5));
    driver.order(Command::Update(
        RuleId(1),
        Box::new(rule(Effect::Hang, cycle(20, 0))),
    ));
    assert_eq!(completions(&mut driver), [25]);
}

fn ranges_touch<M: Machine>() {
    let ranged = RuleSpec {
        range: Some((8_192, 12_288)),
        ops: OpSet::ALL,
        ..RuleSpec::delay(ms(10), None)
    };
    let mut driver = pool::<M>(&[ranged]);
    let reads = [
        (4_096, 4_096),
        (4_096, 4_097),
        (12_287, 1),
        (12_288, 1),
        (0, 65_536),
    ];
    for (offset, length) in reads {
        let ask = read();
        driver.submit(Ask {
            offset,
            length,
            ..ask
        });
    }
    driver.submit(Ask {
        offset: 8_192,
        ..Ask::new(Op::Flush)
    });
    assert_eq!(completions(&mut driver), [0, 10, 10, 0, 10, 0]);
}

fn ranges_at_the_end_of_the_disk<M: Machine>() {
    let ranged = RuleSpec {
        range: Some((u64::MAX - 1, u64::MAX)),
        ..RuleSpec::delay(ms(10), None)
    };
    let mut driver = pool::<M>(&[ranged]);
    for (offset, length) in [
        (u64::MAX - 1, 0),
        (u64::MAX - 1, 1),
        (u64::MAX - 1, u32::MAX),
        (u64::MAX, 1),
    ] {
        let ask = read();
        driver.submit(Ask {
            offset,
            length,
            ..ask
        });
    }
    assert_eq!(completions(&mut driver), [0, 10, 10, 0]);
}

fn clients_match_by_glob<M: Machine>() {
    let only = RuleSpec {
        client: Some("pid=7*".to_owned()),
        ..RuleSpec::delay(ms(10), None)
    };
    let mut driver = Driver::<M>::new(1);
    driver.join(ClientId(3), "pid=7");
    inject(&mut driver, 0, 1, only);
    driver.join(ClientId(4), "pid=77");
    driver.join(ClientId(5), "pid=17");
    for client in [3, 4, 5, ClientId::OTHER.0] {
        let client = ClientId(client);
        driver.submit(Ask { client, ..read() });
    }
    driver.join(ClientId(4), "pid=1");
    let client = ClientId(4);
    driver.submit(Ask { client, ..read() });
    assert_eq!(completions(&mut driver), [10, 10, 0, 0, 0]);
}
