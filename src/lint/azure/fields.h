// Tables from the properties of a language to attributes, and what the finders of Terraform, Bicep and ARM share.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lint/file.h"
#include "lint/hcl/expression.h"
#include "lint/read.h"

namespace stoker::lint {

// "properties.hardwareProfile.vmSize": steps from a resource's body. A list on the way is entered: all its items count.
struct Field {
    Attr attr;
    std::string_view path;
};

// Sets every attribute that is there. Of a list each item is one Value; of an object under tag or node_label each
// entry is one, "key=value".
void set_fields(Resource& resource, const Node* body, std::span<const Field> fields, Tree& tree);
const Node* node_at(const Node* body, std::string_view path);  // the last one; null: there is none
// The text of a scalar, when it is known.
std::string_view text_at(const Node* body, std::string_view path);

// Adds a resource to the file and returns it; good until the next one is added.
Resource& add_resource(File& file, ResourceType type, std::string address, std::string_view written, const Node* body,
                       Span header);

// A constant that a language implies: Uniform for azurerm_linux_virtual_machine_scale_set.
Value implied(std::string_view text, const Resource& resource);

// "PT30M", "P1DT2H" as seconds; "1800" too. -1: it is none.
std::int64_t iso_seconds(std::string_view text);
// Attr::idle_seconds of a duration.
void set_idle(Resource& resource, const Node* node, Tree& tree);

// customData, custom_data: decoded as Attr::custom_data, and as a guest where it stands in this file.
void read_custom_data(File& file, std::size_t resource, const Node* node, Dialect dialect, const ReadOptions& options);

// An ARM resource as Bicep and ARM have it. `type` is "Microsoft.Compute/virtualMachines" in any case; `parent`: the
// address of what it belongs to, for children written inside.
struct ArmBody {
    std::string_view type;
    std::string address;
    std::string_view written;
    const Node* body = nullptr;
    Span header;
    Value count;  // of a loop
    std::string target;
};
void add_arm_resource(File& file, const ArmBody& arm, Dialect dialect, const ReadOptions& options);

// Scripts that a resource, or a part of one, has for a machine to run: guests.
void read_terraform_scripts(File& file, const Node& block, const ReadOptions& options);
void read_arm_scripts(File& file, const ArmBody& arm, const Node* body, Dialect dialect, const ReadOptions& options);

// Sizes that a parameter, a variable or a validation offers; nothing when none of them is a size.
void add_size_list(File& file, const Node* list, std::string address, Span header);
// A default or an argument whose name says that it is a size.
void add_named_size(File& file, std::string_view name, const Node* value, std::string address, Span header);
// The arguments of a module that is elsewhere: sizes, each with the image that stands beside it.
void add_sizes_of_call(File& file, const Node& arguments, const std::string& address);
// The same for an argument that may be a list or an object with sizes below it: agentPools: [{vmSize: ...}].
void add_sizes_below(File& file, const Node& argument, const std::string& address, int depth = 0);

}  // namespace stoker::lint
