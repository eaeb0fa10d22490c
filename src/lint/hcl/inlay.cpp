// Texts within files of another language, with the place of each of their bytes: scripts in custom_data, commands in
// JSON, objects of Kubernetes in Terraform's words.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "lint/azure/terraform_objects.h"
#include "lint/hcl/expression.h"

namespace stoker::lint {

namespace {

struct InlayWriter {
    Inlay inlay;

    void add(std::string_view text, Span host, Piece::Kind kind) {
        if (text.empty()) return;
        auto& pieces = inlay.pieces;
        const auto guest = static_cast<std::uint32_t>(inlay.text.size());
        inlay.text += text;
        if (kind == Piece::Kind::verbatim && !pieces.empty() && pieces.back().kind == kind &&
            pieces.back().host.end == host.begin) {
            pieces.back().length += static_cast<std::uint32_t>(text.size());
            pieces.back().host.end = host.end;
            return;
        }
        pieces.push_back({guest, static_cast<std::uint32_t>(text.size()), host, kind});
    }
};

// [begin, end) with backslash escapes, as all of JSON, HCL and Bicep have them.
void add_escaped(InlayWriter& out, std::string_view text, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t at = begin; at < end;) {
        const std::size_t stop = std::min<std::size_t>(text.find('\\', at), end);
        const auto to = static_cast<std::uint32_t>(stop);
        out.add(text.substr(at, to - at), {at, to}, Piece::Kind::verbatim);
        at = to;
        if (at + 1 >= end) break;
        const char next = text[at + 1];
        std::uint32_t length = 2;
        std::string decoded(1, next);
        if (next == 'n') decoded = "\n";
        if (next == 't') decoded = "\t";
        if (next == 'r') decoded = "\r";
        if (next == 'u' && at + 6 <= end) {
            length = 6;
            char32_t code = 0;
            for (std::uint32_t i = at + 2; i < at + 6; ++i) {
                const char c = text[i];
                code = code * 16 + static_cast<char32_t>(c >= '0' && c <= '9' ? c - '0' : ((c | 32) - 'a' + 10) & 15);
            }
            decoded.clear();
            append_utf8(decoded, code >= 0xD800 && code < 0xE000 ? U'?' : code);
        }
        out.add(decoded, {at, at + length}, Piece::Kind::changed);
        at += length;
    }
}

}  // namespace

Inlay inlay_of(const Node& node, Dialect dialect) {
    if (!node.source || node.source->text().size() < node.span.end || node.span.size() < 2) return {};
    const std::string_view text = node.source->text();
    InlayWriter out;
    const std::string_view raw = node.source->text(node.span);
    if (dialect == Dialect::hcl && raw.starts_with("<<")) {
        const bool indented = raw.starts_with("<<-");
        const std::size_t first = raw.find('\n');
        const std::size_t last = raw.rfind('\n');
        if (first == std::string_view::npos || last <= first) return {};
        std::size_t least = std::string_view::npos;
        const auto each_line = [&](auto&& use) {
            for (std::size_t at = first + 1; at <= last;) {
                const std::size_t end = raw.find('\n', at);
                use(at, end + 1);
                at = end + 1;
            }
        };
        if (indented)
            each_line([&](std::size_t begin, std::size_t end) {
                const std::size_t word = raw.find_first_not_of(" \t", begin);
                if (word < end - 1) least = std::min(least, word - begin);
            });
        if (least == std::string_view::npos) least = 0;
        each_line([&](std::size_t begin, std::size_t end) {
            const std::size_t from = std::min(begin + least, end - 1);
            out.add(
                raw.substr(from, end - from),
                {static_cast<std::uint32_t>(node.span.begin + from), static_cast<std::uint32_t>(node.span.begin + end)},
                Piece::Kind::verbatim);
        });
        return std::move(out.inlay);
    }
    if (dialect == Dialect::bicep && raw.starts_with("'''") && raw.size() >= 6) {
        std::uint32_t begin = node.span.begin + 3;
        if (text[begin] == '\r') ++begin;
        if (text[begin] == '\n') ++begin;
        const std::uint32_t end = std::max(begin, node.span.end - 3);
        out.add(text.substr(begin, end - begin), {begin, end}, Piece::Kind::verbatim);
        return std::move(out.inlay);
    }
    const char quote = dialect == Dialect::bicep ? '\'' : '"';
    if (raw.front() != quote || raw.back() != quote) return {};
    add_escaped(out, text, node.span.begin + 1, node.span.end - 1);
    return std::move(out.inlay);
}

