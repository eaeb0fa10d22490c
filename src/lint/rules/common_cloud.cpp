#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "lint/shell/read_makefile.h"

namespace stoker::lint {

namespace {

// Days since a fixed day of a date YYYY-MM-DD (civil calendar); 0: it is none.
int day_number(std::string_view date) {
    int part[3] = {0, 0, 0};
    if (date.size() != 10) return 0;
    const std::size_t at[3] = {0, 5, 8}, size[3] = {4, 2, 2};
    for (int i = 0; i < 3; ++i)
        if (std::from_chars(date.data() + at[i], date.data() + at[i] + size[i], part[i]).ec != std::errc{}) return 0;
    const int year = part[0] - (part[1] <= 2);
    const int era = year / 400, of_era = year - era * 400;
    const int of_year = (153 * (part[1] + (part[1] > 2 ? -3 : 9)) + 2) / 5 + part[2] - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
}

void each_instance_type(const Node& node, const Node* object, int depth,
                        const std::function<void(const Value&, const std::string&)>& use) {
    if (depth > 60) return;
    for (const Node& child : children(&node)) {
        const bool named = child.key == "node.kubernetes.io/instance-type" ||
                           child.key == "beta.kubernetes.io/instance-type" || child.key == "instanceType";
        if (named && child.is_scalar()) {
            const Node* name = object->at({"metadata", "name"});
            const Node* kind = object->find("kind");
            use(Value::of(&child),
                fmt::format("k8s:{}/{}#{}", kind ? kind->text : "", name ? name->text : "", child.key));
        } else if (!child.is_scalar()) {
            each_instance_type(child, object, depth + 1, use);
        }
    }
}

}  // namespace

std::string_view folder_of(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool same_folder(const File& a, const File& b) {
    // A module stands beside what calls it, and beside the other modules of that.
    for (const File* x = &a; x; x = x->call ? x->call->caller : nullptr)
        for (const File* y = &b; y; y = y->call ? y->call->caller : nullptr)
            if (folder_of(x->path()) == folder_of(y->path())) return true;
    return false;
}

Beside::Folder& Beside::folder(const Resource& of) {
    const std::string_view path = folder_of(of.file->path());
    for (Folder& known : folders_)
        if (known.path == path) return known;
    folders_.push_back({path, {}, {}, {}, {}});
    return folders_.back();
}

const Work& Beside::work(const Resource& of) {
    // A batch script of Slurm does not run on a pool of Kubernetes or a cluster of Azure ML, though it lie beside it.
    Folder& here = folder(of);
    const bool managed = is_pool(of) || of.type == ResourceType::aml_compute || of.type == ResourceType::aml_endpoint;
    std::optional<Work>& slot = managed ? here.managed_work : here.work;
    if (!slot) {
        Bundle near;
        for (const File* file : bundle_.files)
            if (same_folder(*file, of.file->outermost()) && !(managed && file->kinds.has(Kind::slurm)))
                near.files.push_back(file);
        slot = work_of(near, knowledge_);
    }
    return *slot;
}

bool Beside::says(const Resource& of, std::initializer_list<std::string_view> words) {
    Folder& here = folder(of);
    if (!here.says) {
        here.says = false;
        for (const File* file : bundle_.files)
            if (same_folder(*file, of.file->outermost()))
                for (const std::string_view word : words)
                    here.says = *here.says || contains_nocase(file->source().text(), word);
    }
    return *here.says;
}

bool Beside::any(const Resource& of, const std::function<bool(const Resource&)>& such) {
    Folder& here = folder(of);
    if (!here.any) {
        here.any = false;
        each_beside(bundle_, of, [&](const Resource& resource) { here.any = *here.any || such(resource); });
    }
    return *here.any;
}

bool Beside::has_module_call(const Resource& of) {
    Folder& here = folder(of);
    if (!here.module_call) {
        here.module_call = false;
        for (const File* file : bundle_.files)
            if (same_folder(*file, of.file->outermost()))
                for (const Node* root : file->tree.roots)
                    for (const Node& node : children(root)) {
                        // One that was followed hides nothing.
                        const bool followed = std::any_of(
                            file->calls.begin(), file->calls.end(),
                            [&](const auto& called) { return called->call->span.begin == node.key_span.begin; });
                        here.module_call = *here.module_call || (node.key == "module" && !followed);
                    }
    }
    return *here.module_call;
}

const KnownSize* size_of(const Resource& resource, const Report& report) {
    const Value& size = resource.get(Attr::size);
    return size.known() ? report.knowledge().size(size.text) : nullptr;
}

bool gpu_size(std::string_view size, const Knowledge& knowledge) {
    if (const KnownSize* known = knowledge.size(size)) return known->gpu();
    const KnownRetirement* retirement = knowledge.retirement(size);
    if (starts_with_ignore_case(size, "Standard_")) size.remove_prefix(9);
    return (retirement || Knowledge::looks_like_size("Standard_" + std::string(size))) &&
           (starts_with_ignore_case(size, "NC") || starts_with_ignore_case(size, "ND") ||
            starts_with_ignore_case(size, "NV"));
}

bool has_gpu(const Resource& resource, const Report& report) {
    const Value& size = resource.get(Attr::size);
    return size.known() && gpu_size(size.text, report.knowledge());
}

bool torn_down_here(const Resource& resource) {
    const File& whole = resource.file->outermost();
    if (!is_az(resource) || !whole.kinds.has(Kind::workflow) || is_makefile(whole.path())) return false;
    bool ends = false;
    for_each_part(whole, [&](const File& part) {
        for (const Command& command : part.script.commands)
            ends =
                ends || (command.words.size() > 2 && command.words[0].is("az") &&
                         (command.words[1].is("group") || command.words[1].is("aks")) && command.words[2].is("delete"));
    });
    return ends;
}

bool is_gpu_pool(const Resource& resource, const Report& report) {
    if (!is_pool(resource)) return false;
    const Value& size = resource.get(Attr::size);
    if (size.known() && (gpu_size(size.text, report.knowledge()) || report.knowledge().size(size.text)))
        return gpu_size(size.text, report.knowledge());
    if (resource.get(Attr::managed_gpu).known()) return true;
    if (size.known()) return false;
    if (resource.get(Attr::name).known() && contains_nocase(resource.get(Attr::name).text, "gpu")) return true;
    for (const Attr attr : {Attr::gpu_driver, Attr::gpu_instance})
        if (resource.get(attr).known() && !resource.get(attr).text.empty()) return true;
    for (const auto& [attr, value] : resource.attributes) {
        if (attr == Attr::tag && starts_with_ignore_case(value.text, "SkipGPUDriverInstall=")) return true;
        if ((attr == Attr::taint || attr == Attr::node_label) && value.known() &&
            (contains_nocase(value.text, "nvidia.com/gpu") || starts_with_ignore_case(value.text, "sku=gpu")))
            return true;
    }
    return false;
}

bool has_rdma(const Resource& resource, const Report& report) {
    const KnownSize* size = size_of(resource, report);
    return size && size->rdma() && size->gpu();
}

bool is_retired(const KnownRetirement& retirement, const CheckOptions& options) {
    return retirement.date.empty() || options.as_of.empty() || retirement.date <= options.as_of;
}

bool gpu_file(const File& file, const Report& report) {
    // A module serves whoever calls it, and what else is called there.
    if (file.call && !file.call->overlay) {
        const File* caller = file.call->caller;
        while (caller->call) caller = caller->call->caller;
        bool found = gpu_file(*caller, report);
        for_each_call(*caller, [&](const File& beside) {
            found = found || (!beside.call->overlay && &beside != &file && gpu_part(beside, report));
        });
        if (found) return true;
    }
    return gpu_part(file, report);
}

bool gpu_root(const File& file, const Bundle& bundle, const Report& report) {
    if (gpu_file(file, report)) return true;
    const auto folder_of = [](const File& of) {
        return std::string_view(of.path()).substr(0, of.path().rfind('/') + 1);
    };
    return std::any_of(bundle.files.begin(), bundle.files.end(), [&](const File* other) {
        for (const Kind kind : {Kind::terraform, Kind::bicep, Kind::arm})
            if (file.kinds.has(kind) && other->kinds.has(kind))
                return folder_of(*other) == folder_of(file) && gpu_part(*other, report);
        return false;
    });
}

bool gpu_part(const File& file, const Report& report) {
    if (work_of(file, report.knowledge()).gpu) return true;
    bool found = false;
    each_resource(file, [&](const Resource& resource) {
        for (const Attr attr : {Attr::allowed_size, Attr::size})
            for (const Value* size : resource.all(attr))
                found = found || (size->known() && gpu_size(size->text, report.knowledge()));
        found = found || is_gpu_pool(resource, report) || is_nvidia_extension(resource) || is_amd_extension(resource);
    });
    return found;
}

bool is_written(const Resource& resource, Attr attr) {
    return resource.get(attr).present();
}
bool is_az(const Resource& resource) {
    return resource.written.starts_with("az ");
}
bool is_pool(const Resource& resource) {
    return resource.type == ResourceType::node_pool ||
           (resource.type == ResourceType::cluster && is_az(resource) && resource.get(Attr::size).present());
}
std::optional<std::int64_t> count_of(const Resource& resource) {
    return resource.get(Attr::count).as_int();
}
std::size_t zones_of(const Resource& resource) {
    std::vector<std::string_view> zones;
    for (const Value* zone : resource.all(Attr::zone)) {
        if (!zone->known()) return 0;
        if (std::find(zones.begin(), zones.end(), zone->text) == zones.end()) zones.push_back(zone->text);
    }
    return zones.size();
}
bool says_yes(const Value& value) {
    return value.as_bool() == std::optional(true);
}
bool says_no(const Value& value) {
    return value.as_bool() == std::optional(false);
}

Finding* add_at_header(Report& report, const Resource& resource, std::string message) {
    return report.add(*resource.source, resource.header, resource.address, std::move(message));
}

Finding* add_at_use(Report& report, const Value& value, const std::string& address, std::string message) {
    if (!value.use_source) return report.add(value, address, std::move(message));
    Finding* finding = report.add(*value.use_source, value.use, address, std::move(message));
    if (finding) finding->value = value.text.substr(0, 200);
    report.relate(finding, *value.source, value.span, "its value");
    return finding;
}

void tell_idle_cost(Report& report, Finding* finding, const KnownSize& size, std::int64_t nodes) {
    if (!finding || nodes < 1 || nodes > 10'000) return;
    const std::string& region = report.options().region;
    const auto price = report.knowledge().price(size.name, region);
    if (!price) return;
    FindingCost cost;
    cost.size = size.name;
    cost.nodes = nodes;
    cost.usd_per_hour = price->usd_per_hour * static_cast<double>(nodes);
    cost.region = price->region, cost.lowest = region.empty();
    cost.source = price->source, cost.as_of = price->as_of;
    finding->cost = std::move(cost);
}

void tell_idle_cost(Report& report, Finding* finding, const Resource& resource, std::optional<std::int64_t> nodes) {
    const KnownSize* size = finding ? size_of(resource, report) : nullptr;
    if (!size || !nodes) return;
    // Spot prices move by the hour and are no part of the catalogue.
    const Value& priority = resource.get(Attr::priority);
    if (priority.present() && !priority.is_nocase("Regular") && !priority.is_nocase("Dedicated")) return;
    tell_idle_cost(report, finding, *size, *nodes);
}

void tell_cost_beside_gpu(Report& report, Finding* finding, const KnownSize& size) {
    if (!finding) return;
    const std::string& region = report.options().region;
    const auto price = report.knowledge().price(size.name, region);
    const KnownSize* gpu = report.knowledge().cheapest_gpu(region);
    const auto other = gpu ? report.knowledge().price(gpu->name, region) : std::nullopt;
    if (!price || !other) return;
    FindingCost cost;
    cost.size = size.name;
    cost.usd_per_hour = price->usd_per_hour;
    cost.region = price->region, cost.lowest = region.empty();
    cost.instead = gpu->name, cost.instead_usd_per_hour = other->usd_per_hour;
    cost.source = price->source, cost.as_of = price->as_of;
    finding->cost = std::move(cost);
}

std::optional<ImageName> image_of(const Resource& resource) {
    ImageName image;
    if (resource.get(Attr::image_id).present()) return std::nullopt;
    const Value& urn = resource.get(Attr::image_urn);
    if (urn.known()) {
        image.at = urn;
        const auto parts = split(urn.text, ':');
        if (parts.size() == 4) {
            image.publisher = parts[0], image.offer = parts[1], image.sku = parts[2];
            return image;
        }
        if (urn.text.find('/') != std::string_view::npos || urn.text.empty()) return std::nullopt;
        image.alias = true;
        image.offer = urn.text;
        return image;
    }
    const Value &publisher = resource.get(Attr::image_publisher), &offer = resource.get(Attr::image_offer),
                &sku = resource.get(Attr::image_sku);
    if (!publisher.known() || !offer.known()) return std::nullopt;
    image.publisher = publisher.text;
    image.offer = offer.text;
    image.sku = sku.known() ? sku.text : std::string_view();
    image.at = sku.known() ? sku : offer;
    return image;
}

bool is_plain_linux(const ImageName& image) {
    if (image.alias)
        return starts_with_ignore_case(image.offer, "Ubuntu") || starts_with_ignore_case(image.offer, "Debian") ||
               starts_with_ignore_case(image.offer, "RHEL") || starts_with_ignore_case(image.offer, "CentOS") ||
               starts_with_ignore_case(image.offer, "Suse") || starts_with_ignore_case(image.offer, "OpenSuse");
    if (contains_nocase(image.offer, "hpc") || contains_nocase(image.sku, "hpc")) return false;
    for (const std::string_view publisher :
         {"Canonical", "OpenLogic", "RedHat", "Debian", "SUSE", "Oracle", "almalinux", "resf"})
        if (equals_ignore_case(image.publisher, publisher)) return true;
    return false;
}

bool is_nvidia_extension(const Resource& extension) {
    const Value& type = extension.get(Attr::extension_type);
    return extension.type == ResourceType::extension && type.known() &&
           starts_with_ignore_case(type.text, "NvidiaGpuDriver");
}
bool is_amd_extension(const Resource& extension) {
    const Value& type = extension.get(Attr::extension_type);
    return extension.type == ResourceType::extension && type.known() &&
           starts_with_ignore_case(type.text, "AmdGpuDriver");
}

const Resource* machine_of(const Bundle& bundle, const Resource& extension) {
    std::vector<const Resource*> machines;
    each_beside(bundle, extension, [&](const Resource& resource) {
        if (resource.type == ResourceType::vm || resource.type == ResourceType::scale_set)
            machines.push_back(&resource);
    });
    for (const Value* target : extension.all(Attr::target)) {
        for (const Resource* machine : machines) {
            if (target->text == machine->address) return machine;
            const std::size_t colon = machine->address.find(':');
            std::string_view symbol = std::string_view(machine->address).substr(colon + 1);
            const bool symbolic = machine->address.starts_with("tf:") || machine->address.starts_with("bicep:");
            const auto begins = [&](std::string_view start, std::string_view after) {
                return target->text.starts_with(start) &&
                       (target->text.size() == start.size() ||
                        after.find(target->text[start.size()]) != std::string_view::npos);
            };
            if (symbolic && begins(symbol, ".[")) return machine;
            const Value& name = machine->get(Attr::name);
            if (name.known() && !name.text.empty() && begins(name.text, "/")) return machine;
        }
    }
    return machines.size() == 1 ? machines[0] : nullptr;
}

std::string address_of_size(const Resource& resource, const Value& size) {
    if (!size.use_source || !size.node || !size.node->origin) return resource.address;
    const Node* origin = size.node->origin;
    const Node* holder = origin->parent;
    if (!holder) return resource.address;
    if (holder->key == "variable" && !holder->labels.empty()) return fmt::format("tf:variable.{}", holder->labels[0]);
    if ((holder->key == "param" || holder->key == "var") && !holder->labels.empty())
        return fmt::format("bicep:{} {}", holder->key, holder->labels[0]);
    if (origin->key == "defaultValue" && !holder->key.empty()) return fmt::format("arm:parameters/{}", holder->key);
    return resource.address;
}

void each_size(const File& file, const std::function<void(const Value&, const std::string&)>& use) {
    for_each_part(file, [&](const File& part) {
        for (const Resource& resource : part.resources)
            for (const Value* size : resource.all(Attr::size))
                if (size->known()) use(*size, address_of_size(resource, *size));
        if (!part.kinds.has(Kind::k8s)) return;
        if (part.kinds.has(Kind::workflow)) {  // the manifests of a playbook
            for (const Workload& made : part.workloads) each_instance_type(*made.object, made.object, 0, use);
            return;
        }
        for (const Node* root : part.tree.roots)
            if (root && root->is_object()) each_instance_type(*root, root, 0, use);
    });
}

void fix_value(Report& report, Finding* finding, const Value& value, FixClass safety, std::string title,
               std::string_view text) {
    if (!finding || !value.source) return;
    const std::string_view raw = value.source->text(value.span);
    const std::size_t at = raw.find(value.text);
    // The text itself, once, with nothing but quotes around it.
    if (value.text.empty() || at == std::string_view::npos || at > 1 || raw.size() - value.text.size() > 2 * at) return;
    const Span inner{static_cast<std::uint32_t>(value.span.begin + at),
                     static_cast<std::uint32_t>(value.span.begin + at + value.text.size())};
    report.fix(finding, *value.source, safety, std::move(title), {{inner, std::string(text)}});
}

int days_between(std::string_view from, std::string_view to) {
    const int a = day_number(from), b = day_number(to);
    return a && b ? b - a : 0;
}

}  // namespace stoker::lint
