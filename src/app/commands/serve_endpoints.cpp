#include "app/commands/serve_endpoints.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "base/api_time.h"
#include "io/clock.h"
#include "io/process.h"
#include "io/random_bytes.h"
#include "io/worker.h"
#include "serve/endpoints/keeper.h"

namespace stoker {
namespace {

constexpr auto kTick = std::chrono::milliseconds(50);
constexpr double kLookAtFolderS = 0.25, kTellEveryS = 1;

}  // namespace

struct EndpointService::State {
    EndpointFolder folder;
    ConnectToServer connect;
    const bool here;
    std::atomic<bool> stopping{false};
    std::atomic<std::uint64_t> version{1};
    mutable std::mutex mutex;  // guards boards
    std::condition_variable wake;
    Boards boards;
    std::string url;  // guarded as well
    std::thread thread;

    struct Kept {
        std::unique_ptr<ReplicaHost> host;
        std::unique_ptr<EndpointKeeper> keeper;
        std::map<int, double> ready_told{}, token_told{};  // by revision: what its file has
        bool removed = false;                              // its file is gone: it is kept until its replicas are
    };
    std::map<std::string, Kept> kept;  // of the thread
    std::string told;
    UniqueFd kept_by_us;  // held: this gateway keeps them

    State(std::string path, ConnectToServer to, bool same_machine)
        : folder(std::move(path)), connect(std::move(to)), here(same_machine) {}

    void say_once(const std::string& words) {
        if (words == told || words.empty()) return;
        told = words;
        fmt::print(stderr, "{}", words);
    }

    // Two that keep the same replicas would start and end each other's.
    bool alone() {
        if (kept_by_us) return true;
        UniqueFd file(::open((folder.path() + "/.keeper").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
        if (!file) return true;  // no such folder: there is no endpoint, and nobody keeps one
        if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
            say_once(fmt::format(
                "another gateway keeps the endpoints of {}; until it ends, who asks this one is told to come again\n",
                folder.path()));
            return false;
        }
        kept_by_us = std::move(file);
        return true;
    }

    bool look() {
        if (!alone()) return false;
        auto endpoints = folder.list();
        if (!endpoints) {
            say_once(endpoints.error().text() + "the endpoints go on as they were\n");
            return true;
        }
        told.clear();
        std::set<std::string> there;
        for (Endpoint& endpoint : *endpoints) {
            there.insert(endpoint.name);
            Kept& own = kept[endpoint.name];
            own.removed = false;
            if (own.keeper) {
                own.keeper->set(std::move(endpoint));
                continue;
            }
            own.host = make_replica_runs(connect, here);
            const std::uint64_t seed = std::strtoull(random_hex(8).c_str(), nullptr, 16);
            own.keeper = std::make_unique<EndpointKeeper>(std::move(endpoint), *own.host, seed);
        }
        for (auto& [name, own] : kept) {
            if (there.contains(name) || own.removed) continue;
            own.removed = true;
            own.keeper->set(Endpoint{.name = name, .least = 0, .stopped = true});
        }
        Boards now;
        for (const auto& [name, own] : kept)
            if (!own.removed) now.emplace(name, own.keeper->board());
        const std::lock_guard lock(mutex);
        if (now == boards) return true;
        boards = std::move(now);
        ++version;
        return true;
    }

    void run() {
        double next_look_s = 0, next_tell_s = 0;
        std::uint64_t seen = 0;
        while (!stopping) {
            const double now_s = monotonic_seconds();
            if (now_s >= next_look_s) {
                next_look_s = now_s + kLookAtFolderS;
                if (const std::uint64_t version_now = folder.version(); version_now != seen) {
                    if (look()) seen = version_now;
                }
            }
            for (auto& [name, own] : kept) own.keeper->tick(monotonic_seconds());
            std::erase_if(kept, [](const auto& each) { return each.second.removed && each.second.keeper->empty(); });
            if (now_s >= next_tell_s) {
                next_tell_s = now_s + kTellEveryS;
                tell(now_s);
            }
            std::unique_lock lock(mutex);
            wake.wait_for(lock, kTick, [this] { return stopping.load(); });
        }
    }

    // What is seen once in the life of a revision goes into the file of the endpoint, which outlives the gateway.
    void keep_firsts(const std::string& name, Kept& own, double now_s) {
        const std::map<int, double> ready = own.keeper->first_ready(), token = own.keeper->board()->first_tokens();
        if (ready == own.ready_told && token == own.token_told) return;
        const auto wall_us = [&](double at_s) {
            return wall_clock_us() - static_cast<std::int64_t>((now_s - at_s) * 1e6);
        };
        const auto earlier = [&](EndpointRevision& revision, const std::map<int, double>& seen, std::string& at) {
            const auto found = seen.find(revision.number);
            if (found == seen.end()) return;
            const std::int64_t us = wall_us(found->second), there = parse_rfc3339(at).value_or(0);
            // Before it was deployed: of another one that had its name.
            if (us >= parse_rfc3339(revision.created_at).value_or(0) && (there == 0 || us < there)) at = rfc3339(us);
        };
        const auto written = folder.change(name, false, [&](Endpoint& there) {
            for (EndpointRevision& revision : there.revisions) {
                earlier(revision, ready, revision.first_ready_at);
                earlier(revision, token, revision.first_token_at);
            }
            return done();
        });
        if (!written) return say_once(written.error().text());
        own.ready_told = ready;
        own.token_told = token;
    }

    void tell(double now_s) {
        for (auto& [name, own] : kept) {
            if (own.removed) continue;
            EndpointStatus status = own.keeper->status(now_s);
            status.updated_at = rfc3339(wall_clock_us());
            {
                const std::lock_guard lock(mutex);
                status.gateway = url;
            }
            if (const auto written = folder.write_status(status); !written) say_once(written.error().text());
            keep_firsts(name, own, now_s);
        }
    }
};

EndpointService::EndpointService(std::string folder, ConnectToServer connect, bool here)
    : state_(std::make_unique<State>(std::move(folder), std::move(connect), here)) {
    state_->look();
    state_->thread = masked_thread("endpoints", [this] { state_->run(); });
}

EndpointService::~EndpointService() {
    state_->stopping = true;
    state_->wake.notify_all();
    if (state_->thread.joinable()) state_->thread.join();
}

EndpointService::Boards EndpointService::boards() const {
    const std::lock_guard lock(state_->mutex);
    return state_->boards;
}

void EndpointService::listens_at(std::string url) {
    const std::lock_guard lock(state_->mutex);
    state_->url = std::move(url);
}

std::uint64_t EndpointService::version() const {
    return state_->version;
}

bool EndpointService::there(const std::string& name) const {
    return is_endpoint_name(name) && state_->folder.read(name).ok();
}

}  // namespace stoker