// The texts between the holes stand in `made` one behind another: what lies between two of them filled the hole.
Inlay filled_inlay(Inlay raw, std::string_view made) {
    const std::string_view text = raw.text;
    if (text.find("${") == std::string_view::npos || made.empty()) return raw;
    const auto host_of = [&](std::size_t at) -> std::uint32_t {
        for (const Piece& piece : raw.pieces)
            if (at >= piece.guest && at < piece.guest + piece.length)
                return piece.kind == Piece::Kind::verbatim
                           ? piece.host.begin + static_cast<std::uint32_t>(at - piece.guest)
                           : piece.host.begin;
        return raw.pieces.empty() ? 0 : raw.pieces.back().host.end;
    };
    InlayWriter out;
    // [from, to) of the raw text, as its pieces have it.
    const auto copy = [&](std::size_t from, std::size_t to) {
        for (const Piece& piece : raw.pieces) {
            const std::size_t begin = std::max<std::size_t>(from, piece.guest);
            const std::size_t end = std::min<std::size_t>(to, piece.guest + piece.length);
            if (begin >= end) continue;
            const bool verbatim = piece.kind == Piece::Kind::verbatim;
            const Span host =
                verbatim ? Span{host_of(begin), host_of(begin) + static_cast<std::uint32_t>(end - begin)} : piece.host;
            out.add(text.substr(begin, end - begin), host, piece.kind);
        }
    };
    std::size_t at = 0, read = 0;  // in the raw text, in the made one
    while (at < text.size()) {
        const std::size_t open = text.find("${", at);
        const std::size_t stop = std::min(open, text.size());
        if (made.substr(read, stop - at) != text.substr(at, stop - at)) return raw;
        copy(at, stop);
        read += stop - at;
        if (open == std::string_view::npos) break;
        std::size_t close = open + 2;
        for (int depth = 1; close < text.size() && depth > 0; ++close)
            depth += (text[close] == '{') - (text[close] == '}');
        // As far as the next text that is long enough to be told apart.
        const std::size_t next = std::min(text.find("${", close), text.size());
        const std::string_view behind = text.substr(close, std::min<std::size_t>(next - close, 80));
        const std::size_t end = behind.empty() ? (next == text.size() ? made.size() : read) : made.find(behind, read);
        if (end == std::string_view::npos) return raw;
        out.add(made.substr(read, end - read), {host_of(open), host_of(close - 1) + 1}, Piece::Kind::changed);
        read = end;
        at = close;
    }
    return std::move(out.inlay);
}

Inlay inlay_of_json(const Node& node) {
    return inlay_of(node, Dialect::hcl);
}

std::string decode_base64(std::string_view text) {
    std::string out;
    std::uint32_t bits = 0;
    int count = 0;
    std::size_t letters = 0;
    for (const char c : text) {
        int value = -1;
        if (c >= 'A' && c <= 'Z') value = c - 'A';
        if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
        if (c >= '0' && c <= '9') value = c - '0' + 52;
        if (c == '+' || c == '-') value = 62;
        if (c == '/' || c == '_') value = 63;
        if (c == '=' || c == '\n' || c == '\r') continue;
        if (value < 0) return {};
        ++letters;
        bits = (bits << 6) | static_cast<std::uint32_t>(value);
        if (++count == 4) {
            out += static_cast<char>(bits >> 16);
            out += static_cast<char>(bits >> 8);
            out += static_cast<char>(bits);
            bits = 0, count = 0;
        }
    }
    if (count == 3) out += static_cast<char>(bits >> 10), out += static_cast<char>(bits >> 2);
    if (count == 2) out += static_cast<char>(bits >> 4);
    return letters >= 16 && count != 1 ? out : std::string();
}

namespace {

struct ObjectKind {
    std::string_view resource, api_version, kind;
};
constexpr ObjectKind kObjects[] = {
    {"pod", "v1", "Pod"},
    {"deployment", "apps/v1", "Deployment"},
    {"stateful_set", "apps/v1", "StatefulSet"},
    {"daemonset", "apps/v1", "DaemonSet"},
    {"daemon_set", "apps/v1", "DaemonSet"},
    {"job", "batch/v1", "Job"},
    {"cron_job", "batch/v1", "CronJob"},
    {"service", "v1", "Service"},
    {"resource_quota", "v1", "ResourceQuota"},
    {"horizontal_pod_autoscaler", "autoscaling/v2", "HorizontalPodAutoscaler"},
};

// Blocks that may stand several times: a list of the object, under its name there.
constexpr std::pair<std::string_view, std::string_view> kLists[] = {
    {"container", "containers"},
    {"init_container", "initContainers"},
    {"toleration", "tolerations"},
    {"volume", "volumes"},
    {"volume_mount", "volumeMounts"},
    {"port", "ports"},
    {"env", "env"},
    {"env_from", "envFrom"},
    {"metric", "metrics"},
    {"image_pull_secrets", "imagePullSecrets"},
    {"node_selector_term", "nodeSelectorTerms"},
    {"match_expressions", "matchExpressions"},
    {"match_fields", "matchFields"},
    {"topology_spread_constraint", "topologySpreadConstraints"},
};
// Keys below these are the user's.
constexpr std::string_view kMaps[] = {"labels", "annotations", "match_labels", "node_selector",
                                      "limits", "requests",    "hard",         "data"};

std::string camel(std::string_view snake) {
    if (snake == "host_pid") return "hostPID";
    if (snake == "host_ipc") return "hostIPC";
    if (snake == "cluster_ip") return "clusterIP";
    std::string out;
    bool up = false;
    for (const char c : snake) {
        if (c == '_') {
            up = !out.empty();
            continue;
        }
        out += up && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        up = false;
    }
    return out;
}

class ManifestWriter {
public:
    explicit ManifestWriter(const Source& source) : source_(source) {}

