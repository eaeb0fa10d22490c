// from args import EXTRA, import settings: values and functions of modules that lie beside the file.
#include <algorithm>

#include "base/text.h"
#include "lint/python/python_reader.h"

namespace stoker::lint {

namespace {

constexpr std::size_t kMostModules = 8, kMostModuleBytes = 256u << 10;
constexpr int kMostImportDepth = 2;

// As if all of it stood at one place of the file that imports it.
void moved_to(PyValue& value, Span span) {
    value.span = span;
    value.origin = span.begin;
    for (PyPiece& piece : value.pieces) piece.host = span, piece.verbatim = false;
    for (PyValue& item : value.items) moved_to(item, span);
    for (PyEntry& entry : value.entries) moved_to(entry.second, span);
}

std::string as_path(std::string_view module) {
    std::string path(module);
    std::replace(path.begin(), path.end(), '.', '/');
    return path;
}

}  // namespace

PythonReader::PythonReader(const PythonReader& importer, std::string text, std::string folder)
    : file_(importer.file_),
      options_(importer.options_),
      own_text_(std::move(text)),
      all_(own_text_),
      folder_(std::move(folder)),
      import_depth_(importer.import_depth_ + 1) {
    tokens_ = python_tokens(all_, {0, static_cast<std::uint32_t>(all_.size())});
    learn_functions();
    scopes_.emplace_back();
    block(0, static_cast<std::uint32_t>(tokens_.lines.size()), nullptr, 0);
    scopes_.resize(1);
}

// `module` as it is written: "args", "launcher.args", ".args", "..common". The file's own folder is where the program
// looks first; a package is named from a folder above.
PythonReader* PythonReader::module(std::string_view name) {
    if (const auto it = modules_.find(name); it != modules_.end()) return it->second.get();
    if (name.empty() || !options_.neighbour || import_depth_ >= kMostImportDepth || modules_.size() >= kMostModules)
        return nullptr;
    std::unique_ptr<PythonReader>& made = modules_[std::string(name)];
    std::vector<std::string> stems;
    std::string_view rest = name;
    std::string up;
    while (rest.starts_with('.')) {
        if (rest.size() < name.size()) up += "../";
        rest.remove_prefix(1);
    }
    if (rest.empty()) return nullptr;
    stems.push_back(up + as_path(rest));
    if (rest.size() == name.size() && rest.find('.') != std::string_view::npos)
        for (int level = 1; level <= 2; ++level) stems.push_back((level == 1 ? "../" : "../../") + as_path(rest));
    for (const std::string& stem : stems)
        for (const std::string_view end : {".py", "/__init__.py"}) {
            const std::string path = folder_ + stem + std::string(end);
            auto text = options_.neighbour(path);
            if (!text || text->size() > kMostModuleBytes || text->find('\0') != std::string::npos) continue;
            made.reset(new PythonReader(*this, std::move(*text), path.substr(0, path.rfind('/') + 1)));
            return made.get();
        }
    return nullptr;
}

void PythonReader::take_from(PythonReader& from, const std::string& name, const std::string& as, Span span) {
    if (from.functions_.contains(name)) {
        imported_.insert_or_assign(as, std::pair(&from, name));
        return;
    }
    const auto it = from.scopes_.front().values.find(name);
    if (it == from.scopes_.front().values.end()) return;
    PyValue value = it->second;
    moved_to(value, span);
    told_.insert(value.origin);  // what it is for is seen where it stands
    set(as, std::move(value));
}

// from a.b import c as d, e; import a as b.
void PythonReader::import_statement(Cursor in) {
    const bool chosen = take(in, "from");
    if (!chosen) take(in, "import");
    const auto dotted = [&] {
        std::string name;
        while (!in.end() && !is(in, "import") && !is(in, "as") && !is(in, ",")) {
            name += text_of(in);
            ++in.at;
        }
        return name;
    };
    const auto renamed = [&](std::string name) {
        if (take(in, "as") && !in.end()) {
            name = text_of(in);
            ++in.at;
        }
        return name;
    };
    if (!chosen) {
        while (!in.end()) {
            const Span span = (*in.tokens)[in.at].span;
            const std::string name = dotted(), as = renamed(name);
            if (PythonReader* from = module(name)) {
                for (const auto& [each, function] : from->functions_) take_from(*from, each, as + "." + each, span);
                for (const auto& [each, value] : from->scopes_.front().values)
                    if (each.find('.') == std::string::npos) take_from(*from, each, as + "." + each, span);
            }
            if (!take(in, ",")) return;
        }
        return;
    }
    const std::string name = dotted();
    if (!take(in, "import")) return;
    take(in, "(");
    PythonReader* from = module(name);
    while (!in.end() && !is(in, ")")) {
        const Span span = (*in.tokens)[in.at].span;
        const std::string what(text_of(in));
        ++in.at;
        const std::string as = renamed(what);
        PythonReader* whole = nullptr;  // from . import args
        if (name.find_first_not_of('.') == std::string::npos) whole = module(name + what);
        if (whole)
            for (const auto& [each, value] : whole->scopes_.front().values)
                if (each.find('.') == std::string::npos) take_from(*whole, each, as + "." + each, span);
        if (whole)
            for (const auto& [each, function] : whole->functions_) take_from(*whole, each, as + "." + each, span);
        if (from) take_from(*from, what, as, span);
        if (!take(in, ",")) break;
    }
}

PyValue PythonReader::imported_function(PythonReader& from, const std::string& name, const Call& call, int depth) {
    const auto function = from.functions_.find(name);
    if (function == from.functions_.end() || function->second.method) return PyValue::unknown(call.span);
    from.steps_ = steps_;
    PyValue value = from.own_function(function->second, call, depth);
    steps_ = from.steps_;
    moved_to(value, call.span);
    return value;
}

}  // namespace stoker::lint
