// Memory for what lives as long as one file: many small things that are never given back one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace stoker::lint {

class Arena {
public:
    // `alignment`: a power of two, no more than that of max_align_t.
    void* take(std::size_t bytes, std::size_t alignment) {
        std::size_t at = (used_ + alignment - 1) & ~(alignment - 1);
        if (at + bytes > size_) {
            // A quarter of what is there already, so that little is left over in a large file and in a small one.
            size_ = std::max(bytes, std::clamp(total_ / 4, kLeast, kMost));
            total_ += size_;
            blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(size_));
            at = 0;
        }
        used_ = at + bytes;
        return blocks_.back().get() + at;
    }
    std::string_view keep(std::string_view text) {
        if (text.empty()) return {};
        char* const to = static_cast<char*>(take(text.size(), 1));
        std::memcpy(to, text.data(), text.size());
        return {to, text.size()};
    }

private:
    static constexpr std::size_t kLeast = 512, kMost = 64u << 10;

    std::vector<std::unique_ptr<std::byte[]>> blocks_;
    std::size_t used_ = 0, size_ = 0, total_ = 0;
};

}  // namespace stoker::lint
