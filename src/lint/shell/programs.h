// What programs are to somebody who looks for launches: which start others, which are launchers, and which of their
// options have a value.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "lint/facts.h"

namespace stoker::lint {

enum class Program : std::uint8_t {
    other,
    prefix,       // env, sudo, numactl: options, then a program
    profiler,     // nsys: many options, then a program
    environment,  // conda run
    srun,
    salloc,
    docker,
    singularity,
    shell,
    eval,
    sbatch,
    remote,    // ssh
    terminal,  // tmux, screen: a text for a shell of their own
    user,      // su, runuser: a text for the shell of another user
    azure,     // az, which has scripts run on machines
    cloud,     // aws, gcloud: a script that a machine runs when it starts
    python,
    launcher,        // torchrun: launcher_of_program() says which
    maybe_launcher,  // accelerate, vllm: by the next word
};
Program program_of(std::string_view name);

std::optional<Launcher> launcher_of_program(std::string_view name);
std::optional<Launcher> launcher_of_module(std::string_view name);

// By the name of a program or of its options: it trains.
bool trains_by_name(std::string_view program);
bool trains_by_option(std::string_view name);

// Options of the launcher itself that have no value.
bool launcher_switch(Launcher launcher, std::string_view name);
bool mpi_switch(std::string_view name);
bool docker_switch(std::string_view name, bool dashes);
bool singularity_switch(std::string_view name, bool dashes);
bool srun_takes_value(std::string_view name, bool dashes);

inline bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
    for (const std::string_view each : list)
        if (each == text) return true;
    return false;
}
bool has_part(std::string_view text, std::initializer_list<std::string_view> list);
// X of X=1, FOO_BAR.
bool env_name(std::string_view text);

}  // namespace stoker::lint
