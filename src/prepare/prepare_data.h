// A data set made ready once, before anybody pays for GPUs that wait for it: cleaned, without duplicates, in an order,
// cut into shards of equal size with checksums. Nothing is dropped in silence.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "prepare/record_reader.h"

namespace stoker {

enum class RecordOrder : std::uint8_t { input, shuffle, length, key };

struct PrepareOptions {
    std::vector<std::string> sources;  // files, and folders with all that is below them
    std::string to;                    // a folder that is not there, or that an earlier run of this made
    // files: each file, with those of the same name and another ending, is a sample (WebDataset); shards are tar.
    bool files = false;
    RecordRules rules;  // without files
    RecordOrder order = RecordOrder::input;
    std::uint64_t seed = 1;                              // of shuffle
    std::int64_t shards = 0;                             // 0: by size
    std::int64_t shard_bytes = std::int64_t{256} << 20;  // about
    bool keep_duplicates = false, replace = false;
    std::string rejects;                     // file for what was left out and why; empty: none
    std::int64_t max_records = 100'000'000;  // 48 bytes of memory each
};

struct PreparedShard {
    std::string name;
    std::int64_t records = 0, bytes = 0;
    std::string sha256;
};
struct LeftOut {
    std::string place, reason;  // "part.jsonl:17:3"
};
struct PrepareReport {
    std::int64_t sources = 0, source_bytes = 0;
    std::int64_t read = 0, kept = 0, malformed = 0, blank = 0, duplicates = 0;
    std::vector<LeftOut> examples;  // the first of the malformed
    std::vector<PreparedShard> shards;
    bool was_there = false;  // the same from the same sources: nothing was done
};

// Whole or not at all: the folder appears when everything is on disk. `progress`: share of 0 to 1, and what is done.
Result<PrepareReport> prepare_data(const PrepareOptions& options,
                                   const std::function<void(double, std::string_view)>& progress);

// manifest.json of a prepared folder.
struct PrepareManifest {
    std::int64_t version = 1;
    std::string digest;  // of the sources as they were and of the options
    PrepareReport report;
};
std::string report_text(const PrepareReport& report);  // JSON, on one line

// Every shard of the folder against its manifest; the problems found, none: all as it was written.
Result<std::vector<std::string>> check_prepared(const std::string& folder,
                                                const std::function<void(double, std::string_view)>& progress);

template <class V>
void fields(V& visit, PreparedShard& shard) {
    visit("bytes", shard.bytes);
    visit("name", shard.name);
    visit("records", shard.records);
    visit("sha256", shard.sha256);
}
template <class V>
void fields(V& visit, LeftOut& record) {
    visit("place", record.place);
    visit("reason", record.reason);
}
template <class V>
void fields(V& visit, PrepareReport& report) {
    visit("blank", report.blank);
    visit("duplicates", report.duplicates);
    visit("examples", report.examples);
    visit("kept", report.kept);
    visit("malformed", report.malformed);
    visit("read", report.read);
    visit("shards", report.shards);
    visit("source_bytes", report.source_bytes);
    visit("sources", report.sources);
    visit("was_there", report.was_there);
}
template <class V>
void fields(V& visit, PrepareManifest& manifest) {
    visit("digest", manifest.digest);
    visit("report", manifest.report);
    visit("version", manifest.version);
}

}  // namespace stoker
