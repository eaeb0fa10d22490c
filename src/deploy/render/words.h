// What several targets say in the same words: comments with their reasons, environment, the program, names, quoting.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "deploy/deployment.h"

namespace stoker {

// A word for a POSIX shell.
std::string shell_word(std::string_view text);
// A scalar for YAML, quoted where it would be read as something else; also right in JSON and TOML when it is quoted.
std::string yaml_word(std::string_view text);
std::string json_text(std::string_view text);  // "..." of JSON, which YAML, TOML, HCL without ${ and Python read alike
// Of a resource: RFC 1123 label, at most `most` characters, never empty.
std::string dns_label(std::string_view text, std::size_t most = 63);
// "1000m" -> whole cores downwards, at least one; bytes in whole MiB downwards.
std::int64_t whole_cpus(const RankNeeds& needs);
std::int64_t whole_mib(std::int64_t bytes);

// Each line with `indent` before it, but for empty ones.
std::string indented(std::string_view text, std::string_view indent);

// "# reason (source)\n", over several lines where it is long, of a setting of the Deployment; empty where it says none.
std::string reason_of(const Deployment& deployment, std::string_view setting);
// The same for what a target sets by itself.
std::string why(std::string_view reason, std::string_view source);

// "Train llama-3-8b on 1B tokens: 2 x Standard_ND96isr_H100_v5, eastus, 16 ranks, catalogue 2026-11."
std::string heading(const Deployment& deployment);
// The heading and the notes, as comments.
std::string head_comment(const Deployment& deployment);

// `export NAME=value` with reasons: the environment of the ranks, the layout (trainings only), the checkpoints.
std::string environment_exports(const Deployment& deployment);
std::string layout_exports(const Deployment& deployment);
std::string checkpoint_exports(const Deployment& deployment);
// All three, each followed by an empty line, and the working folder.
std::string preamble(const Deployment& deployment);
// STOKER_RESUME_FROM of a training that starts again, behind the preamble: for programs of one's own, since
// Megatron-LM, NeMo and torchtitan look for their checkpoints themselves. The search alone, in one line of POSIX shell,
// is for targets whose command is no script.
inline constexpr std::string_view kResumeReason =
    "# The newest whole checkpoint, whose manifest.json was written last, is where a program that reads\n"
    "# STOKER_RESUME_FROM goes on.\n";
std::string resume_exports(const Deployment& deployment);
std::string resume_search();
// The same as names and values, for targets that are no shell.
std::map<std::string, std::string> work_environment(const Deployment& deployment);

// How a script that people start is started on each node, and the folder of the base model (in this `form`) that a
// fine-tuning asks for. `variables` stand before its name, `arguments` behind it.
std::string started_by_hand(const Deployment& deployment, std::string_view variables, std::string_view arguments,
                            std::string_view form);

// The program in words of a shell; the script's own arguments where the file names none.
std::string program_words(const Deployment& deployment);
// " PROGRAM ARGUMENTS" behind a script that is called; empty where the file names the program.
std::string program_usage(const Deployment& deployment);
// The torchrun of one node up to the program, over several lines. `endpoint`: host:port in words of a shell.
std::string torchrun_words(const Deployment& deployment, std::string_view rendezvous_id, std::string_view endpoint);

// Devices that the work takes of each node, in whole ones: a share of a GPU is one device to its machine.
int gpus_per_node(const Deployment& deployment);
// Whether it takes all that a node has.
bool takes_whole_nodes(const Deployment& deployment);
// The weights as a hub names them ("meta-llama/Meta-Llama-3-8B"), else the catalogue's name.
std::string weights_of(const Deployment& deployment);
// "14-00:00:00", "02:20:00".
std::string clock_time(std::int64_t seconds);
// Several independent shares of the work, each of which may run alone: no training, no service.
bool is_divisible(const Deployment& deployment);

}  // namespace stoker
