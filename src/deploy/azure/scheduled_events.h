// Scheduled events of Azure: the platform's word that this VM will be rebooted, moved or taken.
// https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events (api-version 2020-07-01): polled once a
// second at a link-local address; Preempt comes at least 30 s ahead, best effort, Terminate 5 to 15 min, Redeploy 10
// min, Reboot and Freeze 15 min; a hardware failure may come without any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

struct ScheduledEvent {
    std::string id;
    std::string type;                    // Freeze, Reboot, Redeploy, Preempt, Terminate
    std::vector<std::string> resources;  // names of VMs
    bool started = false;
    std::int64_t not_before_us = 0;  // 0: it may begin at once
    std::string description, source;
    // The processes of the VM will not live through it. A freeze pauses them for seconds.
    bool takes_machine() const;
};

// Keys that are not known are passed over: the platform adds some.
Result<std::vector<ScheduledEvent>> parse_scheduled_events(std::string_view json, const std::string& name);
// "Mon, 19 Sep 2016 18:29:47 GMT"; nothing when it is none.
std::optional<std::int64_t> parse_rfc1123_us(std::string_view text);

// What a VM is to be told, once for each event that means it.
class EventMemory {
public:
    struct Notice {
        std::string event, detail;
        double seconds = 0;  // from now
    };
    std::vector<Notice> notices(const std::vector<ScheduledEvent>& events, const std::string& vm, std::int64_t now_us);

private:
    std::set<std::string> told_;
};

struct EventPollerOptions {
    std::string url = "http://169.254.169.254";
    double every_s = 1, longest_pause_s = 10;
};

// A thread that asks and tells. What cannot be reached is asked again, ever more seldom.
class EventPoller {
public:
    using Tell = std::function<void(const EventMemory::Notice&)>;
    static Result<std::unique_ptr<EventPoller>> start(EventPollerOptions options, Tell tell);
    virtual ~EventPoller() = default;  // ends the thread
    virtual std::uint64_t answers() const = 0;
};

// Whether this machine is a VM of Azure, by the asset tag of its chassis.
bool on_azure(const std::string& root = "/");

}  // namespace stoker
