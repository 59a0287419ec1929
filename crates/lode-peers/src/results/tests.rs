use super::*;
use crate::protocol::tests::measured;

/// A measurement of `seconds`.
pub fn sample(round: usize, engine: EngineKind, workload: Workload, seconds: f64) -> Sample {
    Sample { round, engine, shape: Shape::Standard, measured: measured(workload, seconds) }
}

/// Six rounds in which we take a second, again 1 or 1.01, a peer `theirs`.
pub fn samples(workload: Workload, peer: EngineKind, theirs: f64) -> Vec<Sample> {
    let round = |round: usize| {
        let again = if round.is_multiple_of(2) { 0.99 } else { 1.01 };
        [(EngineKind::Lodestore, 1.0), (EngineKind::LodestoreAgain, again), (peer, theirs)]
            .map(|(engine, seconds)| sample(round, engine, workload, seconds))
    };
    (0..6).flat_map(round).collect()
}

/// A peer that takes twice as long is a win of ours, one that takes half a
/// loss; ours has no ratio.
#[test]
fn ratios_are_theirs_over_ours() {
    for (seconds, verdict) in [(2.0, Verdict::Win), (0.5, Verdict::Loss), (1.0, Verdict::Even)] {
        let samples = samples(Workload::ReadRandom, EngineKind::RocksDb, seconds);
        let lines = lines(&samples, 6);
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((line.name().as_str(), &line.noise), ("readrandom", &None));
        let [ours, again, peer] = line.cells.as_slice() else { panic!("{line:?}") };
        assert_eq!((ours.engine, ours.ratio, ours.verdict), (EngineKind::Lodestore, None, None));
        assert_eq!(ours.micros, 1_000.0);
        assert_eq!(again.verdict, Some(Verdict::Even));
        assert_eq!(peer.ratio.map(|ratio| ratio.median), Some(seconds));
        assert_eq!(peer.cpu_ratio, Some(seconds));
        assert_eq!(peer.verdict, Some(verdict));
    }
}

/// Writes have a second line, which counts until background work is over.
#[test]
fn writes_count_until_they_are_quiet_too() {
    let samples = samples(Workload::FillRandom, EngineKind::LevelDb, 3.0);
    let lines = lines(&samples, 6);
    let names: Vec<String> = lines.iter().map(Line::name).collect();
    assert_eq!(names, ["fillrandom", "fillrandom+quiet"]);
    assert_eq!(lines[0].cells[0].micros, 1_000.0);
    assert_eq!(lines[1].cells[0].micros, 2_000.0);
    assert_eq!(lines[1].cells[2].cpu_micros, 9_000.0);
    assert_eq!(lines[0].cells[0].write_amplification, Some(2.0));
    // What an engine tells counts where the system has seen less.
    for (told, amplification) in [(348_000, 3.0), (116_000, 2.0)] {
        let mut samples = samples.clone();
        samples.iter_mut().for_each(|s| s.measured.engine_written_bytes = Some(told));
        let cell = super::lines(&samples, 6).remove(0).cells.remove(0);
        assert_eq!(cell.write_amplification, Some(amplification));
    }
}

/// A line of which Lodestore differs from itself claims nothing.
#[test]
fn noisy_lines_claim_nothing() {
    let mut samples = samples(Workload::ReadSeq, EngineKind::RocksDb, 0.5);
    for sample in samples.iter_mut().filter(|s| s.engine == EngineKind::LodestoreAgain) {
        sample.measured.seconds = 1.3;
    }
    let line = lines(&samples, 6).remove(0);
    assert!(line.noise.as_ref().is_some_and(|why| why.contains("without 1")), "{line:?}");
    assert_eq!(line.cells[2].verdict, Some(Verdict::Noisy));
}

/// An engine without a measurement has no cell; a lost round leaves the others.
#[test]
fn missing_measurements_leave_cells_empty() {
    let mut samples = samples(Workload::ReadSeq, EngineKind::RocksDb, 2.0);
    samples.retain(|s| !(s.engine == EngineKind::RocksDb && s.round < 3));
    let line = lines(&samples, 6).remove(0);
    assert_eq!(line.cells[2].ratio.map(|ratio| ratio.coverage), Some(0.75));
    samples.retain(|s| s.engine != EngineKind::RocksDb);
    assert_eq!(lines(&samples, 6)[0].cells.len(), 2);
}

/// Engines that found the same agree, whatever time it took; another digest,
/// count or number of operations is told with both names. Rounds have streams
/// of their own.
#[test]
fn disagreements_name_both() {
    let mut samples = samples(Workload::ReadRandom, EngineKind::RocksDb, 2.0);
    assert_eq!(check_agreement(&samples, 4), Ok(()));
    let at = samples.iter().position(|s| s.round == 4 && s.engine == EngineKind::RocksDb);
    let at = at.expect("there is one");
    let right = samples[at].clone();
    let wrongs: [fn(&mut Measured); 3] =
        [|m| m.digest = Some("0100".to_string()), |m| m.found = Some(633), |m| m.operations = 999];
    for wrong in wrongs {
        samples[at] = right.clone();
        wrong(&mut samples[at].measured);
        let Err(Failure::Disagreement(text)) = check_agreement(&samples, 4) else {
            panic!("nobody noticed {:?}", samples[at].measured);
        };
        for part in ["readrandom at 16-100, round 5", "lodestore found", "rocksdb found"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(check_agreement(&samples, 3), Ok(()));
    }
}
