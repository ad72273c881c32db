//! The constants of f32 and f64: formats, range limits, and polynomials.
//!
//! The polynomials are minimax fits made for this crate (iteratively reweighted least squares on Chebyshev
//! nodes, for erf and atan Remez exchange, 50 digits), weighted for the relative error of their function
//! (ERFC_POLY: for the absolute error). The comment above each polynomial states its error in units of the
//! format's `2^-24` or `2^-53`.

use super::super::lanes::Simd;
use super::Math;

/// `expm1(2 r) / 2` from `expm1(r) = r + r^2 Q(r)`: coefficient `k` times `2^(k + 1)`, which is exact.
macro_rules! tanh_poly {
    ($t:ty, $n:literal) => {{
        let (mut poly, mut k, mut factor): ([$t; $n], usize, $t) = ([0.0; $n], 0, 2.0);
        while k < $n {
            poly[k] = factor * <$t as Math>::EXPM1_POLY[k];
            (k, factor) = (k + 1, 2.0 * factor);
        }
        poly
    }};
}

impl Math for f32 {
    type Of<S: Simd> = S::F32;
    type Word = u32;

    const MANTISSA: u32 = 23;
    const BITS: u32 = 32;
    const SIGN_BIT: u64 = 1 << 31;
    const ONE_BITS: u64 = 0x3F80_0000;
    const SQRT_HALF_BITS: u64 = 0x3F35_04F3;
    const ZERO: Self = 0.0;
    const HALF: Self = 0.5;
    const ONE: Self = 1.0;
    const TWO: Self = 2.0;
    const INFINITY: Self = f32::INFINITY;
    const NAN: Self = f32::NAN;
    const MIN_POSITIVE: Self = f32::MIN_POSITIVE;
    const ROUND: Self = 12_582_912.0;
    const TWO_MANTISSA: Self = 8_388_608.0;
    const TWO_MANTISSA_BIAS: Self = 8_388_735.0;
    const LIFT: Self = 33_554_432.0;
    const LIFT_EXPONENT: Self = 25.0;

    const LOG2_E: Self = std::f32::consts::LOG2_E;
    const LN_2: Self = std::f32::consts::LN_2;
    const TWO_LOG2_E: Self = 2.0 * std::f32::consts::LOG2_E;
    const HALF_LN_2: Self = std::f32::consts::LN_2 / 2.0;
    const LN2: [Self; 2] = [0.693_359_375, -2.121_944_4e-4];
    const TWO_OVER_PI: Self = std::f32::consts::FRAC_2_PI;
    const HALF_PI: [Self; 3] =
        [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8, -1.715_124_510_005_881_9e-15];
    const EXP_RANGE: [Self; 2] = [-104.0, 89.0];
    const POWER_RANGE: [[Self; 2]; 2] = [[1e-37, 1e38], [-120.0, 120.0]];
    const EXPM1_MIN: Self = -30.0;
    const EXPM1_BIG: Self = 25.0;
    const TANH_MAX: Self = 9.02;
    const TRIG_MAX: Self = 1e5;
    const ERF_RANGE: [Self; 3] = [1.5, 2.75, 4.0];
    const ERF_CENTER: Self = 1.125;
    const ATAN_RANGE: [Self; 2] = [0.5625, 2.0];

    // 0.22
    const EXPM1_POLY: &'static [Self] = &[
        0.499_999_981_538_189_44,
        0.166_665_436_176_873_77,
        0.041_667_199_942_545_474,
        0.008_366_520_894_817_021,
        0.001_388_251_577_420_828_5,
    ];
    const TANH_POLY: &'static [Self] = &tanh_poly!(f32, 5);
    // 0.014
    const LN_POLY: &'static [Self] =
        &[0.666_667_764_636_968_1, 0.399_775_309_242_383_14, 0.298_720_297_500_831_99];
    // 0.075
    const SOFTPLUS_POLY: &'static [Self] = &[
        0.666_664_162_678_621_14 / 8.0,
        0.400_215_279_782_726_81 / 32.0,
        0.280_017_957_950_411_76 / 128.0,
        0.280_120_252_843_675_05 / 512.0,
    ];
    // 0.060
    const SIN_POLY: &'static [Self] =
        &[-0.166_666_549_081_614_61, 0.008_332_175_824_201_438, -0.000_195_169_750_561_987_9];
    // 0.0019
    const COS_POLY: &'static [Self] =
        &[0.041_666_645_617_762_12, -0.001_388_731_302_029_972_5, 0.000_024_432_780_892_451_938];
    // 0.25
    const ERF_POLY: &'static [Self] = &[
        -0.183_163_837_208,
        -0.200_224_497_441,
        0.052_076_391_076_1,
        -0.011_439_191_264_3,
        0.002_112_056_491_5,
        -0.000_333_849_962_486,
        4.743_680_716_09e-5,
        -5.665_295_580_11e-6,
    ];
    // 0.64
    const ERFC_POLY: &'static [Self] = &[
        0.000_100_586_451_471,
        -0.000_586_151_955_382,
        0.001_613_816_159_51,
        -0.002_762_369_105_77,
        0.003_247_180_363_2,
        -0.002_746_148_533_15,
        0.001_685_217_804_66,
        -0.000_667_170_268_145,
        5.766_469_763_56e-5,
        9.433_065_190_33e-5,
        -4.023_890_402_71e-5,
        3.402_914_013_44e-6,
    ];
    // 0.018
    const ATAN_POLY: &'static [Self] = &[
        -0.333_333_112_944,
        0.199_986_054_867,
        -0.142_560_267_587,
        0.108_149_024_071,
        -0.075_371_521_112_5,
        0.032_853_378_549_9,
    ];

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.into()
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
    fn scalar_sin(self) -> Self {
        self.sin()
    }
    fn scalar_cos(self) -> Self {
        self.cos()
    }
    fn scalar_powf(self, exponent: Self) -> Self {
        self.powf(exponent)
    }
}

