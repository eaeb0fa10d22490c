// RecordTable<T>: the template behind base/table.h. The readers of single values are plain functions in table.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <type_traits>
#include <utility>

#include "base/table.h"

namespace stoker {
namespace table_detail {

// Each returns whether `out` was set; otherwise a problem with the place of the value was added.
bool read_number(const Node& node, const FieldInfo& info, double& out,
                 Problems& problems);  // count, number, whole number
bool read_bytes(const Node& node, const FieldInfo& info, double& out, Problems& problems);
bool read_seconds(const Node& node, const FieldInfo& info, double& out, Problems& problems);
bool read_usd(const Node& node, const FieldInfo& info, Usd& out, Problems& problems);
bool read_text(const Node& node, const FieldInfo& info, std::string& out, Problems& problems);
bool read_flag(const Node& node, const FieldInfo& info, bool& out, Problems& problems);
bool read_choice(const Node& node, const FieldInfo& info, std::size_t& out, Problems& problems);
bool expect_mapping(const Node& node, const RecordInfo& info, std::string_view key, Problems& problems);
// The items of a list; a single scalar stands for a list of one. Anything else is a problem and no items.
std::vector<const Node*> items_of(const Node& node, const FieldInfo& info, bool scalar_is_item, Problems& problems);
// The record that all others being read on this thread lie in: where a key that stands in the wrong one belongs.
class OutermostRecord {
public:
    explicit OutermostRecord(const RecordInfo& info);
    ~OutermostRecord();
    OutermostRecord(const OutermostRecord&) = delete;
    OutermostRecord& operator=(const OutermostRecord&) = delete;

private:
    bool own_;
};
void report_unknown_keys(const Node& node, const RecordInfo& info, Problems& problems);
void report_missing(const Node& node, const RecordInfo& info, const FieldInfo& field, Problems& problems);

template <class M>
struct Unwrapped {
    using type = M;
};
template <class M>
struct Unwrapped<std::optional<M>> {
    using type = M;
};
template <class M>
using unwrapped_t = typename Unwrapped<M>::type;

template <class M>
struct IsQuantity : std::false_type {};
template <class Tag>
struct IsQuantity<Quantity<Tag>> : std::true_type {};

template <class M>
concept Number = IsQuantity<unwrapped_t<M>>::value ||
    (std::is_arithmetic_v<unwrapped_t<M>> && !std::is_same_v<unwrapped_t<M>, bool>);
template <class M, class V>
concept Holds = std::is_same_v<unwrapped_t<M>, V>;

template <class M>
void assign_number(M& member, double value) {
    member = static_cast<unwrapped_t<M>>(value);
}

template <class T>
concept KeepsPositions =
    std::is_same_v<std::remove_cvref_t<decltype(std::declval<T&>().at)>, std::map<std::string, SourcePos>>;

}  // namespace table_detail

// The fields of T in the order of the reference page. Members may be plain or std::optional; a plain member that is not
// written keeps the value it has in a default-constructed T. A key whose value is null counts as not written.
// If T has a member `std::map<std::string, SourcePos> at`, read() fills it with the place of every value, under its
// key, and with the place of the record itself under the empty key, so that later checks can point at them. Copies
// share their content until one of them is extended; a nested table need not outlive the table that uses it.
template <class T>
class RecordTable {
public:
    using Custom = std::function<void(const Node&, T&, Problems&)>;
    using Shorthand = std::function<bool(const Node&, T&, Problems&)>;

    RecordTable(std::string name, std::string description) {
        state_->info->name = std::move(name);
        state_->info->description = std::move(description);
    }

