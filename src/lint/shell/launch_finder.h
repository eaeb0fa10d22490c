// Finds what starts ranks or a model server, behind srun, docker run, env, numactl and their kin, in scripts and in the
// words of containers: which program a command runs in the end (find_launches.cpp), what stands in between
// (launch_starters.cpp), what the launcher is told (launch_ranks.cpp), heredocs that are code (launch_heredocs.cpp),
// what machines run when they start (boot_scripts.cpp), and scripts that it runs (called_scripts.cpp) and files that it
// fills in (given_files.cpp).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lint/read.h"
#include "lint/shell/programs.h"
#include "lint/shell/shell_values.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

class LaunchFinder {
public:
    using Words = std::vector<Value>;

    LaunchFinder(File& file, const ReadOptions& options) : file_(&file), reading_(&file), options_(&options) {}
    // For words that do not stand in a script; nothing is written into the file.
    explicit LaunchFinder(const File& file) : reading_(&file) {}

    void run();
    // The program at `at`; true when it is a launch.
    bool program(const Words& words, std::size_t at, Launch& launch, int depth);

private:
    // ---- find_launches.cpp
    void environment(std::string_view name, const Value& value, Span span);
    void env_word(const Value& word, std::size_t equals, Launch& launch);
    void env_list(const Value& value, Launch& launch, char separator);

    // ---- launch_starters.cpp: each returns the index of the program behind it
    static std::size_t skip_prefix(const Words& words, std::size_t at, std::string_view name);
    static std::size_t next_program(const Words& words, std::size_t at);
    std::size_t srun(const Words& words, std::size_t at, Launch& launch);
    std::size_t salloc(const Words& words, std::size_t at);
    std::size_t docker(const Words& words, std::size_t at, Launch& launch);
    std::size_t singularity(const Words& words, std::size_t at, Launch& launch);
    bool shell(const Words& words, std::size_t at, Launch& launch);
    void remote(const Words& words, std::size_t at, const Launch& launch);
    void typed(const Words& words, std::size_t at, const Launch& launch);
    void run_by_azure(const Words& words, std::size_t at, const Launch& launch);
    void wrapped(const Words& words, std::size_t at, Launch& launch);
    static bool in_container(const Launch& launch);
    static bool gpu_container(const Launch& launch);
    bool under_srun_script(const Value& script, Launch& launch);
    File* guest_of_words(const Words& words, std::size_t at, const Launch& launch, std::size_t end = 1u << 20);
    File* guest(std::string text, std::vector<Piece> pieces, Kinds kinds, const Launch& launch);
    static void under(File& made, const Launch& launch);

    // ---- called_scripts.cpp
    static void given(File& script, std::vector<Directive>& directives);
    std::vector<Directive> own_directives() const;
    void exported(std::vector<EnvVar>& environment) const;
    std::unique_ptr<File> script_beside(const Value& word, std::string_view name_of_call, Span at);
    File& run_here(std::unique_ptr<File> made, std::vector<EnvVar> environment, std::vector<Directive> directives,
                   const ShellRuns* runs = nullptr);
    void ran_elsewhere(const File& library);
    void submitted(const Words& words, std::size_t at, std::size_t script, std::vector<Directive> directives,
                   std::vector<EnvVar> environment);
    void called(const Words& words, std::size_t at, const Launch& launch);

    void as_they_run();
    // ---- given_files.cpp
    std::unique_ptr<File> given_file(std::string path, std::string_view name_of_call, Span at);
    void substituted(const Command& command);
    void built(const Words& words, std::size_t at);

    // ---- launch_ranks.cpp
    bool launcher(const Words& words, std::size_t at, Program program, Launch& launch, int depth);
    void told_by_environment(Launch& launch);
    bool python(const Words& words, std::size_t at, Launch& launch);
    bool plain_program(const Words& words, std::size_t at, Launch& launch);
    bool mpirun(const Words& words, std::size_t at, Launch& launch, int depth);
    void ranks(const Words& words, std::size_t at, Launch& launch);
    Value follow(Value part);
    Value host_of_endpoint(Value endpoint);
    Value spelled_out(Value number);
    void add_option(std::vector<LaunchOption>& list, const File& file, const WordOption& option);
    void program_options(const Words& words, std::size_t at, Launch& launch);
    void finish(Launch& launch);

    // ---- boot_scripts.cpp
    void as_user(const Words& words, std::size_t at, const Launch& launch);
    void boots(const Words& words, std::size_t at, const Launch& launch);
    void boot_text(const Value& text, const Launch& launch);
    void boot_file(std::string_view path, Span at);
    void boot_printed(const Value& word);

    // ---- launch_heredocs.cpp
    void heredocs(std::size_t k);
    bool reader(std::size_t k, std::string_view& path, Kinds& kinds) const;
    static bool reads_code(const Command& command, Kinds& kinds, std::string_view& path);
    static bool writes_structure(std::string_view body);
    void echoed();  // launch_echoes.cpp
    void embed(const Redirect& redirect, std::string_view path, Kinds kinds);

    File* file_ = nullptr;
    const File* reading_;
    const ReadOptions* options_ = nullptr;
    int command_ = -1;
    std::size_t guest_bytes_ = 0, guest_held_ = 0;
};

}  // namespace stoker::lint
