// The options of sbatch, as its own table (slurm_opt.c) has them in Slurm 22.05 to 26.05, and what getopt_long makes of
// the beginning of a name. The one list that check, run and the tests read.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stoker::sbatch {

enum class Takes : std::uint8_t { value, maybe, nothing };  // maybe: only one behind =

// What a value has to look like; sbatch_values.h judges by it.
enum class Sort : std::uint8_t {
    any,
    whole,
    spare_cores,
    node_count,
    size,
    duration,
    moment,
    gres,
    gpus,
    indices,
    dependency,
    layout,
    switches,
    sampling,
    environment_wait,
    mail,
    signal,
    distribution,
    hint,
    exclusive,
    open_mode,
    yes_no,
    gres_flags,
    off,
    zero_one,
    not_negative,
    gpu_frequency,
    cpu_frequency,
    limits,
    memory_bind,
    profile,
    gpu_bind
};

// In every one of these versions; in some; or gone since Slurm 19.05 and known by its whole name only.
enum class Age : std::uint8_t { always, some, gone };

struct Option {
    std::string_view name;  // without dashes
    char letter;            // 0: none
    Takes takes;
    Sort sort = Sort::any;
    Age age = Age::always;
    std::string_view means = {};  // of a second name: the first
};

std::span<const Option> options();  // sorted by name

// By its name or the beginning of it, as getopt_long has it: one that fits several is none, unless all but one of them
// are not in every version. `named` is the row that was meant, `option` the first name of it; both null: sbatch refuses
// it. Slurm has had no --tasks since 19.05: it is short for --tasks-per-node.
struct Found {
    const Option* option = nullptr;
    const Option* named = nullptr;
    explicit operator bool() const { return option != nullptr; }
};
Found find_option(std::string_view name);
const Option* find_letter(char letter);
// Of a plug-in (pyxis): sbatch itself does not know it, a cluster may.
bool is_plugin_option(std::string_view name);

}  // namespace stoker::sbatch
