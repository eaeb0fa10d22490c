// Whole published trainings against their predicted steady rate: GPU-hours of model cards have restarts, evaluation,
// slow starts and tuning in them. The factor between the two is fitted on one half of the sources and judged on the
// other.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/style.h"
#include "validate/job.h"

namespace stoker::validate {

struct Campaign {
    std::string id{}, source{}, model{}, refused{};
    bool fitted = false;      // of the half that the factor is fitted on
    std::string read{};       // yes: the figure was read at its source while the table was made; no: recalled
    double steady_hours = 0;  // device-hours at the predicted rate
    double hours = 0;         // as published
    std::vector<std::string> assumed{};
    double ratio() const { return steady_hours > 0 ? hours / steady_hours : 0; }
};

struct CampaignShares {
    std::size_t sources = 0, rows = 0;
    // Told (steady hours times the factor) by published; every source counts once, whatever its rows.
    double median = 0, within_quarter = 0, inside = 0;
};

struct Campaigns {
    std::vector<Campaign> rows;
    std::size_t refused = 0;
    double factor = 1;         // median over the fitted sources of published by steady
    double low = 1, high = 1;  // 80 % interval of a campaign's ratio, from the spread over the same sources
    bool own_factor = true;    // false: too few sources to fit one, and that of the catalogue judges all of them
    CampaignShares fitted, judged;
};

// Which half: by the first 32 bits of SHA-256 of the source's name, even is fitted on.
bool fitted_half(std::string_view source);

// Rows with the columns of training, tokens_b (billions of tokens) and measured_gpu_hours; a file without these is
// refused.
Result<Campaigns> campaigns(const Csv& csv, Jobs& jobs, FileName file);

Json campaigns_json(const std::string& file, const Campaigns& campaigns, double used);
// used: the factor that plans have.
std::string campaigns_text(const std::string& file, const Campaigns& campaigns, double used, const Style& style);

}  // namespace stoker::validate
