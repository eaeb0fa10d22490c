// Variables of an Ansible playbook, as far as files beside it write them down: group_vars, defaults and vars of roles,
// vars of plays and tasks.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lint/read.h"

namespace stoker::lint {

class PlaybookVariables {
public:
    // Those of files beside a playbook or a role's list of tasks.
    void learn_beside(const File& playbook, const ReadOptions& options);
    // A mapping of names to values, which come before what was there.
    void learn(const Node* names, std::string_view space = {});
    // One name, whose value may name others.
    void set(std::string_view name, std::string value) {
        values_.insert_or_assign(std::string(name), std::move(value));
    }
    void forget(std::string_view name) { values_.erase(std::string(name)); }
    // {{ name }} by its value; {{ name | default("x") }} of a name that nothing gives as a default of the shell.
    void fill(std::string& text, std::vector<Piece>& pieces) const;

private:
    void learn_file(const std::string& path, const ReadOptions& options, bool beside_others);
    void learn_folder(const std::string& path, const ReadOptions& options);
    std::string worked_out(std::string_view expression, int depth) const;

    std::map<std::string, std::string, std::less<>> values_;
    std::map<std::string, bool, std::less<>> several_;  // given otherwise by another group
    std::size_t files_ = 0;
};

}  // namespace stoker::lint