    // A number from people: 150B, 8192. Integer members accept whole numbers only. low and high equal: no bounds beyond
    // what a count has (not negative, at most 1e24).
    template <table_detail::Number M, class C>
    RecordTable& count(std::string key, M C::*member, std::string description, std::string example, double low = 0,
                       double high = 0) {
        return numeric(std::move(key), member, std::move(description), std::move(example), low, high, "count");
    }
    // A plain number such as 0.9, which may be negative and has no suffix.
    template <table_detail::Number M, class C>
    RecordTable& number(std::string key, M C::*member, std::string description, std::string example, double low = 0,
                        double high = 0) {
        return numeric(std::move(key), member, std::move(description), std::move(example), low, high, "number");
    }
    // Bytes or double; bounds in bytes.
    template <class M, class C>
    requires table_detail::Holds<M, Bytes> || table_detail::Holds<M, double> RecordTable& bytes(
        std::string key, M C::*member, std::string description, std::string example, double low = 0, double high = 0) {
        return add(make(std::move(key), "bytes", std::move(description), std::move(example), low, high),
                   [member](const Node& node, const FieldInfo& info, T& record, Problems& problems) {
                       double value = 0;
                       if (table_detail::read_bytes(node, info, value, problems))
                           table_detail::assign_number(record.*member, value);
                   });
    }
    // Seconds or double; bounds in seconds.
    template <class M, class C>
    requires table_detail::Holds<M, Seconds> || table_detail::Holds<M, double> RecordTable& seconds(
        std::string key, M C::*member, std::string description, std::string example, double low = 0, double high = 0) {
        return add(make(std::move(key), "duration", std::move(description), std::move(example), low, high),
                   [member](const Node& node, const FieldInfo& info, T& record, Problems& problems) {
                       double value = 0;
                       if (table_detail::read_seconds(node, info, value, problems))
                           table_detail::assign_number(record.*member, value);
                   });
    }
    // Bounds in dollars.
    template <table_detail::Holds<Usd> M, class C>
    RecordTable& usd(std::string key, M C::*member, std::string description, std::string example, double low = 0,
                     double high = 0) {
        return simple<Usd>(make(std::move(key), "money", std::move(description), std::move(example), low, high), member,
                           table_detail::read_usd);
    }
    template <table_detail::Holds<std::string> M, class C>
    RecordTable& text(std::string key, M C::*member, std::string description, std::string example = {}) {
        return simple<std::string>(make(std::move(key), "text", std::move(description), std::move(example)), member,
                                   table_detail::read_text);
    }
    template <table_detail::Holds<bool> M, class C>
    RecordTable& flag(std::string key, M C::*member, std::string description, std::string example = "true") {
        return simple<bool>(make(std::move(key), "yes/no", std::move(description), std::move(example)), member,
                            table_detail::read_flag);
    }
    // Words for values, compared without regard to case and to - and _. The first word of a value is the one to
    // document.
    template <class M, class C>
    RecordTable& choice(std::string key, M C::*member,
                        std::vector<std::pair<std::string, table_detail::unwrapped_t<M>>> choices,
                        std::string description, std::string example = {}) {
        FieldInfo info = make(std::move(key), "one of", std::move(description), std::move(example));
        for (const auto& each : choices) info.choices.push_back(each.first);
        if (info.example.empty() && !choices.empty()) info.example = choices.front().first;
        return add(std::move(info), [member, choices = std::move(choices)](const Node& node, const FieldInfo& field,
                                                                           T& record, Problems& problems) {
            std::size_t index = 0;
            if (table_detail::read_choice(node, field, index, problems)) record.*member = choices[index].second;
        });
    }
    template <class V, class C>
    RecordTable& list_of_choice(std::string key, std::vector<V> C::*member,
                                std::vector<std::pair<std::string, V>> choices, std::string description,
                                std::string example = {}) {
        FieldInfo info = make(std::move(key), "list of one of", std::move(description), std::move(example));
        for (const auto& each : choices) info.choices.push_back(each.first);
        return add(std::move(info), [member, choices = std::move(choices)](const Node& node, const FieldInfo& field,
                                                                           T& record, Problems& problems) {
            for (const Node* item : table_detail::items_of(node, field, true, problems)) {
                std::size_t index = 0;
                if (table_detail::read_choice(*item, field, index, problems))
                    (record.*member).push_back(choices[index].second);
            }
        });
    }
    // A single text stands for a list of one.
    template <class C>
    RecordTable& list_of_text(std::string key, std::vector<std::string> C::*member, std::string description,
                              std::string example = {}) {
        return add(make(std::move(key), "list of text", std::move(description), std::move(example)),
                   [member](const Node& node, const FieldInfo& info, T& record, Problems& problems) {
                       for (const Node* item : table_detail::items_of(node, info, true, problems)) {
                           std::string value;
                           if (table_detail::read_text(*item, info, value, problems))
                               (record.*member).push_back(std::move(value));
                       }
                   });
    }
    // M is U or std::optional<U>.
    template <class M, class C, class U>
    requires table_detail::Holds<M, U> RecordTable& record(std::string key, M C::*member, const RecordTable<U>& table,
                                                           std::string description) {
        FieldInfo info = make(std::move(key), table.info().name, std::move(description), {});
        info.record = table.shared_info();
        return add(std::move(info),
                   [member, table](const Node& value, const FieldInfo&, T& record, Problems& problems) {
                       record.*member = table.read(value, problems);
                   });
    }
    template <class U, class C>
    RecordTable& list_of(std::string key, std::vector<U> C::*member, const RecordTable<U>& table,
                         std::string description = {}) {
        FieldInfo info = make(std::move(key), "list of " + table.info().name, std::move(description), {});
        if (info.description.empty()) info.description = table.info().description;
        info.record = table.shared_info();
        return add(std::move(info),
                   [member, table](const Node& value, const FieldInfo& field, T& record, Problems& problems) {
                       for (const Node* item : table_detail::items_of(value, field, false, problems))
                           (record.*member).push_back(table.read(*item, problems));
                   });
    }
    // For a form that none of the above reads. The function adds its own problems, with the place of the node.
    RecordTable& custom(std::string key, FieldInfo info, Custom reader) {
        info.key = std::move(key);
        return add(std::move(info),
                   [reader = std::move(reader)](const Node& node, const FieldInfo&, T& record, Problems& problems) {
                       reader(node, record, problems);
                   });
    }
    // The field added last must be written.
    RecordTable& required() {
        own();
        CHECK(!state_->info->fields.empty());
        state_->info->fields.back().required = true;
        return *this;
    }
    // What the field added last is called elsewhere: "batch_size" for batch.global_examples.
    RecordTable& other_names(std::vector<std::string> names) {
        own();
        CHECK(!state_->info->fields.empty());
        state_->info->fields.back().other_names = std::move(names);
        return *this;
    }
    // A value other than a mapping that stands for the whole record, such as a model's name for a model. `reader`
    // returns false when it does not know the form either, having added no problem.
    RecordTable& shorthand(std::string in_words, Shorthand reader) {
        own();
        state_->info->shorthand.push_back(std::move(in_words));
        state_->shorthands.push_back(std::move(reader));
        return *this;
    }

