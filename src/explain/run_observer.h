// The observer of a server: told by the engine which ranks live, it writes their series to FOLDER/series, and beside
// them how a run that has ended is explained.
#pragma once

#include <memory>

#include "explain/explanation_keeper.h"
#include "govern/price_book.h"
#include "observe/watch.h"
#include "run/engine/engine.h"

namespace stoker {

// What the state says that lives, and what is to be asked of its engine.
struct LiveGang {
    RunId run;
    std::uint32_t attempt = 0;
    MeasuredGang gang;
};
std::vector<LiveGang> live_gangs(const State& state, const std::string& engine_folder);

// Goes before the engine does.
class RunObserver {
public:
    static Result<std::unique_ptr<RunObserver>> start(Engine& engine, PriceBook prices = {});
    ~RunObserver();
    RunObserver(const RunObserver&) = delete;
    RunObserver& operator=(const RunObserver&) = delete;

    const std::shared_ptr<SeriesStore>& series() const { return series_; }
    const Observer& observer() const { return *observer_; }

private:
    struct Link;
    RunObserver() = default;
    std::shared_ptr<SeriesStore> series_;
    std::shared_ptr<Link> link_;
    std::shared_ptr<Observer> observer_;
    std::shared_ptr<void> watch_;
    std::unique_ptr<ExplanationKeeper> keeper_;
};

}  // namespace stoker
