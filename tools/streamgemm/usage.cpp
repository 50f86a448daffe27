// SPDX-License-Identifier: Apache-2.0
#include "usage.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>

namespace sg::cli {

namespace {

// Edits (a character inserted, removed or replaced) from one word to the other.
std::size_t distance(const std::string &a, const std::string &b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

// The verb that is being used, perhaps one of a verb.
const CLI::App *verb_of(const CLI::App *app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return app;
}

std::vector<std::string> verbs_of(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::App *each : app.get_subcommands([](const CLI::App *one) { return !one->get_group().empty(); }))
    names.push_back(each->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App *app) {
  std::vector<std::string> names;
  for (; app; app = app->get_parent())
    for (const CLI::Option *option : app->get_options())
      for (const std::string &name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

template <class Number>
bool is_number(const std::string &text, Number &value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size();
}

std::string limit_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

std::string hint_of(const std::string &given, const std::vector<std::string> &known) {
  const std::string *nearest = nullptr;
  for (const std::string &word : known)
    if (given.size() > 1 && word.starts_with(given)) return "; did you mean " + word + "?";
  std::size_t least = given.size() < 3 ? 2 : std::max<std::size_t>(2, given.size() / 3) + 1;
  for (const std::string &word : known)
    if (const std::size_t edits = distance(given, word); edits < least) least = edits, nearest = &word;
  return nearest ? "; did you mean " + *nearest + "?" : "";
}

std::string complaint_of(const CLI::App &app, const CLI::ParseError &refusal) {
  const CLI::App *const verb = verb_of(&app);
  std::string name;  // with the verbs above
  for (const CLI::App *each = verb; each; each = each->get_parent())
    name = each->get_name() + (name.empty() ? "" : " ") + name;
  std::vector<std::string> extra = app.remaining(true);
  std::erase(extra, "--");  // which says that no options follow
  std::string said = refusal.what();
  if (!extra.empty() && extra[0].starts_with("-")) {
    const std::string option = extra[0].substr(0, extra[0].find('='));
    said = option + " is no option of " + name + hint_of(option, options_of(verb));
  } else if (!extra.empty() && verb == &app) {
    const std::vector<std::string> verbs = verbs_of(app);
    said = extra[0] + " is no verb" + hint_of(extra[0], verbs) + "\nverbs: " + joined(verbs, ", ");
  } else if (!extra.empty()) {
    said = verb->get_name() + " takes no \"" + extra[0] + "\"" + hint_of(extra[0], verbs_of(*verb));
  } else if (verb == &app && refusal.get_name() == "RequiredError") {
    said = "a verb is missing: " + joined(verbs_of(app), ", ");
  }
  if (constexpr std::string_view not_read = "Could not convert: "; said.starts_with(not_read)) {
    said.erase(0, not_read.size());
    said = CLI::detail::find_and_replace(said, " = ", ": ");
    said += " is no number";
  }
  return said + "\nsee " + name + " --help";
}

CLI::Validator whole_number(std::int64_t least) {
  return {[least](std::string &text) {
            std::int64_t value = 0;
            if (!is_number(text, value)) return text + " is no whole number";
            return value < least ? text + " is too small: it must be at least " + std::to_string(least) : std::string();
          },
          ""};
}

CLI::Validator number_between(double least, double most) {
  return {[least, most](std::string &text) {
            double value = 0;
            if (!is_number(text, value)) return text + " is no number";
            if (value >= least && value <= most) return std::string();
            return text + " is not from " + limit_text(least) + " to " + limit_text(most);
          },
          ""};
}

CLI::Validator positive_number() {
  return {[](std::string &text) {
            double value = 0;
            if (!is_number(text, value)) return text + " is no number";
            return value > 0 ? std::string() : text + " is too small: it must be above 0";
          },
          ""};
}

CLI::Validator size_in_bytes() {
  return {[](std::string &text) {
            const std::string given = text;
            try {
              if (!given.starts_with('-') && CLI::AsSizeValue(false)(text).empty()) return std::string();
            } catch (const CLI::Error &) {  // some are thrown
            }
            return given + " is no size; sizes are such as 500MB and 4GiB";
          },
          "", "size"};
}

CLI::Validator one_of(const std::vector<std::string> &words) {
  return {[words](std::string &text) {
            for (const std::string &word : words)
              if (CLI::detail::to_lower(word) == CLI::detail::to_lower(text)) return text = word, std::string();
            return text + " is none of " + joined(words, ", ") + hint_of(text, words);
          },
          ""};
}

std::vector<std::string> words_of(const CLI::Option &option) {
  const std::string type = option.get_type_name();
  if (type.find('|') == type.npos) return {};
  return CLI::detail::split(type, '|');
}

std::string joined(const std::vector<std::string> &words, const char *between) {
  return CLI::detail::join(words, between);
}

}  // namespace sg::cli