    // Reads all that can be read; every problem is added with its place, none stops the reading.
    T read(const Node& node, Problems& problems) const {
        T record{};
        const RecordInfo& info = *state_->info;
        const table_detail::OutermostRecord outermost(info);
        if constexpr (table_detail::KeepsPositions<T>) record.at.emplace(std::string(), node.pos);
        if (!node.is_mapping()) {
            for (const Shorthand& shorthand : state_->shorthands)
                if (shorthand(node, record, problems)) return record;
        }
        if (!table_detail::expect_mapping(node, info, info.name, problems)) return record;
        for (std::size_t i = 0; i < info.fields.size(); ++i) {
            const FieldInfo& field = info.fields[i];
            const Node* value = node.find(field.key);
            if (value == nullptr || value->kind == NodeKind::null) {
                if (field.required && !field.asked)
                    table_detail::report_missing(value == nullptr ? node : *value, info, field, problems);
                continue;
            }
            if constexpr (table_detail::KeepsPositions<T>) record.at[field.key] = value->pos;
            state_->readers[i](*value, field, record, problems);
        }
        table_detail::report_unknown_keys(node, info, problems);
        return record;
    }

    const RecordInfo& info() const { return *state_->info; }
    std::shared_ptr<const RecordInfo> shared_info() const { return state_->info; }

private:
    using Reader = std::function<void(const Node&, const FieldInfo&, T&, Problems&)>;
    struct State {
        std::shared_ptr<RecordInfo> info = std::make_shared<RecordInfo>();
        std::vector<Reader> readers;  // one for each field of info
        std::vector<Shorthand> shorthands;
    };

    static FieldInfo make(std::string key, std::string type, std::string description, std::string example,
                          double low = 0, double high = 0) {
        FieldInfo info;
        info.key = std::move(key);
        info.type = std::move(type);
        info.description = std::move(description);
        info.example = std::move(example);
        info.low = low;
        info.high = high;
        return info;
    }
    template <class M, class C>
    RecordTable& numeric(std::string key, M C::*member, std::string description, std::string example, double low,
                         double high, std::string type) {
        if (std::is_integral_v<table_detail::unwrapped_t<M>>) type = "whole number";
        FieldInfo info = make(std::move(key), std::move(type), std::move(description), std::move(example), low, high);
        if constexpr (std::is_integral_v<table_detail::unwrapped_t<M>>) {
            // The conversion of an out-of-range double is undefined: the type's own range is the outermost bound.
            if (info.low == info.high)
                info.high = sizeof(table_detail::unwrapped_t<M>) < 8 ? 2147483647.0 : 9007199254740992.0;
        }
        return add(std::move(info), [member](const Node& node, const FieldInfo& field, T& record, Problems& problems) {
            double value = 0;
            if (table_detail::read_number(node, field, value, problems))
                table_detail::assign_number(record.*member, value);
        });
    }
    template <class V, class M, class C>
    RecordTable& simple(FieldInfo info, M C::*member, bool (*reader)(const Node&, const FieldInfo&, V&, Problems&)) {
        return add(std::move(info),
                   [member, reader](const Node& node, const FieldInfo& field, T& record, Problems& problems) {
                       V value{};
                       if (reader(node, field, value, problems)) record.*member = std::move(value);
                   });
    }
    RecordTable& add(FieldInfo info, Reader reader) {
        own();
        state_->info->fields.push_back(std::move(info));
        state_->readers.push_back(std::move(reader));
        return *this;
    }
    void own() {
        if (state_.use_count() == 1) return;
        state_ = std::make_shared<State>(*state_);
        state_->info = std::make_shared<RecordInfo>(*state_->info);
    }

    std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace stoker
