#include "deploy/azure/scheduled_events.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/document.h"
#include "base/text.h"
#include "io/files.h"
#include "io/http/http_client.h"
#include "io/process.h"
#include "io/worker.h"

namespace stoker {
namespace {

constexpr std::size_t kMostEvents = 1000, kMostTold = 10'000;

std::string event_text(const Node& event, std::string_view key) {
    const Node* found = event.find(key);
    return found != nullptr && found->is_scalar() ? found->text : std::string();
}

class ThreadPoller final : public EventPoller {
public:
    ThreadPoller(EventPollerOptions options, std::unique_ptr<HttpClient> http, Tell tell)
        : options_(std::move(options)),
          http_(std::move(http)),
          tell_(std::move(tell)),
          thread_(masked_thread("stoker-events", [this] { poll(); })) {}
    ~ThreadPoller() override {
        {
            std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }
    std::uint64_t answers() const override { return answers_; }

private:
    Result<std::string> ask(const std::string& target) {
        // The first call switches the service on, which takes up to two minutes: asked again and again rather than
        // waited for, so that the server can end meanwhile.
        HttpCall call{.target = target, .timeout_s = answers_ == 0 ? 5.0 : 2.0};
        call.headers.add("Metadata", "true");
        TRY(HttpResponse response, http_->call(call));
        if (response.status != 200)
            return Error(ErrorKind::unavailable, fmt::format("{} answered {}", target, response.status));
        return std::move(response.body);
    }

    Status look() {
        if (vm_.empty()) {
            TRY(const std::string text, ask("/metadata/instance/compute?api-version=2021-02-01"));
            TRY(const Document document, Document::parse_json(text, "instance metadata"));
            vm_ = event_text(document.root(), "name");
            if (vm_.empty()) return Error(ErrorKind::invalid, "the instance metadata has no name");
        }
        TRY(const std::string text, ask("/metadata/scheduledevents?api-version=2020-07-01"));
        TRY(const auto events, parse_scheduled_events(text, "scheduled events"));
        ++answers_;
        for (const auto& notice : memory_.notices(events, vm_, wall_clock_us())) tell_(notice);
        return done();
    }

    void poll() {
        double pause_s = options_.every_s;
        for (;;) {
            pause_s = look() ? options_.every_s : std::min(options_.longest_pause_s, 2 * pause_s);
            std::unique_lock lock(mutex_);
            if (wake_.wait_for(lock, std::chrono::duration<double>(pause_s), [&] { return stopping_; })) return;
        }
    }

    EventPollerOptions options_;
    std::unique_ptr<HttpClient> http_;
    Tell tell_;
    std::string vm_;
    EventMemory memory_;
    std::atomic<std::uint64_t> answers_ = 0;
    std::mutex mutex_;  // guards stopping_
    std::condition_variable wake_;
    bool stopping_ = false;
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace

bool ScheduledEvent::takes_machine() const {
    return type == "Reboot" || type == "Redeploy" || type == "Preempt" || type == "Terminate";
}

std::optional<std::int64_t> parse_rfc1123_us(std::string_view text) {
    std::tm time{};
    const std::string copy(text);
    const char* rest = ::strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S", &time);
    if (rest == nullptr || trim(rest) != "GMT") return std::nullopt;
    return static_cast<std::int64_t>(::timegm(&time)) * 1'000'000;
}

Result<std::vector<ScheduledEvent>> parse_scheduled_events(std::string_view json, const std::string& name) {
    TRY(const Document document, Document::parse_json(json, name, {.max_bytes = 1 << 20}));
    const Node* list = document.root().is_mapping() ? document.root().find("Events") : nullptr;
    if (list == nullptr || !list->is_sequence())
        return Error(ErrorKind::invalid, "expected an object with the list Events", {name, 1, 1});
    std::vector<ScheduledEvent> events;
    for (const auto& item : list->items) {
        if (!item->is_mapping() || events.size() == kMostEvents) continue;
        ScheduledEvent event{.id = event_text(*item, "EventId"),
                             .type = event_text(*item, "EventType"),
                             .resources = {},
                             .started = event_text(*item, "EventStatus") == "Started",
                             .not_before_us = parse_rfc1123_us(event_text(*item, "NotBefore")).value_or(0),
                             .description = printable(event_text(*item, "Description")),
                             .source = event_text(*item, "EventSource")};
        if (event.id.empty() || event.type.empty())
            return Error(ErrorKind::invalid, "an event without EventId or EventType", item->pos);
        if (const Node* resources = item->find("Resources"); resources != nullptr)
            for (const auto& resource : resources->items) event.resources.push_back(resource->text);
        events.push_back(std::move(event));
    }
    return events;
}

std::vector<EventMemory::Notice> EventMemory::notices(const std::vector<ScheduledEvent>& events, const std::string& vm,
                                                      std::int64_t now_us) {
    std::vector<Notice> notices;
    for (const ScheduledEvent& event : events) {
        const bool ours = std::any_of(event.resources.begin(), event.resources.end(),
                                      [&](const std::string& name) { return equals_ignore_case(name, vm); });
        if (!ours || !event.takes_machine() || told_.contains(event.id)) continue;
        if (told_.size() == kMostTold) told_.clear();  // told twice does no harm
        told_.insert(event.id);
        const double seconds = event.not_before_us == 0 ? 0 : static_cast<double>(event.not_before_us - now_us) / 1e6;
        notices.push_back({.event = event.id,
                           .detail = fmt::format("Azure: {}{}{}", event.type, event.description.empty() ? "" : ", ",
                                                 event.description),
                           .seconds = std::max(0.0, seconds)});
    }
    return notices;
}

Result<std::unique_ptr<EventPoller>> EventPoller::start(EventPollerOptions options, Tell tell) {
    TRY(auto http, HttpClient::make({.url = options.url, .connect_timeout_s = 2}));
    return std::unique_ptr<EventPoller>(
        std::make_unique<ThreadPoller>(std::move(options), std::move(http), std::move(tell)));
}

// https://github.com/canonical/cloud-init and walinuxagent know Azure by this tag too.
bool on_azure(const std::string& root) {
    const auto tag = read_file(root + "/sys/class/dmi/id/chassis_asset_tag", 4096);
    return tag && trim(*tag) == "7783-7084-3265-9085-8269-3286-77";
}

}  // namespace stoker
