//! Water levels above the zero of a gauge.

/// Height of the zero of the gauge at Grolland, in metres below sea level.
pub const GAUGE_ZERO: f64 = -5.02;

/// Returns the level above sea level.
pub fn above_sea_level(reading: f64) -> f64 {
    GAUGE_ZERO + reading
}
