// What the rules about scripts and launches share: addresses, directives of the batch, literal options.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lint/check.h"
#include "lint/rule.h"

namespace stoker::lint {

// "slurm:train.sbatch", "script:run.sh"; of a script inside a container the container's address.
std::string script_address(const File& part);
// The part that holds #SBATCH lines; null when none does.
const File* batch_part(const File& file);
// The last of that canonical name that the scheduler reads; of one part of a heterogeneous job, counted from 0.
inline constexpr int kAnyComponent = -1;
const Directive* batch_option(const File& batch, std::string_view option, int component = kAnyComponent);
// Which part of the job a command or a launch runs in; kAnyComponent where the job has one part.
int component_of(const File& batch, const Command& command);
int component_of(const File& batch, const Launch& launch);
// A switch, or one that is given true, True or 1.
bool option_is_on(const LaunchOption* option);
std::optional<std::int64_t> option_int(const Launch& launch, std::string_view name);
// A whole number that no environment variable may change.
std::optional<std::int64_t> literal_int(const Value& value);
bool is_loopback(std::string_view host);
std::string_view file_name_of(const File& file);
// Text of a file or its path that says what hardware it is for.
bool mentions(const File& file, std::string_view word);
// A package or a runfile that brings an NVIDIA driver with it; cuda-toolkit does not.
bool brings_driver(std::string_view word);
// The word of a command that installs an NVIDIA driver: apt-get install cuda-drivers, a runfile; null: it installs
// none.
const Value* driver_install(const Command& command);

// visit(part, launch, address) for every launch of the file and its guests; the address is stable.
template <typename F>
void for_each_launch(const File& file, F&& visit) {
    int ordinal = 0;
    for_each_part(file, [&](const File& part) {
        for (const Launch& launch : part.launches) {
            ++ordinal;
            visit(part, launch, script_address(part) + "#launch/" + std::to_string(ordinal));
        }
    });
}
inline bool has_launches(const File& file) {
    bool any = false;
    for_each_part(file, [&](const File& part) { any |= !part.launches.empty(); });
    return any;
}

}  // namespace stoker::lint
