#include "domain/spec/parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/text.h"
#include "domain/spec/option.h"
#include "domain/spec/redact.h"

namespace assay {
namespace {

using Flags = std::vector<std::pair<std::string, std::string>>;

Resolved resolved(const Asked& asked) {
  auto result = resolve_spec(asked);
  if (!result) {
    for (const Error& error : result.error()) ADD_FAILURE() << error.text();
    return {};
  }
  return *std::move(result);
}

Spec spec_of(Flags flags, std::string yaml = {}) {
  Asked asked;
  asked.urls = {"http://127.0.0.1:8000"};
  asked.flags = std::move(flags);
  asked.spec_path = "s.yaml";
  if (!yaml.empty()) asked.spec_text = std::move(yaml);
  return resolved(asked).spec;
}

TEST(Resolve, DefaultsAreThoseOfTheDesign) {
  const Spec spec = spec_of({});
  EXPECT_EQ(spec.target.api, Api::kOpenAiChat);
  EXPECT_EQ(spec.target.model, "auto");
  EXPECT_EQ(spec.target.timeout, 600s);
  EXPECT_EQ(spec.load.concurrency, 8);
  EXPECT_EQ(spec.load.rate, std::nullopt);
  EXPECT_EQ(spec.load.duration, 30s);
  EXPECT_EQ(spec.load.requests, std::nullopt);
  EXPECT_EQ(spec.load.warmup, (Extent{5s, std::nullopt}));
  EXPECT_EQ(spec.workload.input, (LengthSpec{LengthSpec::Kind::kFixed, 512, 0}));
  EXPECT_EQ(spec.workload.output, (LengthSpec{LengthSpec::Kind::kFixed, 128, 0}));
  EXPECT_TRUE(spec.workload.exact_output);
  EXPECT_TRUE(spec.target.stream);
}

TEST(Resolve, HelpStatesTheDefaultsThatHold) {
  const Spec spec = spec_of({});
  for (const Option& option : options()) {
    const std::vector<std::string> shown = option.show(spec);
    const bool plain = option.form == Form::kText || option.form == Form::kNumber;
    // "none", "off", "unlimited …" stand for unset and empty values.
    if (!plain || shown.empty() || shown.front().empty()) continue;
    EXPECT_TRUE(option.fallback.starts_with(shown.front()) || option.fallback == "600s")
        << option.key << ": " << option.fallback << " is not " << shown.front();
  }
}

TEST(Resolve, RequestsAloneHaveNoDuration) {
  EXPECT_EQ(spec_of({{"--requests", "20"}}).load.duration, std::nullopt);
  const Spec both = spec_of({{"--requests", "20"}, {"--duration", "1m"}});
  EXPECT_EQ(both.load.requests, 20);
  EXPECT_EQ(both.load.duration, 60s);
}

TEST(Resolve, FlagsWinOverSetAndSetOverTheFile) {
  const std::string file = "load: {rate: 1, connections: 1, duration: 1s}\n";
  const Spec spec =
      spec_of({{"--rate", "3"}, {"--set", "load.rate=2"}, {"--set", "load.connections=2"}}, file);
  EXPECT_EQ(spec.load.rate, 3);
  EXPECT_EQ(spec.load.connections, 2);
  EXPECT_EQ(spec.load.duration, 1s);
}

TEST(Resolve, AHigherLevelTurnsTheLoopRound) {
  const Spec open = spec_of({{"--rate", "20"}}, "load: {concurrency: 4, think: 1s}\n");
  EXPECT_EQ(open.load.concurrency, std::nullopt);
  EXPECT_EQ(open.load.rate, 20);
  EXPECT_EQ(open.load.think, Duration(0));
  const Spec closed = spec_of({{"--concurrency", "4"}}, "load: {rate: 20, arrival: constant}\n");
  EXPECT_EQ(closed.load.rate, std::nullopt);
  EXPECT_EQ(closed.load.concurrency, 4);
  EXPECT_EQ(closed.load.arrival, Arrival::kPoisson);
}

TEST(Resolve, APairOnDifferentLevelsStillConflictsWhereDroppingWouldSurprise) {
  Asked asked;
  asked.urls = {"http://h"};
  asked.spec_path = "s.yaml";
  asked.spec_text = "load: {rate: 20}\n";
  asked.flags = {{"--think", "1s"}};
  ASSERT_FALSE(resolve_spec(asked).has_value());
  asked.flags = {{"--think", "0"}};
  EXPECT_EQ(resolved(asked).spec.load.rate, 20);
  asked.spec_text = "workload: {prompt: hello}\n";
  asked.flags = {{"--input", "512"}};
  EXPECT_EQ(resolved(asked).spec.workload.prompt, "");
}

TEST(Resolve, HeadersAndGoalsAreMergedByName) {
  const Spec spec = spec_of({{"--header", "x-team: b"}, {"--slo", "ttft=1s"}},
                            "target: {headers: {X-Team: a, X-Other: c}}\n"
                            "slo: {ttft: 350ms@99%, tpot: 15ms@95%}\n");
  ASSERT_EQ(spec.target.headers.size(), 2U);
  EXPECT_EQ(spec.target.headers[0].first, "X-Other");
  EXPECT_EQ(spec.target.headers[1].second, "b");
  ASSERT_EQ(spec.slo.size(), 2U);
  EXPECT_EQ(spec.slo[0], (SloItem{SloMetric::kTpot, 15ms, 0.95}));
  EXPECT_EQ(spec.slo[1], (SloItem{SloMetric::kTtft, 1s, 0.99}));
}

TEST(Resolve, TheDesignsOwnSpecFileReads) {
  Asked asked;
  asked.spec_path = "s.yaml";
  asked.spec_text = R"(assay: 1
target:   {url: [http://127.0.0.1:8000], api: openai-chat, model: auto, headers: {}, body: {},
           api_key_env: OPENAI_API_KEY, timeout: 600s, tls: {ca: "", insecure: false}}
workload: {data: synthetic, tokenizer: "", input: 512, output: 128, exact_output: true,
           prefix: {shared: 0, groups: 1}, sessions: {turns: 1}}
load:     {concurrency: 8, think: 0}            # or {rate: 20, arrival: poisson}
slo:      {ttft: 350ms@99%, tpot: 15ms@99%}
run:      {seed: 1, salt: auto, out: "", keep_text: false, gpus: 0}
)";
  const Spec spec = resolved(asked).spec;
  EXPECT_EQ(spec.load.concurrency, 8);
  EXPECT_EQ(spec.slo.size(), 2U);
}

TEST(Resolve, WordsOfYamlKeepTheirText) {
  const Spec spec = spec_of({},
                            "run: {salt: no}\n"
                            "target: {model: off, headers: {X-On: yes}, body: {stop: no, n: 2,"
                            " deep: {list: [1.50, true, null, on]}}}\n");
  EXPECT_EQ(spec.run.salt, "no");
  EXPECT_EQ(spec.target.model, "off");
  EXPECT_EQ(spec.target.headers[0].second, "yes");
  EXPECT_EQ(spec.target.body, R"({"stop":"no","n":2,"deep":{"list":[1.5,true,null,"on"]}})");
}

TEST(Resolve, AddressesAreStoredInOneForm) {
  const auto url = [](std::string text) {
    Asked asked;
    asked.urls = {std::move(text)};
    return resolved(asked).spec.target.urls.at(0);
  };
  EXPECT_EQ(url("http://127.0.0.1:8000/"), "http://127.0.0.1:8000");
  EXPECT_EQ(url("HTTP://localhost:8000/v1/"), "http://localhost:8000");
  EXPECT_EQ(url("http://h:80/base/v1"), "http://h/base");
  EXPECT_EQ(url("http://[::1]:9"), "http://[::1]:9");
  EXPECT_EQ(url("unix:/run/e.sock"), "unix:/run/e.sock");
  EXPECT_EQ(url("unix:/run/e.sock:/base/"), "unix:/run/e.sock:/base");
}

TEST(Resolve, APublicHostGetsFewRequestsUnlessMoreAreAskedFor) {
  Asked asked;
  asked.urls = {"http://api.example.com"};
  const Resolved few = resolved(asked);
  EXPECT_EQ(few.spec.load.requests, 20);
  EXPECT_EQ(few.spec.load.duration, std::nullopt);
  EXPECT_EQ(few.spec.load.warmup, Extent{});
  ASSERT_EQ(few.notes.size(), 1U);
  EXPECT_NE(few.notes[0].find("10240 prompt tokens and up to 2560 output tokens"),
            std::string::npos)
      << few.notes[0];
  asked.flags = {{"--duration", "10s"}};
  const Resolved more = resolved(asked);
  EXPECT_EQ(more.spec.load.requests, std::nullopt);
  EXPECT_TRUE(more.notes.empty());
}

TEST(Resolve, PrivateHostsAreNotLimited) {
  for (const char* host : {"localhost", "127.9.9.9", "10.1.2.3", "172.31.0.1", "192.168.1.1",
                           "169.254.1.1", "100.64.0.1", "[::1]", "[fd00::1]", "[fe80::1]",
                           "[::ffff:10.0.0.1]", "gpu7", "gpu.local"}) {
    Asked asked;
    asked.urls = {std::string("http://") + host};
    EXPECT_TRUE(resolved(asked).notes.empty()) << host;
  }
  for (const char* host : {"8.8.8.8", "172.32.0.1", "100.128.0.1", "[2001:db8::1]", "a.b"}) {
    Asked asked;
    asked.urls = {std::string("http://") + host};
    EXPECT_EQ(resolved(asked).notes.size(), 1U) << host;
  }
}

TEST(Resolve, ANullTargetNeedsNoAddress) {
  Asked asked;
  asked.flags = {{"--api", "null"}};
  EXPECT_EQ(resolved(asked).spec.target.api, Api::kNull);
}

TEST(Resolve, AnEarlierRunIsTheBaseAndFlagsOverrideIt) {
  Spec base = spec_of(
      {{"--rate", "20"}, {"--arrival", "constant"}, {"--requests", "50"}, {"--out", "a.assay"}});
  base.run.salt = "drawn";
  Asked asked;
  asked.base = base;
  const Spec same = resolved(asked).spec;
  EXPECT_EQ(same.run.out, "");
  base.run.out.clear();
  EXPECT_EQ(same, base);
  asked.flags = {{"--concurrency", "2"}};
  const Spec closed = resolved(asked).spec;
  EXPECT_EQ(closed.load.rate, std::nullopt);
  EXPECT_EQ(closed.load.concurrency, 2);
  EXPECT_EQ(closed.load.requests, 50);
}

TEST(Resolve, ABaseWithRedactedSecretsAsksForThem) {
  const Spec asked_first = spec_of({{"--header", "Authorization: Bearer s3cret"}});
  Asked asked;
  asked.base = *spec_from_json(spec_to_json(asked_first));
  ASSERT_FALSE(resolve_spec(asked).has_value());
  asked.flags = {{"--header", "authorization: Bearer s3cret"}};
  EXPECT_EQ(resolved(asked).spec.target.headers[0].second, "Bearer s3cret");
}

// One Spec with every key away from its default.
Spec full_spec() {
  return spec_of({{"--api", "openai-completions"},
                  {"--model", "m \"x\"\n"},
                  {"--header", "X-A: b: c"},
                  {"--header", "X-Empty:"},
                  {"--body", R"({"temperature": 0.70, "max_tokens": 5, "stop": ["a", "\n"]})"},
                  {"--api-key-file", "/k"},
                  {"--timeout", "90.5s"},
                  {"--no-stream", ""},
                  {"--input", "lognormal:512.25,0.1"},
                  {"--output", "uniform:1,2048"},
                  {"--rate", "0.1"},
                  {"--arrival", "constant"},
                  {"--connections", "7"},
                  {"--queue-depth", "0"},
                  {"--requests", "1000000000000"},
                  {"--duration", "9999.999s"},
                  {"--warmup", "20"},
                  {"--set", "load.workers=2"},
                  {"--precise", ""},
                  {"--cold-connect", ""},
                  {"--set", "workload.exact_output=false"},
                  {"--slo", "ttft=350ms@99.9%,e2e=1.5s@33.333%"},
                  {"--seed", "18446744073709551615"},
                  {"--salt", "null"},
                  {"--out", "ä.assay"},
                  {"--keep-text", ""},
                  {"--gpus", "8"}});
}

TEST(Print, JsonReadsBackUnchanged) {
  for (const Spec& spec :
       {spec_of({}), spec_of({{"--think", "1ms"}}), full_spec(), spec_of({{"--prompt", "a\tb"}})}) {
    const std::string json = spec_to_json(spec);
    const auto back = spec_from_json(json);
    ASSERT_TRUE(back.has_value()) << back.error().text();
    EXPECT_EQ(*back, spec) << json;
    EXPECT_EQ(spec_to_json(*back), json);
  }
}

TEST(Print, YamlResolvesBackUnchanged) {
  for (const Spec& spec : {spec_of({}), full_spec(), spec_of({{"--prompt", "no: {x}\n- 'y'"}})}) {
    Asked asked;
    asked.spec_text = spec_to_yaml(spec);
    asked.spec_path = "printed.yaml";
    EXPECT_EQ(resolved(asked).spec, spec) << *asked.spec_text;
  }
}

TEST(Print, JsonHoldsEveryKey) {
  const std::string json = spec_to_json(spec_of({}));
  for (const Option& option : options()) {
    const std::string leaf = std::string(option.key.substr(option.key.rfind('.') + 1));
    EXPECT_NE(json.find("\"" + leaf + "\":"), std::string::npos) << option.key;
  }
  EXPECT_NE(json.find("\"rate\":null"), std::string::npos);
}

TEST(Print, DamagedJsonIsRefused) {
  for (const char* json : {"", "[]", "{", "{\"load\":{\"rate\":-1}}", "{\"target\":{\"api\":7}}"}) {
    EXPECT_FALSE(spec_from_json(json).has_value()) << json;
  }
}

TEST(Redact, NoSecretIsPrinted) {
  const Spec spec = spec_of(
      {{"--header", "Authorization: Bearer hunter2"},
       {"--header", "X-Api-Key: hunter2"},
       {"--header", "X-Note: bearer hunter2"},
       {"--header", "X-Team: perf"},
       {"--body",
        R"({"api_key": "hunter2", "max_tokens": 5, "t": "a\"b", "auth": {"x": ["hunter2", 1]},)"
        R"( "after": "seen", "n": {"secret":"hunter2"}, "\u0061pi_key": "hunter2"})"}});
  for (const std::string& text : {spec_to_json(spec), spec_to_yaml(spec)}) {
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
    for (const char* kept : {"perf", "seen", "\"max_tokens\":5", R"("a\"b")"}) {
      EXPECT_NE(text.find(kept), std::string::npos) << kept << " in " << text;
    }
  }
}

TEST(Redact, WhatWasTypedIsKeptWithoutItsSecrets) {
  Asked asked;
  asked.urls = {"http://h"};
  asked.flags = {{"--header", "Authorization: Bearer hunter2"},
                 {"--set", "target.headers.X-Key=hunter2"},
                 {"--body", R"({"api_key": "hunter2"})"},
                 {"--precise", ""},
                 {"--rate", "20"}};
  asked.spec_path = "s.yaml";
  asked.spec_text = "target:\n  headers: {X-Token: hunter2}\nload: {connections: 3}\n";
  EXPECT_EQ(asked_to_text(asked),
            R"(URL "http://h"
--header "Authorization: [redacted]"
--set target.headers.X-Key "[redacted]"
--body "{\"api_key\": \"[redacted]\"}"
--precise ""
--rate "20"
s.yaml:2: target.headers.X-Token "X-Token: [redacted]"
s.yaml:3: load.connections "3"
)");
}

TEST(Options, KeysAndFlagsAreUnique) {
  for (const Option& a : options()) {
    EXPECT_EQ(option_by_key(a.key), &a);
    if (!a.flag.empty()) {
      EXPECT_EQ(option_by_flag(a.flag), &a);
    }
  }
}

TEST(SpecFile, ManyAliasesAreBounded) {
  std::string yaml = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  std::string previous = "a";
  for (const char* name : {"b", "c", "d", "e", "f", "g", "h", "i"}) {
    yaml += std::string(name) + ": &" + name + " [";
    for (int i = 0; i < 10; ++i) yaml += (i > 0 ? ",*" : "*") + previous;
    yaml += "]\n";
    previous = name;
  }
  yaml += "target: {body: {bomb: *i}}\n";
  Asked asked;
  asked.spec_text = yaml;
  asked.spec_path = "s.yaml";
  const auto result = resolve_spec(asked);
  ASSERT_FALSE(result.has_value());
  const bool named = std::ranges::any_of(result.error(), [](const Error& error) {
    return error.what.find("more than 20000 values") != std::string::npos;
  });
  EXPECT_TRUE(named);
}

TEST(SpecFile, DeepNestingAndLargeFilesAreRefused) {
  for (const std::string& yaml :
       {"target: {body: " + std::string(400, '[') + std::string(400, ']') + "}\n",
        "target: {body: {a: " + std::string(40, '[') + std::string(40, ']') + "}}\n",
        std::string(2 << 20, '#'), std::string("load: \xff\n"), std::string(), std::string(","),
        std::string("load: {}\n,")}) {
    Asked asked;
    asked.urls = {"http://h"};
    asked.spec_text = yaml;
    asked.spec_path = "s.yaml";
    EXPECT_FALSE(resolve_spec(asked).has_value()) << yaml.substr(0, 40);
  }
}

}  // namespace
}  // namespace assay