    // As it stands: the keys are the object's own.
    void plain(const Node& node) { value(node, false, true); }

    void typed(const Node& block, const ObjectKind& object) {
        put("{\"apiVersion\": \"", block.key_span);
        put(object.api_version, block.key_span);
        put("\", \"kind\": \"", block.key_span);
        put(object.kind, block.key_span);
        put("\"", block.key_span);
        for (const std::string_view part : {"metadata", "spec"})
            if (const Node* node = block.find(part); node && node->is_object()) {
                put(", ", here(*node));
                key(part, *node);
                value(*node, true, false);
            }
        put("}\n", block.key_span);
    }

    std::string text;
    std::vector<Piece> pieces;

private:
    void put(std::string_view bytes, Span host) {
        if (bytes.empty()) return;
        const bool verbatim = source_.text(host) == bytes;
        pieces.push_back({static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(bytes.size()), host,
                          verbatim ? Piece::Kind::verbatim : Piece::Kind::changed});
        text += bytes;
    }
    void key(std::string_view name, const Node& at) {
        put(json_string(name), at.key_span.empty() || at.source != &source_ ? here(at) : at.key_span);
        put(": ", here(at));
    }
    // The default of a variable may stand in another file.
    Span here(const Node& node) const { return node.source == &source_ ? node.span : Span{}; }
    static std::string json_string(std::string_view plain) { return Json(std::string(plain)).dump(0); }

    void scalar(const Node& node) {
        const Span host = here(node);
        if (node.shape == Shape::null) return put("null", host);
        if (!node.known) {
            // What nobody can follow stays open, as in a template.
            const bool blank = node.text.find_first_of(" \t\r\n\"\\") != std::string_view::npos;
            return put("\"${" + std::string(blank ? "unknown" : node.text) + "}\"", host);
        }
        const std::string quoted = node.shape == Shape::string ? json_string(node.text) : std::string(node.text);
        put(quoted, host);
    }

    void value(const Node& node, bool convert, bool users) {
        if (++steps_ > 20'000 || depth_ > 60) return put("null", here(node));
        ++depth_;
        if (node.is_scalar()) {
            scalar(node);
        } else if (node.is_array()) {
            put("[", here(node));
            bool first = true;
            for (const Node& item : children(&node)) {
                if (!std::exchange(first, false)) put(", ", here(item));
                value(item, convert, users);
            }
            put("]", here(node));
        } else {
            object(node, convert, users);
        }
        --depth_;
    }

    void object(const Node& node, bool convert, bool users) {
        put("{", here(node));
        bool first = true;
        std::set<std::string_view> done;
        for (const Node& child : children(&node)) {
            if (child.key == "dynamic" || child.key == "..." || (convert && !done.insert(child.key).second)) continue;
            if (!std::exchange(first, false)) put(", ", here(child));
            if (!convert || users) {
                key(child.key, child);
                value(child, false, true);
                continue;
            }
            const bool map = std::find(std::begin(kMaps), std::end(kMaps), child.key) != std::end(kMaps);
            const auto list = std::find_if(std::begin(kLists), std::end(kLists),
                                           [&](const auto& each) { return each.first == child.key; });
            if (list == std::end(kLists) || !child.is_object()) {
                key(camel(child.key), child);
                value(child, true, map);
                continue;
            }
            key(list->second, child);
            put("[", here(child));
            bool head = true;
            for (const Node& each : children(&node)) {
                if (each.key != child.key) continue;
                if (!std::exchange(head, false)) put(", ", here(each));
                value(each, true, false);
            }
            put("]", here(child));
        }
        put("}", here(node));
    }

    const Source& source_;
    std::size_t steps_ = 0;
    int depth_ = 0;
};

}  // namespace

bool read_terraform_object(File& file, const Node& block, std::string_view type, const ReadOptions& options) {
    if (!type.starts_with("kubernetes_") || file.host) return false;
    ManifestWriter writer(file.source());
    if (type == "kubernetes_manifest") {
        const Node* written = block.find("manifest");
        if (!written || !written->is_object()) return false;
        writer.plain(*written);
    } else {
        std::string_view name = type.substr(std::string_view("kubernetes_").size());
        if (const std::size_t version = name.rfind("_v"); version != std::string_view::npos &&
                                                          version + 2 < name.size() && name[version + 2] >= '0' &&
                                                          name[version + 2] <= '9')
            name = name.substr(0, version);
        const auto known = std::find_if(std::begin(kObjects), std::end(kObjects),
                                        [&](const ObjectKind& each) { return each.resource == name; });
        if (known == std::end(kObjects)) return false;
        writer.typed(block, *known);
    }
    File* guest = read_guest(file, std::move(writer.text), std::move(writer.pieces), {Kind::k8s}, options);
    // Mistakes of the text are this reader's, not the user's.
    if (guest) guest->problems.clear();
    return true;
}

}  // namespace stoker::lint
