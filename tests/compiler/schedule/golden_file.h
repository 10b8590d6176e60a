// Golden files of the schedule primitives: golden/PRIMITIVE.txt, a list of cases in sections.
//
//   # remarks
//   ==== program NAME            the program of programs/NAME.txt, for the cases below
//   ==== start                   steps that stand in front of the steps of every case below
//   b = sch.get_block("C")
//   ==== rewrite: what it shows
//   sch.split(..)                the steps
//   ----
//   @T.prim_func ..              the program they make
//   ==== refused: why
//   sch.split(..)
//   ----
//   step 2 `..`: split(i): ..    the whole message
//
// HONE_UPDATE_GOLDEN=1 writes what comes after the dashes.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"

namespace hone::testing {

struct GoldenCase {
  bool refused = false;
  std::string title;
  std::string program;   // the text
  std::string trace;     // with the steps of `start` in front
  std::string expected;  // a program, or a message
};

struct GoldenSection {
  std::string head, body;  // the line after "==== ", and the lines below it
};

inline std::filesystem::path GoldenFolder() {
  return std::filesystem::path(HONE_TEST_DATA) / "compiler/schedule/golden";
}

inline std::string ReadTextFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  HONE_CHECK(file.good()) << "cannot read " << path.string();
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The names of the golden files, without ".txt".
inline std::vector<std::string> GoldenNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder())) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Sections in order; the first has an empty head and holds the remarks on top.
inline std::vector<GoldenSection> ReadSections(const std::string& text) {
  std::vector<GoldenSection> sections(1);
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("==== ")) {
      sections.push_back({line.substr(5), ""});
    } else {
      sections.back().body += line + "\n";
    }
  }
  return sections;
}

inline bool IsCase(const GoldenSection& section) {
  return section.head.starts_with("rewrite: ") || section.head.starts_with("refused: ");
}

inline std::vector<GoldenCase> GoldenCases(const std::string& name) {
  std::vector<GoldenCase> cases;
  std::string program, start;
  for (const GoldenSection& section : ReadSections(ReadTextFile(GoldenFolder() / (name + ".txt")))) {
    if (section.head.starts_with("program ")) {
      program = ReadTextFile(GoldenFolder().parent_path() / "programs" / (section.head.substr(8) + ".txt"));
      start.clear();
    } else if (section.head == "start") {
      start = section.body;
    } else if (IsCase(section)) {
      const size_t dashes = section.body.find("----\n");
      HONE_CHECK(dashes != std::string::npos) << name << ": no line of dashes in " << section.head;
      cases.push_back({section.head.starts_with("refused"), section.head.substr(9), program,
                       start + section.body.substr(0, dashes), section.body.substr(dashes + 5)});
    } else {
      HONE_CHECK(section.head.empty()) << name << ": unknown section " << section.head;
    }
  }
  return cases;
}

// The trace read and played; a refusal by either of the two.
inline absl::StatusOr<Schedule> Play(const GoldenCase& golden, const PrimFunc& workload) {
  const absl::StatusOr<Trace> trace = ParseTrace(golden.trace);
  if (!trace.ok()) return trace.status();
  return Replay(*trace, workload);
}

}  // namespace hone::testing
