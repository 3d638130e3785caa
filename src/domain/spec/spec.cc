#include "domain/spec/spec.h"

#include <string_view>

#include "base/core/check.h"
#include "base/core/math.h"

namespace assay {

std::string_view api_name(Api api) {
  switch (api) {
    case Api::kOpenAiChat:
      return "openai-chat";
    case Api::kOpenAiCompletions:
      return "openai-completions";
    case Api::kNull:
      return "null";
  }
  CHECK(false, "unknown api {}", static_cast<int>(api));
}

double mean_tokens(const LengthSpec& length) {
  switch (length.kind) {
    case LengthSpec::Kind::kFixed:
      return length.a;
    case LengthSpec::Kind::kUniform:
      return (length.a + length.b) / 2;
    case LengthSpec::Kind::kLogNormal:
      return length.a * exact_exp(length.b * length.b / 2);
  }
  CHECK(false, "unknown kind of length {}", static_cast<int>(length.kind));
}

std::string_view arrival_name(Arrival arrival) {
  switch (arrival) {
    case Arrival::kConstant:
      return "constant";
    case Arrival::kPoisson:
      return "poisson";
  }
  CHECK(false, "unknown arrival process {}", static_cast<int>(arrival));
}

std::string_view slo_metric_name(SloMetric metric) {
  switch (metric) {
    case SloMetric::kTtft:
      return "ttft";
    case SloMetric::kTtfo:
      return "ttfo";
    case SloMetric::kTpot:
      return "tpot";
    case SloMetric::kItl:
      return "itl";
    case SloMetric::kIcl:
      return "icl";
    case SloMetric::kWorstGap:
      return "worst_gap";
    case SloMetric::kE2e:
      return "e2e";
    case SloMetric::kServiceTtft:
      return "service_ttft";
    case SloMetric::kServiceE2e:
      return "service_e2e";
  }
  CHECK(false, "unknown SLO metric {}", static_cast<int>(metric));
}

}  // namespace assay
