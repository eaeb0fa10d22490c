// az and helm commands as Resources: the options of each command are a row of a table.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/helm/read_chart.h"
#include "lint/knowledge.h"
#include "lint/read.h"
#include "lint/shell/az_options.h"
#include "lint/shell/shell_values.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

class AzFinder {
public:
    AzFinder(File& file, const ReadOptions& options) : file_(file), options_(options) {}

    void run() {
        for (const Command& command : file_.script.commands) {
            const auto calls = ShellValues::of(file_).words_in_runs(command, options_);
            for (const std::vector<Value>& words : calls) one(command, words);
            if (calls.empty()) one(command, command.words);
        }
    }

private:
    void one(const Command& command, const std::vector<Value>& words) {
        for (std::size_t at = 0; at < words.size() && at < 3; ++at) {
            if (!words[at].known()) break;
            const std::string_view name = base_name_of(words[at].text);
            if (name == "az") return az(command, words, at);
            if (name == "helm") return helm(command, words, at);
            if (name != "sudo" && name != "time" && name != "retry" && name != "exec" && name != "env") break;
        }
    }

    // Where a part of a word is a variable, its value is where that was written.
    Value follow(Value part) {
        if (!part.source || part.source != &file_.source() || part.use_source) return part;
        const std::string_view raw = part.source->text(part.span);
        if (!raw.starts_with('$') && !raw.starts_with("\"$")) return part;
        const Value value = ShellValues::of(file_).value(part.span);
        return value.unknown() && part.known() ? part : value;  // known in one call of a function only
    }

    // The group that AKS makes for the nodes of a cluster: by its name, or by what a variable asks of the cluster.
    static constexpr std::string_view kNodesGroup = "nodeResourceGroup";
    bool is_nodes_group(const Value& group) const {
        if (group.known()) return group.text.starts_with("MC_");
        std::string_view name = group.text;
        name.remove_prefix(std::min(name.find_first_not_of("\"${"), name.size()));
        name = name.substr(0, name.find_first_of("\"}:"));
        const auto& all = file_.script.assignments;
        return !name.empty() && std::any_of(all.begin(), all.end(), [&](const Assignment& each) {
            return each.name == name && each.value.source &&
                   file_.source().text(each.span).find(kNodesGroup) != std::string_view::npos;
        });
    }

    static Span from_to(const Value& first, const Value& last) {
        if (first.source != last.source || last.span.end < first.span.begin) return first.span;
        return {first.span.begin, last.span.end};
    }

    Resource make(ResourceType type, std::string_view written, std::string_view path, const Command& command,
                  Span header, const Source* source, const Value& name) {
        Resource resource;
        resource.type = type;
        resource.written = written;
        resource.file = &file_;
        resource.source = source;
        resource.header = header;
        resource.whole = source == &file_.source() ? command.span : header;
        const std::string label = name.known() ? std::string(name.text) : std::to_string(++ordinal_);
        resource.address = "az:" + std::string(path) + "/" + label;
        return resource;
    }

