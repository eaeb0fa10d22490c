// A map in order whose values are shared by its copies until one of them changes a value: a copy costs a pointer for
// each value, and what is not touched is there once. One thread changes a map; others may read, copy and drop copies of
// it that were made before, with values in common.
#pragma once

#include <atomic>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

namespace stoker {

template <class Key, class Value>
class SharedMap {
    using Slots = std::map<Key, std::shared_ptr<Value>>;

public:
    // What an iterator shows; made when it is asked for.
    struct Entry {
        const Key& first;
        const Value& second;
        const Entry* operator->() const { return this; }
    };
    class const_iterator {
    public:
        using iterator_category = std::bidirectional_iterator_tag;
        using value_type = Entry;
        using reference = Entry;
        using pointer = Entry;
        using difference_type = std::ptrdiff_t;
        const_iterator() = default;
        explicit const_iterator(typename Slots::const_iterator at) : at_(at) {}
        Entry operator*() const { return {at_->first, *at_->second}; }
        Entry operator->() const { return **this; }
        const_iterator& operator++() {
            ++at_;
            return *this;
        }
        const_iterator& operator--() {
            --at_;
            return *this;
        }
        const_iterator operator++(int) { return const_iterator(at_++); }
        const_iterator operator--(int) { return const_iterator(at_--); }
        friend bool operator==(const const_iterator&, const const_iterator&) = default;

    private:
        typename Slots::const_iterator at_{};
    };

    const_iterator begin() const { return const_iterator(slots_.begin()); }
    const_iterator end() const { return const_iterator(slots_.end()); }
    const_iterator lower_bound(const Key& key) const { return const_iterator(slots_.lower_bound(key)); }
    const_iterator upper_bound(const Key& key) const { return const_iterator(slots_.upper_bound(key)); }
    const_iterator find(const Key& key) const { return const_iterator(slots_.find(key)); }
    bool contains(const Key& key) const { return slots_.contains(key); }
    bool empty() const { return slots_.empty(); }
    std::size_t size() const { return slots_.size(); }

    // To be changed: made when it is not there, and copied first when another map has it as well.
    Value& operator[](const Key& key) { return own(slots_[key]); }
    // nullptr when it is not there.
    Value* change(const Key& key) {
        const auto found = slots_.find(key);
        return found == slots_.end() ? nullptr : &own(found->second);
    }
    // Behind all others, which is quick.
    void append(const Key& key, Value value) {
        slots_.emplace_hint(slots_.end(), key, std::make_shared<Value>(std::move(value)));
    }
    void erase(const Key& key) { slots_.erase(key); }
    // The value of another map in place of ours, or none as there.
    void share(const Key& key, const SharedMap& other) {
        const auto found = other.slots_.find(key);
        if (found == other.slots_.end())
            slots_.erase(key);
        else
            slots_[key] = found->second;
    }

private:
    static Value& own(std::shared_ptr<Value>& slot) {
        if (!slot) {
            slot = std::make_shared<Value>();
        } else if (slot.use_count() > 1) {
            slot = std::make_shared<Value>(*slot);
        } else {
            // What the last other owner read of it was read before.
            std::atomic_thread_fence(std::memory_order_acquire);
        }
        return *slot;
    }

    Slots slots_;
};

}  // namespace stoker
