// SPDX-License-Identifier: Apache-2.0
// streamgemm manual: man pages, and completions for shells, from the program's own verbs and options. The build
// installs what it prints.
#include <cstdio>
#include <memory>
#include <string>

#include "usage.hpp"
#include "verbs.hpp"

namespace sg::cli {

namespace {

using verbs = std::vector<const CLI::App *>;

verbs verbs_in(const CLI::App &app) {
  return app.get_subcommands([](const CLI::App *each) { return !each->get_group().empty(); });
}

// The options that a verb has, the program's own (--trace) with them.
std::vector<const CLI::Option *> options_of(const CLI::App &app, const CLI::App &verb) {
  std::vector<const CLI::Option *> all = verb.get_options([](const CLI::Option *) { return true; });
  if (&app != &verb)
    for (const CLI::Option *each : app.get_options([](const CLI::Option *o) { return o->check_lname("trace"); }))
      all.push_back(each);
  return all;
}

bool takes_value(const CLI::Option &option) { return option.get_items_expected_max() > 0; }

std::string replaced(std::string text, const std::string &what, const std::string &by) {
  return CLI::detail::find_and_replace(std::move(text), what, by);
}

// Text in roff.
std::string roff(const std::string &text) {
  std::string out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  out = replaced(out, "\n", "\n.br\n");
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string quoted(const std::string &text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

void print_options(const CLI::App &app, const CLI::App &verb) {
  std::printf(".SH OPTIONS\n");
  for (const CLI::Option *option : options_of(app, verb)) {
    const std::string value = takes_value(*option) ? " \\fI" + roff(option->get_type_name()) + "\\fR" : "";
    std::printf(".TP\n\\fB%s\\fR%s\n%s\n", roff(option->get_name(false, true)).c_str(),
                option->get_positional() && option->get_lnames().empty() ? "" : value.c_str(),
                roff(option->get_description()).c_str());
  }
}

void print_page(const CLI::App &app, const CLI::App &verb) {
  const bool whole = &app == &verb;
  const std::string name = whole ? "streamgemm" : "streamgemm-" + verb.get_name();
  std::printf(".TH %s 1 \"\" \"StreamGEMM %s\" \"StreamGEMM\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n",
              CLI::detail::to_lower(name).c_str(), sg_version_string(), roff(name).c_str(),
              roff(verb.get_description()).c_str());
  std::string positionals;
  for (const CLI::Option *option : verb.get_options([](const CLI::Option *o) { return o->get_positional(); }))
    positionals += " \\fI" + option->get_name(true) + "\\fR";
  std::printf("\\fBstreamgemm%s\\fR%s [\\fIoptions\\fR]\n", whole ? " \\fIverb" : (" " + verb.get_name()).c_str(),
              positionals.c_str());
  if (const verbs below = verbs_in(verb); !below.empty()) {
    std::printf(".SH VERBS\n");
    for (const CLI::App *each : below)
      std::printf(".TP\n\\fB%s\\fR\n%s%s\n", each->get_name().c_str(), roff(each->get_description()).c_str(),
                  whole ? (": \\fBstreamgemm\\-" + each->get_name() + "\\fR(1)").c_str() : "");
  }
  print_options(app, verb);
  if (!verb.get_footer().empty()) std::printf(".SH NOTES\n%s\n", roff(verb.get_footer()).c_str());
  if (!whole) std::printf(".SH SEE ALSO\n\\fBstreamgemm\\fR(1)\n");
}

std::string names_of(const std::vector<const CLI::Option *> &options) {
  std::string all;
  for (const CLI::Option *option : options)
    for (const std::string &name : option->get_lnames()) all += (all.empty() ? "--" : " --") + name;
  return all;
}

// The words that may stand where an option has none: those of positional arguments, and verbs below.
std::string words_at(const CLI::App &verb) {
  std::vector<std::string> words;
  for (const CLI::Option *option : verb.get_options([](const CLI::Option *o) { return o->get_positional(); }))
    for (const std::string &word : words_of(*option)) words.push_back(word);
  for (const CLI::App *each : verbs_in(verb)) words.push_back(each->get_name());
  return joined(words, " ");
}

void print_bash(const CLI::App &app) {
  std::printf(
      "# bash completion of streamgemm\n_streamgemm() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}\n"
      "  local words=\n  [ \"$COMP_CWORD\" -eq 1 ] && verb=\n  case \"$verb $before\" in\n");
  for (const CLI::App *verb : verbs_in(app))
    for (const CLI::Option *option : options_of(app, *verb))
      for (const std::string &name : option->get_lnames())
        if (takes_value(*option) && !option->get_positional())
          std::printf("    %s) words=%s; COMPREPLY=($(compgen -W \"$words\" -- \"$word\")); return ;;\n",
                      quoted(verb->get_name() + " --" + name).c_str(), quoted(joined(words_of(*option), " ")).c_str());
  std::printf("  esac\n  case \"$verb\" in\n    '') words=%s ;;\n",
              quoted(words_at(app) + " " + names_of(options_of(app, app))).c_str());
  for (const CLI::App *verb : verbs_in(app))
    std::printf("    %s) words=%s; [[ $word == -* ]] && words=%s ;;\n", verb->get_name().c_str(),
                quoted(words_at(*verb)).c_str(), quoted(names_of(options_of(app, *verb))).c_str());
  std::printf(
      "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o bashdefault -o default -F "
      "_streamgemm streamgemm\n");
}

// Text in brackets of an argument of _arguments.
std::string zsh(const std::string &text) {
  return replaced(replaced(replaced(text, "[", "\\["), "]", "\\]"), ":", "\\:");
}

void print_zsh(const CLI::App &app) {
  std::printf("#compdef streamgemm\nlocal -a verbs\nverbs=(\n");
  for (const CLI::App *verb : verbs_in(app))
    std::printf("  %s\n", quoted(verb->get_name() + ":" + verb->get_description()).c_str());
  std::printf(
      ")\nif (( CURRENT == 2 )); then\n  _describe verb verbs\n  return\nfi\nlocal verb=$words[2]\nshift words\n"
      "(( CURRENT-- ))\ncase $verb in\n");
  for (const CLI::App *verb : verbs_in(app)) {
    std::printf("  %s)\n    _arguments", verb->get_name().c_str());
    for (const CLI::Option *option : options_of(app, *verb))
      for (const std::string &name : option->get_lnames()) {
        const std::vector<std::string> words = words_of(*option);
        const std::string value = !takes_value(*option) ? ""
                                  : words.empty()       ? ":value:_files"
                                                        : ":value:(" + joined(words, " ") + ")";
        std::printf(" \\\n      %s", quoted("--" + name + "[" + zsh(option->get_description()) + "]" + value).c_str());
      }
    const std::string words = words_at(*verb);
    std::printf(" \\\n      %s\n    ;;\n", quoted(words.empty() ? "*:file:_files" : "*:word:(" + words + ")").c_str());
  }
  std::printf("esac\n");
}

void print_fish(const CLI::App &app) {
  std::printf("# fish completion of streamgemm\n");
  for (const CLI::App *verb : verbs_in(app)) {
    const std::string &name = verb->get_name();
    std::printf("complete -c streamgemm -n __fish_use_subcommand -f -a %s -d %s\n", name.c_str(),
                quoted(verb->get_description()).c_str());
    const std::string where = "complete -c streamgemm -n '__fish_seen_subcommand_from " + name + "'";
    if (const std::string words = words_at(*verb); !words.empty())
      std::printf("%s -f -a %s\n", where.c_str(), quoted(words).c_str());
    for (const CLI::Option *option : options_of(app, *verb))
      for (const std::string &option_name : option->get_lnames()) {
        const std::vector<std::string> words = words_of(*option);
        std::printf("%s -l %s%s -d %s\n", where.c_str(), option_name.c_str(),
                    !takes_value(*option) ? ""
                    : words.empty()       ? " -r"
                                          : (" -x -a " + quoted(joined(words, " "))).c_str(),
                    quoted(option->get_description()).c_str());
      }
  }
}

}  // namespace

void add_manual(CLI::App &app) {
  auto verb_name = std::make_shared<std::string>(), shell = std::make_shared<std::string>();
  CLI::App *verb = app.add_subcommand("manual", "Print a man page, or what a shell completes");
  verb->add_option("VERB", *verb_name, "Of this verb (default: of the program)");
  verb->add_option("--completion", *shell, "For this shell instead of a man page")
      ->transform(one_of({"bash", "zsh", "fish"}))
      ->type_name("bash|zsh|fish");
  verb->footer("Example: streamgemm manual gemm | man -l -");
  verb->callback([&app, verb_name, shell] {
    if (*shell == "bash") return print_bash(app);
    if (*shell == "zsh") return print_zsh(app);
    if (*shell == "fish") return print_fish(app);
    const CLI::App *page = &app;
    for (const CLI::App *each : verbs_in(app))
      if (each->get_name() == *verb_name) page = each;
    if (page == &app && !verb_name->empty())
      throw CLI::ValidationError("VERB", *verb_name + " is no verb" + hint_of(*verb_name, [&] {
                                   std::vector<std::string> names;
                                   for (const CLI::App *each : verbs_in(app)) names.push_back(each->get_name());
                                   return names;
                                 }()));
    print_page(app, *page);
  });
}

}  // namespace sg::cli