impl Math for f64 {
    type Of<S: Simd> = S::F64;
    type Word = u64;

    const MANTISSA: u32 = 52;
    const BITS: u32 = 64;
    const SIGN_BIT: u64 = 1 << 63;
    const ONE_BITS: u64 = 0x3FF0_0000_0000_0000;
    const SQRT_HALF_BITS: u64 = 0x3FE6_A09E_667F_3BCD;
    const ZERO: Self = 0.0;
    const HALF: Self = 0.5;
    const ONE: Self = 1.0;
    const TWO: Self = 2.0;
    const INFINITY: Self = f64::INFINITY;
    const NAN: Self = f64::NAN;
    const MIN_POSITIVE: Self = f64::MIN_POSITIVE;
    const ROUND: Self = 6_755_399_441_055_744.0;
    const TWO_MANTISSA: Self = 4_503_599_627_370_496.0;
    const TWO_MANTISSA_BIAS: Self = 4_503_599_627_371_519.0;
    const LIFT: Self = 18_014_398_509_481_984.0;
    const LIFT_EXPONENT: Self = 54.0;

    const LOG2_E: Self = std::f64::consts::LOG2_E;
    const LN_2: Self = std::f64::consts::LN_2;
    const TWO_LOG2_E: Self = 2.0 * std::f64::consts::LOG2_E;
    const HALF_LN_2: Self = std::f64::consts::LN_2 / 2.0;
    // Split as in fdlibm (Sun Microsystems, 1993): the first part ends in 21 zero bits.
    const LN2: [Self; 2] = [6.931_471_803_691_238_164_90e-1, 1.908_214_929_270_587_700_02e-10];
    const TWO_OVER_PI: Self = std::f64::consts::FRAC_2_PI;
    const HALF_PI: [Self; 3] =
        [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];
    const EXP_RANGE: [Self; 2] = [-746.0, 710.0];
    const POWER_RANGE: [[Self; 2]; 2] = [[1e-307, 1e307], [-1000.0, 1000.0]];
    const EXPM1_MIN: Self = -50.0;
    const EXPM1_BIG: Self = 55.0;
    const TANH_MAX: Self = 19.07;
    const TRIG_MAX: Self = 1e5;
    const ERF_RANGE: [Self; 3] = [1.625, 3.625, 6.0];
    const ERF_CENTER: Self = 1.3125;
    const ATAN_RANGE: [Self; 2] = [0.5625, 2.0];

