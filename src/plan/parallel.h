// Runs independent pieces of work on a few threads. Each piece writes only its own result, so the outcome does not
// depend on how many threads there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace stoker {

template <typename Work>
void for_each_index(std::size_t count, int threads, const Work& work) {
    if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const auto workers = std::min<std::size_t>(static_cast<std::size_t>(threads), count);
    if (workers <= 1) {
        for (std::size_t i = 0; i < count; ++i) work(i);
        return;
    }
    std::atomic<std::size_t> next{0};
    auto loop = [&] {
        for (std::size_t i = next++; i < count; i = next++) work(i);
    };
    std::vector<std::thread> pool;
    for (std::size_t i = 1; i < workers; ++i) pool.emplace_back(loop);
    loop();
    for (std::thread& thread : pool) thread.join();
}

}  // namespace stoker
