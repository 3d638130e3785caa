// Takes a YAML spec file apart into settings: key, text, place. Structure is judged here (maps
// where maps belong, no duplicate key, bounded size, depth and aliases); values are read by the
// option table. Scalars keep the text that was typed, so `no` and `off` stay words and `1e3` stays
// `1e3`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace assay {

struct Setting {
  std::string key;    // "load.rate"; may be unknown
  std::string text;   // as a flag would give it
  std::string where;  // "--rate", "spec.yaml:7: load.rate"
};

/// Appends what it finds; goes on after an error where it can.
void read_spec_file(std::string_view text, const std::string& path, std::vector<Setting>& settings,
                    Errors& errors);

}  // namespace assay