    // 0.16
    const EXPM1_POLY: &'static [Self] = &[
        0.500_000_000_000_000_518,
        0.166_666_666_666_665_892_8,
        0.041_666_666_666_576_746_6,
        0.008_333_333_333_389_550_06,
        0.001_388_888_893_156_707_81,
        0.000_198_412_697_190_172_217_9,
        0.000_024_801_505_271_507_439_74,
        2.755_740_752_958_471_544e-6,
        2.762_603_869_320_350_527e-7,
        2.505_378_001_982_493_389e-8,
    ];
    const TANH_POLY: &'static [Self] = &tanh_poly!(f64, 10);
    // 0.011
    const LN_POLY: &'static [Self] = &[
        0.666_666_666_666_673_451_2,
        0.399_999_999_994_139_438_4,
        0.285_714_287_425_658_536_3,
        0.222_221_985_534_547_072_4,
        0.181_835_654_225_840_444_5,
        0.153_140_207_623_244_795_1,
        0.147_962_644_504_098_154_3,
    ];
    // 0.012
    const SOFTPLUS_POLY: &'static [Self] = &[
        0.666_666_666_666_663_096_7 / 8.0,
        0.400_000_000_001_551_245_6 / 32.0,
        0.285_714_285_481_172_867_8 / 128.0,
        0.222_222_239_536_774_618_5 / 512.0,
        0.181_817_444_783_052_044 / 2048.0,
        0.153_865_484_042_336_000_2 / 8192.0,
        0.133_011_212_725_514_697 / 32768.0,
        0.121_049_454_907_777_169 / 131072.0,
        0.083_449_697_444_455_328_95 / 524288.0,
        0.170_097_587_934_726_658_9 / 2097152.0,
    ];
    // 0.031
    const SIN_POLY: &'static [Self] = &[
        -0.166_666_666_666_666_318_5,
        0.008_333_333_333_322_367_418,
        -0.000_198_412_698_297_694_860_2,
        2.755_731_367_816_572_166e-6,
        -2.505_075_589_231_858_972e-8,
        1.589_666_290_280_351_801e-10,
    ];
    // 0.0005
    const COS_POLY: &'static [Self] = &[
        0.041_666_666_666_666_592_44,
        -0.001_388_888_888_887_297_163,
        0.000_024_801_587_288_797_684_23,
        -2.755_731_416_337_378_987e-7,
        2.087_569_863_433_943_943e-9,
        -1.135_841_999_507_730_471e-11,
    ];
    // 0.36
    const ERF_POLY: &'static [Self] = &[
        -0.218_947_985_199_767_568_5,
        -0.181_848_716_950_247_025_1,
        0.046_066_098_675_219_463_59,
        -0.009_965_831_996_587_173_853,
        0.001_823_266_842_086_803_482,
        -0.000_286_115_889_201_741_148_1,
        0.000_039_139_598_330_879_518_28,
        -4.735_261_226_151_650_283e-6,
        5.129_122_123_533_859_278e-7,
        -5.025_570_064_447_660_911e-8,
        4.492_987_283_987_995_366e-9,
        -3.691_011_199_428_934_642e-10,
        2.807_539_292_935_982_995e-11,
        -2.038_272_872_536_030_692e-12,
        1.320_604_737_608_198_285e-13,
    ];
    // 0.50
    const ERFC_POLY: &'static [Self] = &[
        2.951_401_924_678_316_621e-7,
        -2.215_920_284_140_562_394e-6,
        8.032_711_036_458_529_756e-6,
        -0.000_018_673_744_916_435_808_24,
        0.000_031_168_592_203_249_548_95,
        -0.000_039_592_335_148_072_139_97,
        0.000_039_529_114_487_584_935_95,
        -0.000_031_514_122_510_635_075_97,
        0.000_020_089_146_220_587_396_79,
        -0.000_010_055_176_000_108_659_54,
        3.718_604_820_002_131_445e-6,
        -8.055_089_320_093_895_327e-7,
        -7.677_176_469_452_479_032e-8,
        1.564_163_469_635_695_915e-7,
        -7.086_945_902_197_299_035e-8,
        1.488_381_741_224_421_155e-8,
        1.518_401_840_074_360_79e-9,
        -2.286_336_591_116_292_292e-9,
        7.647_126_648_317_109_01e-10,
        -6.596_283_986_285_649_08e-11,
        -4.941_365_327_610_295_356e-11,
        2.357_631_288_432_854_916e-11,
        -3.289_933_202_743_105_367e-12,
        -1.067_347_535_391_398_254e-12,
        5.558_761_602_795_769_86e-13,
        -5.176_787_559_200_479_024e-14,
        -2.476_038_164_073_781_18e-14,
        6.922_162_988_621_047_937e-15,
        1.530_139_567_959_442_985e-17,
        -2.145_198_973_206_903_098e-16,
        2.402_830_049_985_963_113e-17,
        -2.770_260_833_716_498_793e-19,
    ];
    // 0.035
    const ATAN_POLY: &'static [Self] = &[
        -0.333_333_333_333_330_231_3,
        0.199_999_999_999_214_341_2,
        -0.142_857_142_787_450_899_8,
        0.111_111_107_989_595_131_5,
        -0.090_909_008_164_311_657_34,
        0.076_921_661_008_717_227_41,
        -0.066_650_194_018_768_421_26,
        0.058_689_118_258_089_297_07,
        -0.051_849_192_512_536_436_53,
        0.044_350_434_386_022_164_66,
        -0.033_704_015_982_365_061_88,
        0.019_249_545_281_517_138_7,
        -0.005_845_955_638_914_443_041,
    ];

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
    fn scalar_sin(self) -> Self {
        self.sin()
    }
    fn scalar_cos(self) -> Self {
        self.cos()
    }
    fn scalar_powf(self, exponent: Self) -> Self {
        self.powf(exponent)
    }
}