    void az(const Command& command, const std::vector<Value>& words, std::size_t at) {
        const AzCommand* known = nullptr;
        std::size_t last = at;
        {
            std::string path;
            for (std::size_t k = at + 1; k < words.size() && k < at + 6; ++k) {
                if (!words[k].known() || words[k].text.starts_with("-")) break;
                if (!path.empty()) path += ' ';
                path += words[k].text;
                for (const AzCommand& each : az_commands())
                    if (each.path == path) {
                        known = &each;
                        last = k;
                    }
            }
        }
        if (!known) return deployment(words, at);

        struct Set {
            Attr attr;
            Value value;
        };
        std::vector<Set> sets;
        Value name, kind_of_compute, authentication, image;
        bool open = false;
        for (std::size_t k = last + 1; k < words.size();) {
            WordOption option;
            if (is_open_word(words[k])) open = true;
            if (!read_option(words, k, option, [](std::string_view) { return false; })) {
                ++k;
                continue;
            }
            std::vector<Value> values;
            if (option.value.present()) values.push_back(option.value);
            std::size_t next = k + 1;
            if (!option.value.present()) {
                while (next < words.size() &&
                       (words[next].text.empty() || words[next].text[0] != '-' || words[next].text.size() < 2 ||
                        (words[next].text[1] >= '0' && words[next].text[1] <= '9'))) {
                    if (!values.empty() && is_open_word(words[next])) break;  // "$@" behind the options
                    if (words[next].use_source == nullptr || words[next].known() || values.empty())
                        values.push_back(words[next]);
                    ++next;
                }
            }
            k = next;
            std::string_view written = option.name;
            if (!option.dashes && written.size() > 1) {  // -nNAME is not in use with az
                continue;
            }
            for (Value& value : values) value = follow(value);
            if (written == "name" || written == "n" || (written == "nodepool-name" && known->path == "aks create"))
                if (!values.empty()) name = values.front();
            if (written == "type" && !values.empty()) kind_of_compute = values.front();
            if (written == "authentication-type" && !values.empty()) authentication = values.front();
            if ((written == "image") && !values.empty()) image = values.front();
            if ((written == "resource-group" || written == "g") && known->type == ResourceType::extension &&
                !values.empty() && is_nodes_group(values.front())) {
                Value nodes = values.front();
                if (nodes.unknown()) nodes.text = kNodesGroup;
                sets.push_back({Attr::target, nodes});
            }
            if (written == "set" || written == "add") {
                for (const Value& value : values) {
                    for (const std::string_view key : {"instance_type=", "size="})
                        if (value.text.starts_with(key))
                            sets.push_back({Attr::size, follow(part_of(value, key.size()))});
                }
                continue;
            }
            if (written == "cluster-autoscaler-profile") {
                for (const Value& value : values)
                    if (value.text.starts_with("scale-down-unneeded-time="))
                        sets.push_back({Attr::scale_down_unneeded, part_of(value, 25)});
                continue;
            }
            const AzOption* meaning = az_option(known->path, written);
            if (!meaning) continue;
            if (!meaning->fixed.empty() && (values.empty() || !values.front().as_bool())) {
                Value value = Value::known_text(meaning->fixed, words[k > 0 ? next - 1 : 0].span, *words[at].source);
                value.span = option.span;
                value.source = option.value.source ? option.value.source : words[next - 1 - values.size()].source;
                sets.push_back({meaning->attr, value});
                continue;
            }
            if (meaning->attr == Attr::size && !values.empty() && values.front().unknown() &&
                values.front().source == &file_.source()) {
                const auto may = ShellValues::of(file_).alternatives(ShellValues::raw(values.front(), file_.source()));
                for (const Value& value : may) sets.push_back({Attr::size, value});
                if (!may.empty()) continue;
            }
            if (!meaning->list) {
                if (!values.empty()) sets.push_back({meaning->attr, values.front()});
                continue;
            }
            for (const Value& value : values) {
                std::size_t from = 0;
                do {
                    const std::size_t comma = value.text.find(',', from);
                    if (comma == std::string_view::npos && from == 0) {
                        if (meaning->attr == Attr::zone && value.text.size() > 1 &&
                            value.text.find(' ') != std::string_view::npos) {
                            zones(value, sets);
                            break;
                        }
                        sets.push_back({meaning->attr, value});
                        break;
                    }
                    Value part = part_of(value, from);
                    const std::size_t size = std::min(comma, value.text.size()) - from;
                    part.text = part.text.substr(0, size);
                    part.span.end = std::min(part.span.end, part.span.begin + static_cast<std::uint32_t>(size));
                    sets.push_back({meaning->attr, part});
                    if (comma == std::string_view::npos) break;
                    from = comma + 1;
                } while (from <= value.text.size());
            }
        }

        ResourceType type = known->type;
        if (known->path == "ml compute create" && kind_of_compute.is_nocase("ComputeInstance"))
            type = ResourceType::aml_instance;
        else if (known->path == "ml compute create" && !kind_of_compute.is_nocase("amlcompute"))
            type = ResourceType::other;
        const Span header = from_to(words[at], words[last]);
        Resource resource = make(type, known->written, known->path, command, header, words[at].source, name);
        if (authentication.known())
            resource.set(Attr::password_login, Value::known_text(authentication.is_nocase("ssh") ? "false" : "true",
                                                                 authentication.span, *authentication.source));
        if (image.known()) {
            const bool id = image.text.find('/') != std::string_view::npos;
            resource.set(id ? Attr::image_id : Attr::image_urn, image);
            if (!id) image_parts(resource, image);
        } else {
            resource.set(Attr::image_urn, image);
        }
        if (type == ResourceType::security_rule) {
            const auto given = [&](Attr attr) {
                return std::any_of(sets.begin(), sets.end(), [&](const Set& each) { return each.attr == attr; });
            };
            // az's own defaults
            if (!open && !given(Attr::access))
                resource.set(Attr::access, Value::known_text("Allow", header, *words[at].source));
            if (!open && !given(Attr::direction))
                resource.set(Attr::direction, Value::known_text("Inbound", header, *words[at].source));
        }
        // What "$@" may hold is not known: attributes that are not seen are unknown, not absent.
        if (open) {
            Value unknown;
            unknown.state = Value::State::unknown;
            unknown.source = words[at].source;
            unknown.span = header;
            for (const AzOption& each : az_options()) {
                if (!az_in_scope(known->path, each.scope)) continue;
                if (std::none_of(sets.begin(), sets.end(), [&](const Set& set) { return set.attr == each.attr; }) &&
                    resource.get(each.attr).absent() && !always_visible(each.attr))
                    resource.set(each.attr, unknown);
            }
        }
        if (type == ResourceType::cluster) {
            Resource pool =
                make(ResourceType::node_pool, known->written, known->path, command, header, words[at].source, name);
            pool.address += "#default";
            for (const Set& each : sets) pool.set(each.attr, each.value);
            pool.set(Attr::pool_mode, Value::known_text("System", header, *words[at].source));
            for (const Set& each : sets)
                if (each.attr == Attr::name || each.attr == Attr::kubernetes_version || each.attr == Attr::tag ||
                    each.attr == Attr::scale_down_unneeded)
                    resource.set(each.attr, each.value);
            file_.resources.push_back(std::move(resource));
            file_.resources.push_back(std::move(pool));
            return;
        }
        for (const Set& each : sets) {
            resource.set(each.attr, each.value);
            // How az turns a pool into a managed GPU pool (preview; recalled, as AKS documents it).
            if (each.attr == Attr::tag && each.value.known() &&
                contains_nocase(each.value.text, "EnableManagedGPUExperience=true")) {
                Value managed = each.value;
                managed.text = "Managed";
                resource.set(Attr::managed_gpu, managed);
            }
        }
        file_.resources.push_back(std::move(resource));
    }
    // The labelled public scripts append "$@" to commands whose main options stand there: the taints and the scaling
    // count as absent, since they are what such a script is read for.
    static bool always_visible(Attr attr) {
        return attr == Attr::taint || attr == Attr::autoscaling || attr == Attr::min_count || attr == Attr::max_count ||
               attr == Attr::zone || attr == Attr::tag || attr == Attr::node_label || attr == Attr::priority ||
               attr == Attr::name;
    }
    template <typename Sets>
    void zones(const Value& value, Sets& sets) {
        std::size_t from = 0;
        while (from < value.text.size()) {
            std::size_t stop = std::min(value.text.find(' ', from), value.text.size());
            if (stop > from) {
                Value part = part_of(value, from);
                part.text = part.text.substr(0, stop - from);
                sets.push_back({Attr::zone, part});
            }
            from = stop + 1;
        }
    }
    static void image_parts(Resource& resource, const Value& image) {
        const Attr parts[] = {Attr::image_publisher, Attr::image_offer, Attr::image_sku, Attr::image_version};
        if (std::count(image.text.begin(), image.text.end(), ':') != 3) return;
        std::size_t from = 0;
        for (const Attr attr : parts) {
            const std::size_t stop = std::min(image.text.find(':', from), image.text.size());
            Value part = part_of(image, from);
            part.text = image.text.substr(from, stop - from);
            part.span.end = std::min(image.span.end, part.span.begin + static_cast<std::uint32_t>(stop - from));
            resource.set(attr, part);
            from = stop + 1;
        }
    }

