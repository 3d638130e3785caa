// Elementary functions whose bits are the same on every machine. libm's log and exp differ between
// CPUs with and without fused multiply-add; simulated runs and drawn schedules must not. Accurate
// to about 1 ulp; only IEEE + − × ÷ and exact scaling are used, and the build sets
// -ffp-contract=off.
#pragma once

namespace assay {

/// Natural logarithm. log(0) is −infinity; NaN below 0.
double exact_log(double x);
/// e^x; overflows to infinity, underflows to 0.
double exact_exp(double x);

}  // namespace assay
