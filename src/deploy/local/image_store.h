// Images that were fetched: FOLDER/HEX is the bundle of the manifest with that SHA-256, complete or not there at all;
// FOLDER/.fetch-HEX is what is being fetched. Two at a time; the least used go when there are too many.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/local/image_tools.h"
#include "io/worker.h"

namespace stoker {

class ImageStore {
public:
    using Fetch = std::function<Status(const ImageName&, const std::string& folder, const FetchProgress&, Deadline)>;
    using Ask = std::function<Result<Manifest>(ImageName&, Deadline)>;
    struct Options {
        std::string folder;
        std::size_t max_images = 40;
        std::chrono::seconds limit = std::chrono::hours(2);               // of one fetch
        std::chrono::milliseconds first_pause = std::chrono::seconds(5);  // after a failure; doubles
        int max_tries = 8;                                                // about 15 minutes of pauses
        Ask ask = ask_for_manifest;                                       // for tests
        Fetch fetch = fetch_bundle;
    };
    explicit ImageStore(Options options);
    ~ImageStore();  // gives up what is under way
    ImageStore(const ImageStore&) = delete;
    ImageStore& operator=(const ImageStore&) = delete;

    // Begins to fetch the pinned image unless it is here or under way. confirmed: it is here. unknown: not yet, and
    // `detail` says how far it is or why it is tried again. rejected: it cannot be had.
    Outcome prepare(const std::string& image);
    // Its bundle; empty: it is not here.
    std::string bundle_of(const std::string& image) const;
    void remove_leftovers();  // what an earlier server left half done
    // Removes the least used beyond the bound, none of those `in_use` (bundles).
    void tidy(const std::vector<std::string>& in_use);

private:
    struct Job;
    struct Shared;
    static void work(const std::shared_ptr<Shared>& self, const std::shared_ptr<Job>& job);
    static Status fetch_one(Shared& self, Job& job);

    const std::shared_ptr<Shared> shared_;
    WorkerPool fetches_;
};

}  // namespace stoker
