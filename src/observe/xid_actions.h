// Errors of NVIDIA's driver (Xid) and what each asks for: data/gpu/xid_actions.tsv.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

enum class XidClass : std::uint8_t { restart_app, reset_gpu, restart_machine, workflow, check, ignore, support, none };
std::string_view to_string(XidClass value);
std::span<const XidClass> xid_classes();
struct XidAction {
    XidClass kind = XidClass::none;
    std::string_view action;  // what to do, in words
};
XidAction xid_action(int code);
std::optional<XidClass> find_xid_class(std::string_view name);
const std::vector<std::pair<int, XidAction>>& known_xids();  // by code

}  // namespace stoker
