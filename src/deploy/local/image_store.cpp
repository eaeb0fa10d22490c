#include "deploy/local/image_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "deploy/local/gang_files.h"
#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostFetches = 2;
// A layer of 1 GB is 2 to 3 GB unpacked, and lies there packed as well until it is unpacked.
constexpr double kRoomPerByte = 4;
constexpr auto kForgetFailure = std::chrono::seconds(60);  // then a later run tries again
constexpr std::string_view kFetching = ".fetch-";

bool is_final(ErrorKind kind) {
    return kind == ErrorKind::not_found || kind == ErrorKind::denied || kind == ErrorKind::invalid ||
           kind == ErrorKind::conflict;
}

std::string megabytes(std::int64_t bytes) {
    return std::to_string((bytes + 999'999) / 1'000'000) + " MB";
}

std::string sentence_of(const Error& error) {
    std::string text = error.message();
    if (!error.problems().empty() && !error.problems().front().remedy.empty())
        text += " (" + error.problems().front().remedy + ")";
    return text;
}

std::string hex_of(const std::string& image) {
    const std::string digest = digest_of_image(image);
    return digest.empty() ? digest : digest.substr(7);
}

}  // namespace

struct ImageStore::Job {
    enum State { waits, fetching, here, failed, given_up } state = waits;
    ImageName name;
    std::string hex;
    std::int64_t bytes = 0, total = 0;
    int tries = 0;
    std::string problem;
    Clock::time_point again{};  // not before
};

struct ImageStore::Shared {
    Options options;
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Job>> jobs;  // by hex
    bool stopping = false;

    bool stop() {
        const std::lock_guard guard(mutex);
        return stopping;
    }
};

ImageStore::ImageStore(Options options)
    : shared_(std::make_shared<Shared>()), fetches_({.name = "stoker-image", .threads = kMostFetches}) {
    shared_->options = std::move(options);
}

ImageStore::~ImageStore() {
    {
        const std::lock_guard guard(shared_->mutex);
        shared_->stopping = true;
    }
    // The threads kill their tools; one that waits for a file system that hangs is left behind.
    fetches_.stop(after(3));
}

std::string ImageStore::bundle_of(const std::string& image) const {
    const std::string hex = hex_of(image), folder = shared_->options.folder + "/" + hex;
    return !hex.empty() && ::access((folder + "/config.json").c_str(), F_OK) == 0 ? folder : std::string();
}

Outcome ImageStore::prepare(const std::string& image) {
    if (const std::string bundle = bundle_of(image); !bundle.empty()) {
        ::utimensat(AT_FDCWD, bundle.c_str(), nullptr, 0);  // used now
        const std::lock_guard guard(shared_->mutex);
        shared_->jobs.erase(hex_of(image));
        return {.certainty = Certainty::confirmed};
    }
    const auto name = parse_image_name(image, "/");
    if (!name || name->digest.empty())
        return {.certainty = Certainty::rejected,
                .cause = Cause::user_error,
                .detail = name ? "the image " + printable(image) + " is not pinned" : name.error().message()};
    const std::lock_guard guard(shared_->mutex);
    auto& job = shared_->jobs[hex_of(image)];
    const auto now = Clock::now();
    if (!job || (job->state == Job::here) || (job->state == Job::given_up && now >= job->again)) {
        job = std::make_shared<Job>();
        job->name = *name;
        job->hex = hex_of(image);
    }
    // With our mutex held, so it begins once its state is written.
    if ((job->state == Job::waits || (job->state == Job::failed && now >= job->again)) &&
        fetches_.post([shared = shared_, job] { work(shared, job); })) {
        job->state = Job::fetching;
        job->bytes = 0;
        ++job->tries;
    }
    Outcome outcome{.certainty = Certainty::unknown};
    switch (job->state) {
        case Job::waits: outcome.detail = "waits for two other images that are being fetched"; break;
        case Job::fetching:
            outcome.detail = "fetched " + megabytes(job->bytes) +
                             (job->total > 0 ? " of " + megabytes(job->total) : std::string()) +
                             (job->total > 0 && job->bytes >= job->total ? ", unpacking" : "");
            break;
        case Job::here: outcome.detail = "unpacked in a moment"; break;
        case Job::failed:
            outcome.detail = job->problem + "; try " + std::to_string(job->tries + 1) + " of " +
                             std::to_string(shared_->options.max_tries) + " comes soon";
            break;
        case Job::given_up:
            outcome = {.certainty = Certainty::rejected, .cause = Cause::user_error, .detail = job->problem};
    }
    return outcome;
}

Status ImageStore::fetch_one(Shared& self, Job& job) {
    const Options& options = self.options;
    const auto deadline = Clock::now() + options.limit;
    std::error_code code;
    fs::create_directories(options.folder, code);
    ::chmod(options.folder.c_str(), 0700);  // set-user-id files of images are for ranks only
    const std::string folder = options.folder + "/" + std::string(kFetching) + job.hex;
    remove_tree(folder);
    if (::mkdir(folder.c_str(), 0700) != 0)
        return Error(ErrorKind::unavailable, "cannot make " + printable(folder) + ": " + std::strerror(errno));
    ImageName name = job.name;
    TRY(const Manifest manifest, options.ask(name, std::min(deadline, Clock::now() + std::chrono::seconds(60))));
    {
        const std::lock_guard guard(self.mutex);
        job.total = manifest.bytes;
    }
    struct statvfs disk {};
    if (::statvfs(folder.c_str(), &disk) == 0) {
        const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
        const double wanted = static_cast<double>(manifest.bytes) * kRoomPerByte;
        if (free < wanted)
            return Error(ErrorKind::exhausted, "image " + printable(name.text()) + ": it takes about " +
                                                   megabytes(static_cast<std::int64_t>(wanted)) + " on the way, and " +
                                                   megabytes(static_cast<std::int64_t>(free)) + " are free in " +
                                                   printable(options.folder));
    }
    const FetchProgress progress{.fetched =
                                     [&](std::int64_t bytes) {
                                         const std::lock_guard guard(self.mutex);
                                         job.bytes = bytes;
                                     },
                                 .stop = [&] { return self.stop(); }};
    TRY_VOID(options.fetch(name, folder, progress, deadline));
    const std::string bundle = folder + "/bundle";
    // Whole on the disk before it has its name: a half would be taken for the image after a loss of power.
    const UniqueFd there(::open(bundle.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!there || ::syncfs(there.get()) != 0)
        return Error(ErrorKind::unavailable, "cannot write " + printable(bundle) + ": " + std::strerror(errno));
    ::utimensat(AT_FDCWD, bundle.c_str(), nullptr, 0);
    if (::rename(bundle.c_str(), (options.folder + "/" + job.hex).c_str()) != 0)
        return Error(ErrorKind::unavailable, "cannot rename " + printable(bundle) + ": " + std::strerror(errno));
    return done();
}

void ImageStore::work(const std::shared_ptr<Shared>& self, const std::shared_ptr<Job>& job) {
    const Status fetched = fetch_one(*self, *job);
    remove_tree(self->options.folder + "/" + std::string(kFetching) + job->hex);
    const std::lock_guard guard(self->mutex);
    const auto now = Clock::now();
    if (fetched) {
        job->state = Job::here;
    } else {
        job->problem = sentence_of(fetched.error());
        const bool final = is_final(fetched.error().kind()) || job->tries >= self->options.max_tries;
        job->state = final ? Job::given_up : Job::failed;
        job->again = now + (final ? Clock::duration(kForgetFailure)
                                  : Clock::duration(self->options.first_pause * (1 << std::min(job->tries - 1, 6))));
    }
}

void ImageStore::remove_leftovers() {
    std::error_code code;
    for (fs::directory_iterator it(shared_->options.folder, code), end; !code && it != end; it.increment(code))
        if (it->path().filename().string().starts_with(kFetching)) remove_tree(it->path().string());
}

void ImageStore::tidy(const std::vector<std::string>& in_use) {
    struct Found {
        std::string path;
        fs::file_time_type used;
    };
    std::vector<Found> bundles;
    std::error_code code;
    for (fs::directory_iterator it(shared_->options.folder, code), end; !code && it != end; it.increment(code)) {
        const std::string name = it->path().filename().string();
        std::error_code ignored;
        if (!name.starts_with(kFetching) &&
            std::find(in_use.begin(), in_use.end(), it->path().string()) == in_use.end())
            bundles.push_back({it->path().string(), fs::last_write_time(it->path(), ignored)});
    }
    const std::size_t count = bundles.size() + in_use.size();
    if (count <= shared_->options.max_images) return;
    std::sort(bundles.begin(), bundles.end(), [](const Found& a, const Found& b) { return a.used < b.used; });
    for (std::size_t i = 0; i < std::min(bundles.size(), count - shared_->options.max_images); ++i) {
        // Renamed first, so that nobody takes a half for a whole.
        const std::string gone = shared_->options.folder + "/" + std::string(kFetching) + "gone-" + std::to_string(i);
        remove_tree(gone);
        if (::rename(bundles[i].path.c_str(), gone.c_str()) == 0) remove_tree(gone);
    }
}

}  // namespace stoker
