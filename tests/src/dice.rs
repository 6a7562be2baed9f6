//! Numbers that look random and are the same in every run.

/// A source of such numbers.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The numbers of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to below so many, which must not be none.
    #[must_use]
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    /// One of these.
    #[must_use]
    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}