    // az deployment group create --parameters vmSize=Standard_NC6: a size that a template is given.
    void deployment(const std::vector<Value>& words, std::size_t at) {
        if (at + 2 >= words.size() || !words[at + 1].is("deployment")) return;
        for (std::size_t k = at + 2; k < words.size(); ++k) {
            const Value word = follow(words[k]);
            const std::size_t equals = word.text.find('=');
            if (!word.known() || equals == std::string_view::npos || equals == 0) continue;
            const Value size = part_of(word, equals + 1);
            if (!Knowledge::looks_like_size(size.text) || !starts_with_ignore_case(size.text, "Standard_")) continue;
            Resource resource;
            resource.type = ResourceType::other;
            resource.written = "az deployment";
            resource.file = &file_;
            resource.source = word.source;
            resource.header = resource.whole = word.span;
            resource.address = "az:deployment/" + std::string(word.text.substr(0, equals));
            resource.set(Attr::size, size);
            file_.resources.push_back(std::move(resource));
        }
    }

    void helm(const Command& command, const std::vector<Value>& words, std::size_t at) {
        if (at + 1 >= words.size() || !(words[at + 1].is("install") || words[at + 1].is("upgrade"))) return;
        std::vector<Value> positional;
        Value version;
        std::vector<Value> settings, files;
        const auto has_value = [](std::string_view name) {
            for (const std::string_view flag : {"install",
                                                "create-namespace",
                                                "wait",
                                                "atomic",
                                                "debug",
                                                "dry-run",
                                                "generate-name",
                                                "g",
                                                "i",
                                                "devel",
                                                "force",
                                                "reset-values",
                                                "reuse-values",
                                                "dependency-update",
                                                "disable-openapi-validation",
                                                "skip-crds",
                                                "verify",
                                                "no-hooks",
                                                "cleanup-on-fail",
                                                "wait-for-jobs"})
                if (name == flag) return false;
            return true;
        };
        for (std::size_t k = at + 2; k < words.size();) {
            WordOption option;
            if (read_option(words, k, option, has_value)) {
                if (option.name == "version") version = follow(option.value);
                if (option.name == "set" || option.name == "set-string") settings.push_back(option.value);
                if (option.name == "f" || option.name == "values") files.push_back(option.value);
                k = option.next;
                continue;
            }
            positional.push_back(words[k++]);
        }
        if (positional.empty()) return;
        const Value chart = positional.back();
        Resource resource =
            make(ResourceType::chart, "helm install", "helm install", command, from_to(words[at], words[at + 1]),
                 words[at].source, positional.size() > 1 ? positional.front() : Value{});
        resource.set(Attr::chart_name, chart);
        resource.set(Attr::chart_version, version);
        for (const Value& each : settings) resource.set(Attr::tag, each);
        file_.resources.push_back(std::move(resource));
        chart_values(chart, settings, files);
    }
    // A chart beside, with what -f and --set give it.
    void chart_values(const Value& chart, const std::vector<Value>& settings, const std::vector<Value>& files) {
        if (!chart.known() || file_.host || settings.size() + files.size() == 0 || !settings_can_be_read(settings))
            return;
        const Node* values = nullptr;
        const auto lay = [&](const Node* over) {
            if (over) values = values ? &chart_values_over(file_, *values, *over) : over;
        };
        for (const Value& each : files)
            if (each.known()) lay(chart_values_beside(file_, std::string(each.text), options_));
        Node& given = file_.tree.make(file_.source(), Shape::object, chart.span);
        for (const Value& each : settings)
            for (std::size_t from = 0; from < each.text.size();) {
                const std::size_t comma = std::min(each.text.find(',', from), each.text.size());
                const std::string_view one = each.text.substr(from, comma - from);
                if (const std::size_t equals = one.find('='); equals != std::string_view::npos) {
                    Value value = part_of(each, from + equals + 1);
                    value.text = one.substr(equals + 1);
                    value.span.end =
                        std::min(value.span.end, value.span.begin + static_cast<std::uint32_t>(value.text.size()));
                    give_chart_value(file_, given, one.substr(0, equals), value);
                }
                from = comma + 1;
            }
        if (given.first) lay(&given);
        if (values) read_chart_given(file_, chart.text, *values, chart.span, "helm", options_);
    }
    static bool settings_can_be_read(const std::vector<Value>& settings) {  // a list or a comma within is neither
        return std::none_of(settings.begin(), settings.end(), [](const Value& each) {
            return !each.source || each.text.find_first_of("{\\") != std::string_view::npos;
        });
    }

    File& file_;
    const ReadOptions& options_;
    int ordinal_ = 0;
};

}  // namespace

void find_az(File& file, const ReadOptions& options) {
    if (file.script.commands.empty() || file.kinds.has(Kind::dockerfile)) return;
    AzFinder(file, options).run();
    // Behind a function that runs what it is given, where the text alone does not show it.
    for (const Resource& resource : file.resources)
        if (resource.written.starts_with("az ")) file.kinds.add(Kind::az);
}

}  // namespace stoker::lint
