//! Flags of single benchmarks, checked.

use std::time::Duration;

use super::checks::{VALUE_BYTES_MAX, usage};
use crate::distributions::shares;
use crate::error::BenchError;
use crate::flags::{ExpireStyle, Flags, MixFlags, SeriesFlags};
use crate::shapes::{MixShape, Pareto, RangeShape, SeekShape, SeriesShape, Shapes, Sine};

/// Ranges of keys are in memory, in each thread.
const RANGES_MAX: u64 = 1_000_000;

/// With more, one key would be drawn nearly always, whatever `--num`.
const READ_EXP_RANGE_MAX: f64 = 100.0;

/// What all flags of single benchmarks say.
pub fn of(flags: &Flags) -> Result<Shapes, BenchError> {
    let single = &flags.single;
    if single.readwritepercent > 100 {
        return usage("--readwritepercent must be at most 100");
    }
    if single.merge_keys.0 == Some(0) {
        return usage("--merge_keys must be at least 1");
    }
    if !(0.0..=READ_EXP_RANGE_MAX).contains(&single.read_random_exp_range) {
        return usage(format!("--read_random_exp_range must be from 0 to {READ_EXP_RANGE_MAX}"));
    }
    Ok(Shapes {
        read_exp_range: single.read_random_exp_range,
        seek: SeekShape { nexts: single.seek_nexts, reverse: single.reverse_iterator },
        multiread_stride: single.multiread_stride,
        read_percent: single.readwritepercent,
        merge_keys: single.merge_keys.0.unwrap_or(flags.num),
        zstd_level: flags.engine.compression_level.unwrap_or(1),
        mix: mix(flags)?,
        series: series(&flags.series)?,
    })
}

fn mix(flags: &Flags) -> Result<MixShape, BenchError> {
    let mix = &flags.mix;
    for (name, value) in named(mix) {
        if !value.is_finite() {
            return usage(format!("--{name} must be a number"));
        }
    }
    if !(1..=VALUE_BYTES_MAX).contains(&mix.mix_max_value_size) {
        return usage(format!("--mix_max_value_size must be from 1 to {VALUE_BYTES_MAX}"));
    }
    if mix.mix_max_scan_len == 0 {
        return usage("--mix_max_scan_len must be at least 1");
    }
    Ok(MixShape {
        ranges: ranges(mix, flags.num)?,
        keys: hot_keys(mix)?,
        value: pareto("value", mix.value_theta, mix.value_k, mix.value_sigma)?,
        value_bytes_max: mix.mix_max_value_size,
        scan: pareto("iter", mix.iter_theta, mix.iter_k, mix.iter_sigma)?,
        scan_max: mix.mix_max_scan_len,
        shares: mix_shares(mix)?,
        sine: sine(flags)?,
    })
}

/// All flags that are any number.
pub fn named(mix: &MixFlags) -> [(&'static str, f64); 19] {
    [
        ("mix_get_ratio", mix.mix_get_ratio),
        ("mix_put_ratio", mix.mix_put_ratio),
        ("mix_seek_ratio", mix.mix_seek_ratio),
        ("keyrange_dist_a", mix.keyrange_dist_a),
        ("keyrange_dist_b", mix.keyrange_dist_b),
        ("keyrange_dist_c", mix.keyrange_dist_c),
        ("keyrange_dist_d", mix.keyrange_dist_d),
        ("key_dist_a", mix.key_dist_a),
        ("key_dist_b", mix.key_dist_b),
        ("value_theta", mix.value_theta),
        ("value_k", mix.value_k),
        ("value_sigma", mix.value_sigma),
        ("iter_theta", mix.iter_theta),
        ("iter_k", mix.iter_k),
        ("iter_sigma", mix.iter_sigma),
        ("sine_a", mix.sine_a),
        ("sine_b", mix.sine_b),
        ("sine_c", mix.sine_c),
        ("sine_d", mix.sine_d),
    ]
}

fn ranges(mix: &MixFlags, num: u64) -> Result<Option<RangeShape>, BenchError> {
    if !(1..=RANGES_MAX.min(num)).contains(&mix.keyrange_num) {
        return usage(format!(
            "--keyrange_num must be from 1 to {}, and at most --num",
            RANGES_MAX.min(num)
        ));
    }
    let factors =
        [mix.keyrange_dist_a, mix.keyrange_dist_b, mix.keyrange_dist_c, mix.keyrange_dist_d];
    if factors == [0.0; 4] {
        return match mix.keyrange_num {
            1 => Ok(None),
            _ => usage("--keyrange_num needs --keyrange_dist_a and the others of that name"),
        };
    }
    let shape = RangeShape { count: mix.keyrange_num, factors };
    let total: f64 = shares(shape).iter().sum();
    if !(total.is_finite() && total > 0.0) {
        return usage("--keyrange_dist_a to --keyrange_dist_d leave no range a share");
    }
    Ok(Some(shape))
}

fn hot_keys(mix: &MixFlags) -> Result<Option<(f64, f64)>, BenchError> {
    match (mix.key_dist_a, mix.key_dist_b) {
        (0.0, 0.0) => Ok(None),
        (a, b) if a > 0.0 && b != 0.0 => Ok(Some((a, b))),
        _ => usage("--key_dist_a must be above 0 and --key_dist_b not 0, or both 0"),
    }
}

fn pareto(name: &str, theta: f64, k: f64, sigma: f64) -> Result<Pareto, BenchError> {
    if sigma <= 0.0 {
        return usage(format!("--{name}_sigma must be above 0"));
    }
    Ok(Pareto { theta, k, sigma })
}

fn mix_shares(mix: &MixFlags) -> Result<[f64; 3], BenchError> {
    let ratios = [mix.mix_get_ratio, mix.mix_put_ratio, mix.mix_seek_ratio];
    let total: f64 = ratios.iter().sum();
    if ratios.iter().any(|&ratio| ratio < 0.0) || total <= 0.0 {
        return usage(
            "--mix_get_ratio, --mix_put_ratio and --mix_seek_ratio must be 0 or more, one above 0",
        );
    }
    Ok(ratios.map(|ratio| ratio / total))
}

fn sine(flags: &Flags) -> Result<Option<Sine>, BenchError> {
    let mix = &flags.mix;
    if !(0.0..=1.0).contains(&mix.sine_mix_rate_noise) {
        return usage("--sine_mix_rate_noise must be from 0 to 1");
    }
    if !mix.sine_mix_rate {
        return Ok(None);
    }
    if flags.benchmark_write_rate_limit > 0 || flags.benchmark_read_rate_limit > 0 {
        return usage("--sine_mix_rate sets the rates that --benchmark_*_rate_limit set");
    }
    Ok(Some(Sine {
        factors: [mix.sine_a, mix.sine_b, mix.sine_c, mix.sine_d],
        interval: Duration::from_millis(mix.sine_mix_rate_interval_milliseconds),
        noise: mix.sine_mix_rate_noise,
    }))
}

fn series(series: &SeriesFlags) -> Result<SeriesShape, BenchError> {
    if series.key_id_range == 0 {
        return usage("--key_id_range must be at least 1");
    }
    let deletes = series.expire_style == ExpireStyle::Delete;
    Ok(SeriesShape {
        ids: series.key_id_range,
        time_range: series.time_range,
        deletion_threads: if deletes { series.num_deletion_threads as usize } else { 0 },
    })
}
