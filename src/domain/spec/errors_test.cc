// Golden messages: cases/spec/errors.txt holds malformed input and the answer to it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/text.h"
#include "domain/spec/option.h"
#include "domain/spec/parse.h"

namespace assay {
namespace {

constexpr const char* kCases = "cases/spec/errors.txt";

/// Words apart at blanks; single quotes hold a word together.
std::vector<std::string> shell_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false, started = false;
  std::string word;
  for (const char c : text) {
    if (c == '\'') {
      inside = !inside;
      started = true;
    } else if (c == ' ' && !inside) {
      if (started) words.push_back(word);
      word.clear();
      started = false;
    } else {
      word += c;
      started = true;
    }
  }
  if (started) words.push_back(word);
  return words;
}

struct Case {
  std::vector<std::string> before;  // comments and blank lines
  std::string arguments;
  std::string spec;
  std::vector<std::string> answers;
};

std::vector<Case> read_cases() {
  std::ifstream file(kCases);
  std::vector<Case> cases(1);
  std::string line;
  bool inside = false;  // the last case has its arguments
  while (std::getline(file, line)) {
    const bool opens = line.starts_with("$ ");
    if (inside && (opens || line.empty() || line.starts_with('#'))) {
      cases.emplace_back();
      inside = false;
    }
    Case& last = cases.back();
    if (opens) {
      last.arguments = line.substr(2);
      inside = true;
    } else if (line.starts_with("| ")) {
      last.spec += line.substr(2) + "\n";
    } else if (line.starts_with("> ")) {
      last.answers.push_back(line.substr(2));
    } else {
      last.before.push_back(line);
    }
  }
  if (!inside) cases.pop_back();
  return cases;
}

Asked asked_of(const Case& one) {
  Asked asked;
  const std::vector<std::string> words = shell_words(one.arguments);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      asked.urls.push_back(words[i]);
      continue;
    }
    const Option* option = option_by_flag(words[i]);
    const bool takes_value = option == nullptr || option->form != Form::kSwitch;
    const std::string value = takes_value && i + 1 < words.size() ? words[i + 1] : "";
    if (words[i] == "--spec") {
      asked.spec_path = value;
      asked.spec_text = one.spec;
    } else {
      asked.flags.emplace_back(words[i], value);
    }
    if (takes_value) ++i;
  }
  return asked;
}

std::vector<std::string> answers_to(const Asked& asked) {
  const auto resolved = resolve_spec(asked);
  std::vector<std::string> out;
  if (resolved) return {"fine"};
  for (const Error& error : resolved.error()) {
    EXPECT_EQ(error.code, ExitCode::kUsage);
    EXPECT_FALSE(error.where.empty()) << error.text();
    out.push_back(error.text());
  }
  return out;
}

void write_cases(const std::vector<Case>& cases) {
  std::ofstream file(kCases);
  for (const Case& one : cases) {
    for (const std::string& line : one.before) file << line << "\n";
    file << "$ " << one.arguments << "\n";
    for (const std::string_view line : split(one.spec, '\n')) {
      if (!line.empty()) file << "| " << line << "\n";
    }
    for (const std::string& answer : one.answers) file << "> " << answer << "\n";
  }
}

TEST(SpecErrors, ReadAsTheGoldenFileSays) {
  std::vector<Case> cases = read_cases();
  ASSERT_GT(cases.size(), 100U);
  const bool update = std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr;
  for (Case& one : cases) {
    const std::vector<std::string> answers = answers_to(asked_of(one));
    for (const std::string& answer : answers) {
      EXPECT_EQ(answer.find("hunter2"), std::string::npos) << "a secret in: " << answer;
    }
    if (update) {
      one.answers = answers;
    } else {
      EXPECT_EQ(one.answers, answers) << "$ " << one.arguments << "\n" << one.spec;
    }
  }
  if (update) write_cases(cases);
}

}  // namespace
}  // namespace assay
